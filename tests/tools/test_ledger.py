"""The ledger: cells expand, only missing ones are run, tables come from files alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.cells import result

from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.records import Record, add_record, cell_of, read_records
from tools.ledger.cells import read_cells, run_missing
from tools.ledger.documents import write_tables
from tools.ledger.tables import (
    budget_table,
    compared,
    comparison_tables,
    equal_time_table,
    markdown_table,
    measured_rows,
    score_interval,
)

SMALL = """
- env: pointmaze
  setting: examples
  method: bc
  preset: fast
  preset.policy_steps: 5
  preset.rollout.episodes: 1
  preset.rollout.every_n_steps: 0
  trainer: cpu
  seed: [0, 1]
"""
SETTING = "- {env: [hopper, ant], setting: standard, method: bc, "


def test_lists_mean_all_combinations(tmp_path: Path) -> None:
    path = tmp_path / "cells.yaml"
    path.write_text(SETTING + "seed: [0, 1]}\n" + SETTING.replace("[hopper, ant]", "hopper") + "seed: 0}\n")
    listed = read_cells(path)
    assert [cell.command for cell in listed.cells()] == [
        "tailo train env=hopper setting=standard method=bc seed=0",
        "tailo train env=hopper setting=standard method=bc seed=1",
        "tailo train env=ant setting=standard method=bc seed=0",
        "tailo train env=ant setting=standard method=bc seed=1",
    ]
    first, *others = listed.cells()
    assert listed.missing({first: result(first, 1.0)}) == others
    assert read_cells(path, "env=ant").cells() == others[1:]


@pytest.mark.parametrize("text", ["env: hopper", "- hopper", "[", ""])
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cells.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"cells\.yaml"):
        read_cells(path)


@pytest.mark.slow
def test_only_missing_cells_are_run_and_tables_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "results" / "cells.yaml"
    path.parent.mkdir()
    path.write_text(SMALL)
    first, second = read_cells(path).cells()
    add_record(tmp_path / "results/cells", [], result(first, 50.0))
    state = run_missing(path, episodes=2)
    assert [record["seed"] for record in state.done] == [second.seed] and not state.failed
    found = read_records(tmp_path / "results/cells")
    assert found[first]["score"] == 50.0 and found[second]["episodes"] == 2 and found[second]["cpu_seconds"] > 0
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/numbers.md").write_text("before\n<!-- results:begin -->\nold\n<!-- results:end -->\nafter\n")
    write_tables(tmp_path / "results/cells.yaml", tmp_path)
    text = (tmp_path / "docs/numbers.md").read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| pointmaze | examples | bc | fast |" in text


def test_the_table_of_numbers_has_every_seed_that_was_measured_of_a_listed_cell(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "results/cells.yaml").write_text("- {env: hopper, setting: standard, method: tailo, seed: 0}\n")
    for record in (measured("tailo", 0, 90.0), measured("tailo", 1, 100.0), measured("bc", 0, 1.0)):
        add_record(tmp_path / "results/cells", [], record)
    (tmp_path / "docs/numbers.md").write_text("<!-- results:begin -->\n<!-- results:end -->\n")
    write_tables(tmp_path / "results/cells.yaml", tmp_path)
    (row,) = (tmp_path / "docs/numbers.md").read_text().splitlines()[3:-1]
    assert "| 95.0 ± 5.0 | 2 |" in row


def test_what_methods_came_to_is_kept_by_task() -> None:
    def of(method: str, seed: int, score: float, *more: str) -> Record:
        return result(Cell.of(("env=hopper", "setting=standard", f"method={method}", *more), seed), score)

    cells = [of("tailo", 0, 90.0, "preset=fast"), of("tailo", 1, 100.0, "preset=fast", "threads=1")]
    cells += [of("smodice", 0, 50.0, "method.divergence=kl"), of("bc", 0, 99.0, "preset=paper")]
    smodice, tailo = measured_rows(cells)
    assert (tailo.choice, tailo.score, tailo.seeds) == ("method=tailo", 95.0, 2) and tailo.low < 95 < tailo.high
    assert (smodice.choice, smodice.env) == ("method=smodice method.divergence=kl", "hopper")


def test_table_gives_mean_and_deviation_over_seeds() -> None:
    def other_data(record: Record, **names: str) -> Record:
        record["data"] = {**record["data"], "fingerprint": "g", **names}
        return record

    table = markdown_table([measured("tailo", 1, 90.0), measured("tailo", 0, 100.0)])
    assert table.splitlines()[2] == (
        "| hopper | standard | tailo | fast | 95.0 ± 5.0 | 2 | 1 "
        "| `tailo train -m env=hopper setting=standard method=tailo seed=0,1` |"
    )
    made_elsewhere = [measured("tailo", 1, 90.0), other_data(measured("tailo", 0, 100.0))]
    assert markdown_table(made_elsewhere).splitlines()[2] == table.splitlines()[2]  # the same data but for rounding
    of_another_recipe = [measured("tailo", 1, 90.0), other_data(measured("tailo", 0, 100.0), recipe="s")]
    rows = markdown_table(of_another_recipe).splitlines()[2:]
    assert [row.split("|")[5].strip() for row in rows] == ["90.0", "100.0"]  # never averaged over data


def test_seconds_with_a_library_loaded_before_others_count_only_where_there_are_no_others() -> None:
    quick = measured("tailo", 0, 100.0) | {"preload": ["wide.so"], "cpu_seconds": 0.5}
    seconds = [row.split("|")[7].strip() for row in markdown_table([quick, measured("bc", 0, 1.0)]).splitlines()[2:]]
    assert seconds == ["1", "0*"]
    both = markdown_table([quick, measured("tailo", 1, 90.0)]).splitlines()[2]
    assert [cell.strip() for cell in both.split("|")[5:8]] == ["95.0 ± 5.0", "2", "1"]


def test_precision_makes_another_row_and_devices_threads_and_loggers_do_not() -> None:
    cells = [measured("bc", 0, 10.0, "trainer.precision=32-true")]
    cells += [measured("bc", 1, 30.0, "trainer.precision=32-true", "trainer.devices=2", "threads=2", "logger=csv")]
    cells += [measured("bc", 0, 50.0, "trainer.precision=bf16-mixed")]
    rows = [[cell.strip() for cell in line.split("|")] for line in markdown_table(cells).splitlines()[2:]]
    assert [row[5:7] for row in rows] == [["20.0 ± 10.0", "2"], ["50.0", "1"]]


def test_a_cell_measured_twice_counts_once() -> None:
    cells = [measured("bc", 0, 10.0), measured("bc", 0, 10.0, "runs=elsewhere"), measured("bc", 1, 30.0)]
    (row,) = markdown_table(cells).splitlines()[2:]
    assert [cell.strip() for cell in row.split("|")[5:7]] == ["20.0 ± 10.0", "2"]


def measured(method: str, seed: int, score: float, *options: str, env: str = "hopper") -> Record:
    return result(Cell.of([f"env={env}", "setting=standard", f"method={method}", *options], seed), score)


def test_interval_of_a_mean_over_seeds_and_episodes() -> None:
    low, high = score_interval([measured("bc", 0, 50.0)])
    assert (low, high) == pytest.approx((48, 52), abs=0.3)  # 1.96 * 10 / sqrt(100)
    low, high = score_interval([measured("bc", seed, 50.0 + 20 * seed) for seed in range(2)])
    assert low < 51 and high > 69  # with two seeds a quarter of the draws holds one of them alone
    assert score_interval([{**measured("bc", 0, 0.0), "score_std": 0.0, "episodes": 0}]) == (0.0, 0.0)  # failed


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]


def test_comparison_shows_who_leads_each_task() -> None:
    cells = [measured("tailo", seed, 90.0 + seed) for seed in range(2)]
    cells += [measured("bc", 0, 10.0), measured("smodice", 0, 89.0, "method.divergence=kl", "preset=fast")]
    cells += [measured("oril", 0, 99.0, "preset.baselines.steps=5"), measured("tailo", 0, 99.0, "preset.settle=x")]
    cells += [measured("tailo", 0, 1.0, env="ant"), measured("bc", 0, 1.0, env="ant")]
    listed = [cell_of(cell) for cell in cells]
    table = comparison_tables(cells, listed)
    head, _, *rows = rows_of(table)
    assert table.startswith("`setting=standard`\n\n|") and head == ["method", "hopper"]  # two methods are no comparison
    assert [row[0] for row in rows] == ["tailo", "bc", "smodice kl"]  # other budgets have a table of their own
    scores = {row[0]: row[1] for row in rows}
    assert scores["tailo"].startswith("**90.5** [") and re.search(r"\(2; [\d,]+ s\)$", scores["tailo"])
    assert scores["smodice kl"].startswith("**89.0**") and scores["bc"].startswith("10.0 [8.1, 11.9]")
    assert comparison_tables(cells, listed[:2]) == comparison_tables([], []) == "None yet.\n"


def test_budgets_stand_in_the_order_of_their_cost_and_the_largest_that_fits_is_compared() -> None:
    steps = "preset.baselines.td_steps"
    cells = [
        {**measured("tailo", 0, 90.0), "cpu_seconds": 40.0},
        {**measured("oril", 0, 30.0), "cpu_seconds": 400.0},
        {**measured("oril", 0, 10.0, f"{steps}=2000"), "cpu_seconds": 20.0},
        {**measured("oril", 0, 20.0, f"{steps}=5000", "preset.baselines.discriminator_steps=100"), "cpu_seconds": 50.0},
        {**measured("rce", 0, 5.0), "cpu_seconds": 54.0},  # more than a third above TAILO's
        {**measured("mopo", 0, 7.0), "cpu_seconds": 60.0},
        {**measured("mopo", 0, 8.0, "preset.model_based.dynamics_steps=900"), "cpu_seconds": 70.0},
        {**measured("mopo", 0, 9.0, "preset.model_based.mopo_schedule=constant"), "cpu_seconds": 80.0},  # no budget
    ]
    assert rows_of(budget_table(cells))[2:] == [
        ["hopper standard", "mopo", "7.0 (the preset's; 60 s)", "8.0 (models 900; 70 s)", ""],
        [
            "hopper standard",
            "oril",
            "10.0 (2,000; 20 s)",
            "20.0 (5,000, discriminator 100; 50 s)",
            "30.0 (the preset's; 400 s)",
        ],
    ]
    head, _, *rows = rows_of(equal_time_table(cells))
    assert head == ["method", "hopper standard"]
    assert [[row[0], row[1].split()[0]] for row in rows] == [["tailo", "**90.0**"], ["oril", "20.0"]]
    assert budget_table(cells[:2]) == equal_time_table(cells[:2]) == "None yet.\n"


def test_of_several_budgets_the_best_can_be_compared() -> None:
    budget = ("preset.baselines.td_steps=9", "preset.baselines.recoil_batch=256", "preset.baselines.actor=own")
    own = measured("oril", 0, 50.0, *budget)
    variants = [
        measured("tailo", 0, 99.0, "method.alpha=2.0"),
        measured("tailo_one_step", 0, 99.0),
    ]
    cells = [measured("tailo", 0, 90.0), measured("bc", 0, 5.0), measured("oril", 0, 30.0), own, *variants]
    listed = [cell_of(cell) for cell in cells]
    for best_budget, score in ((False, 30.0), (True, 50.0)):
        groups = compared(cells, listed, best_budget=best_budget)["standard"]["hopper"]
        assert {method: group[0]["score"] for method, group in groups.items()} == {
            "tailo": 90.0,
            "bc": 5.0,
            "oril": score,
        }
    assert "50.0 (9, batch 256, own actor; " in budget_table(cells)
    assert [row.choice for row in measured_rows(cells)] == ["method=bc", "method=oril", "method=tailo"]
