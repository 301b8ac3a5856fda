"""The evidence: correlations and regrets worked out by hand, what is done to data, a page that is what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cells import result
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.paper.cells import Cell
from tools.evidence.analysis import correlation, kendall, regret, spearman
from tools.evidence.changed import changed
from tools.evidence.grid import KNOBS, RESULTS, RIGHT, WRONG, Run, grid, held_out_errors, lines
from tools.evidence.page import DOCS, NUMBERS, ledger_lines, ledger_part, page

numbers = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=12)


def arrays(*columns: Any) -> list[Any]:
    return [np.array(column, dtype=np.int64 if at == 2 else np.float64) for at, column in enumerate(columns)]


class TestCorrelation:
    def test_ranks_within_groups(self) -> None:
        # In the first group all agrees, in the second a pair is swapped: of ranks 0..2 that leaves a half.
        assert spearman(*arrays([1, 2, 30], [0, 5, 9], [0, 0, 0]))[0] == pytest.approx(1)
        assert spearman(*arrays([1, 2, 3], [5, 0, 9], [0, 0, 0]))[0] == pytest.approx(0.5)
        both = arrays([1, 2, 30, 1, 2, 3], [0, 5, 9, 105, 100, 109], [0, 0, 0, 1, 1, 1])
        assert spearman(*both)[0] == pytest.approx(0.75)  # the second group's larger scores tell nothing

    def test_pairs_within_groups(self) -> None:
        # Of three pairs two agree and one does not; a tie in one of the two counts in the size alone.
        assert kendall(*arrays([1, 2, 3], [5, 0, 9], [0, 0, 0])) == pytest.approx(1 / 3)
        assert kendall(*arrays([1, 1, 3], [0, 5, 9], [0, 0, 0])) == pytest.approx(2 / 6**0.5)

    def test_what_does_not_vary_has_none(self) -> None:
        assert np.isnan(spearman(*arrays([1, 1], [0, 5], [0, 0]))[0]) and np.isnan(
            kendall(*arrays([1, 2], [3, 4], [0, 1]))
        )

    @given(numbers)
    def test_between_both_ends_and_turned_by_the_sign(self, rows: Any) -> None:
        columns = arrays(*zip(*rows, strict=True))
        turned = [-columns[0], *columns[1:]]
        for one in (lambda *of: spearman(*of)[0], kendall):
            value = one(*columns)
            assert np.isnan(value) or (-1 - 1e-9 <= value <= 1 + 1e-9 and one(*turned) == pytest.approx(-value))

    def test_a_run_that_counts_twice_is_as_two(self) -> None:
        columns = arrays([1, 2, 3, 4], [2, 1, 4, 3], [0, 0, 0, 0])
        once, without = spearman(*columns, np.array([[1, 1, 1, 1], [1, 1, 0, 0]]))
        assert once == pytest.approx(spearman(*columns)[0]) and without == pytest.approx(-1)

    def test_an_interval_holds_the_value(self) -> None:
        rng = np.random.default_rng(0)
        found = [
            {"env": env, "data": "whole", "knob": str(knob), "score": knob + rng.normal(0, 3), "numbers": {"a": knob}}
            for env in "ab"
            for knob in range(12)
        ]
        one = correlation(found, lambda line: line["numbers"]["a"])
        assert one.sure and one.low < one.value < one.high and set(one.by_group) == {"a", "b"} and one.runs == 24
        assert not correlation(found, lambda line: float(np.sin(97 * line["score"]))).low > 0.5
        assert correlation(found, lambda line: None).runs == 0


def test_what_a_rule_loses() -> None:
    first = [
        {"knob": "default", "score": 50.0, "a": 2},
        {"knob": "b", "score": 80.0, "a": 1},
        {"knob": "c", "score": 20.0, "a": 3},
    ]
    second = [{"knob": "default", "score": 90.0, "a": 1}, {"knob": "b", "score": 60.0, "a": 1}]
    alone = [{"knob": "default", "score": 1.0, "a": 0}]
    assert regret([first, second, alone], lambda line: line["a"], "default") == (0, 15, 22.5, 2)


def test_every_run_is_told_apart_and_pinned() -> None:
    everything = list(grid())
    assert len(set(everything)) == len(everything) >= 200
    assert {run.data for run in everything} == {*RIGHT, *WRONG} and {run.knob for run in everything} == set(KNOBS)
    known = [Run(line["env"], line["data"], line["knob"], line["seed"]) for line in lines(RESULTS / "evidence.jsonl")]
    assert len(set(known)) == len(known) and set(known) <= set(everything)


@pytest.mark.parametrize("change", [*RIGHT, *WRONG])
def test_what_is_done_to_data(change: Any) -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(1, 1, (60, 4)).astype(np.float32)
    ta = Trajectories.of(Recording(states, np.arange(0, 60, 6)), ["expert"] * 5 + ["random"] * 5)
    ts = Trajectories.of(Recording(states[:20], np.array([0])), ["expert"])
    made = changed(Task(ts, ta), ta.origins != "expert", change)
    expected = {"part_of_ts": 2, "one_state": 1}.get(change, 20)
    assert made.ts.steps == expected
    logs = {"two_experts": (2, 5), "absent": (0, 5)}.get(change, (5, 5))
    assert ((made.ta.origins == "expert").sum(), (made.ta.origins == "random").sum()) == logs
    assert made.ta.steps == (40 if change == "part_of_ta" else 6 * sum(logs))
    same = np.array_equal(made.ts.observations, states[20 - expected : 20])
    assert same == (change in RIGHT or change == "absent")


def test_the_page_is_what_was_measured() -> None:
    text, _ = page(lines(RESULTS / "evidence.jsonl"), lines(RESULTS / "evidence_checks.jsonl"))
    assert (DOCS / "evidence.md").read_text().startswith(text), "python -m tools.evidence.page writes it anew"


def test_the_ledgers_runs_count_by_task() -> None:
    def cell(method: str, seed: int) -> Cell:
        return Cell.of(("env=hopper", "setting=standard", f"method={method}", "preset=fast"), seed)

    numbers = {"followed": 0.9, "covered": 1.0, "effective_trajectories": 20.0, "reach": 1.0}
    records = [
        result(cell("tailo", seed), 90.0 + seed, numbers=numbers | {"followed": 0.9 + seed / 100}) for seed in (0, 1)
    ]
    records += [result(cell("bc", 0), 10.0, verdict="bad"), result(cell("old", 0), 5.0, verdict=None)]
    text = "\n".join(ledger_part(ledger_lines(records)))
    assert "3 finished runs" in text and "1 tasks" in text  # what has no verdict says nothing of verdicts
    assert "| good | 2 | 100% | 100% |" in text and "| bad | 1 | 11% | 0% |" in text
    assert f"| {NUMBERS['followed'][0]} | 1.00 (" in text and " | 2 |" in text
    assert ledger_part([]) == []


def test_errors_of_checkpoints_by_the_steps_done(tmp_path: Path) -> None:
    """The log of a run numbers its steps from 0; a checkpoint says how many there were."""
    log = tmp_path / "metrics.csv"
    log.write_text("step,held_out/error,loss\n199,0.5,\n200,,1.0\n399,0.25,\n")
    assert held_out_errors(log) == {200: 0.5, 400: 0.25}
