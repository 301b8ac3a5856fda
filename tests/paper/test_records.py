"""Results as lines: one for each cell, in order, merged as text; what is missing follows from them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from helpers.cells import FAST, result, results

from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import read_figures
from tailo_pl.paper.plan import Asked, Times, next_cell
from tailo_pl.paper.records import add_record, read_records
from tailo_pl.paper.reproduce import State, _in_time

FIGURES = read_figures()
STANDARD = FIGURES["standard"]


def cell(*more: str, env: str = "hopper", method: str = "tailo", seed: int = 0) -> Cell:
    return Cell.of([f"env={env}", "setting=standard", f"method={method}", *FAST, *more], seed)


def test_lines_are_in_order_each_once_in_the_file_of_the_first_figure_that_shows_the_cell(tmp_path: Path) -> None:
    added = [cell(seed=1), cell(env="ant"), cell("method.alpha=2.0"), cell("env.data.smooth=3"), cell(seed=0)]
    names = [add_record(tmp_path, FIGURES.values(), result(one, 1.0)).name for one in added]
    assert names == ["standard.jsonl", "standard.jsonl", "alpha.jsonl", "others.jsonl", "standard.jsonl"]
    add_record(tmp_path, FIGURES.values(), result(cell(env="ant"), 2.0))
    lines = [json.loads(line) for line in (tmp_path / "standard.jsonl").read_text().splitlines()]
    assert [(line["env"], line["seed"], line["score"]) for line in lines] == [
        ("ant", 0, 2.0), ("hopper", 0, 1.0), ("hopper", 1, 1.0),
    ]  # fmt: skip
    assert read_records(tmp_path).keys() == set(added)
    assert add_record(tmp_path, [], result(cell(env="ant"), 3.0)).name == "standard.jsonl"  # where it is already


def test_of_a_cell_that_two_people_have_measured_the_later_line_holds(tmp_path: Path) -> None:
    lines = [json.dumps(result(cell(), score)) for score in (1.0, 2.0)]
    (tmp_path / "standard.jsonl").write_text("\n".join(lines) + "\n")
    assert read_records(tmp_path)[cell()]["score"] == 2.0


@pytest.mark.parametrize(
    ("line", "said"),
    [("<<<<<<< mine", "'<<<<<<< mine' found"), ("[]", "cell: not there"), ('{"cell": "env=ant"}', "config: not there")],
)
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "standard.jsonl").write_text(json.dumps(result(cell(), 1.0)) + f"\n{line}\n")
    with pytest.raises(UserError, match=rf"standard\.jsonl:2: {said}"):
        read_records(tmp_path)


def test_of_what_is_missing_tailo_and_bc_come_first_each_seed_by_seed() -> None:
    asked = Asked([STANDARD], FAST, seeds=2)
    known = results(STANDARD, {("hopper standard", "tailo"): [1.0, 1.0], ("hopper standard", "oril"): 1.0})
    missing = asked.missing(known)
    assert len(missing) == 72 - 3 and not set(missing) & set(known)
    first, others = missing[:22], missing[22:]
    assert {one.values["method"] for one in first} == {"tailo", "bc"}
    assert not {"tailo", "bc"} & {one.values["method"] for one in others}
    for part in (first, others):
        assert [one.seed for one in part] == sorted(one.seed for one in part)
    assert {one.values["env"] for one in Asked([STANDARD], FAST, 1, ("env=ant",)).cells()} == {"ant"}


def test_a_result_without_the_curves_that_a_figure_shows_is_missing_for_it() -> None:
    weights = FIGURES["weights"]
    known = results(weights, {("pointmaze examples", "tailo"): 1.0})
    (one,) = known
    assert one in Asked([weights], FAST).missing(known)
    known[one]["curves"] = {name: [[0.0], [1.0]] for name in weights.curves}
    assert one not in Asked([weights], FAST).missing(known)


def test_time_is_expected_as_of_cells_alike() -> None:
    times = Times([result(cell(), 1.0, seconds=10.0), result(cell(env="ant"), 1.0, seconds=30.0)])
    # A quarter more than their stages took, or what one took from its beginning to its end.
    assert [times.expected(cell(env=env)) for env in ("hopper", "ant", "walker2d")] == [12.5, 37.5, 25.0]
    assert times.expected(cell(method="oril")) == 60.0
    times.add(result(cell(), 1.0, seconds=10.0), 47.5)
    assert times.expected(cell()) == 30.0


def test_cells_that_share_stages_are_not_begun_at_once_while_there_are_others() -> None:
    waiting = [cell("method.alpha=0.5"), cell("method.alpha=2.0"), cell(env="ant")]
    assert next_cell(waiting, []) == waiting[0]
    assert next_cell(waiting, [cell()]) == waiting[2]
    assert next_cell(waiting[:2], [cell()]) == waiting[0]


def test_no_cell_is_begun_that_would_end_too_late() -> None:
    slow, quick = cell(), cell(env="ant")
    times = Times([result(slow, 1.0, seconds=100.0), result(quick, 1.0, seconds=10.0)])
    state, now = State([slow, quick], {}, 1, times), time.monotonic()
    assert _in_time(state, None) == _in_time(state, now + 5) == [slow, quick]  # one is always begun
    assert _in_time(state, now - 1) == []
    state.done.append(result(cell(env="walker2d"), 1.0))
    assert _in_time(state, now + 200) == [slow, quick]
    assert _in_time(state, now + 110) == [quick]  # what is short fills the rest of the time
    assert _in_time(state, now + 5) == []
