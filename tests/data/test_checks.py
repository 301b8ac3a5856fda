"""Checks of a task before training: what is refused, what is remarked on, and with which numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data import trajectories as module
from tailo_pl.data.checks import check_task
from tailo_pl.data.rows import Rows
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

LOW, HIGH = [-1.0, -1.0], [1.0, 1.0]


def states_only(states: Any) -> Trajectories:
    return Trajectories.of(Recording(np.asarray(states), np.array([0])))


def with_actions(states: Any, actions: Any, lengths: list[int]) -> Trajectories:
    starts = np.cumsum([0, *lengths[:-1]])
    return Trajectories.of(Recording(np.asarray(states), starts, actions=np.asarray(actions)))


@pytest.fixture
def states() -> Any:
    """Ten states; the dimensions reach from 0 to 9, from 0 to -9 and from 0 to 900."""
    return np.arange(10.0)[:, None] * [1, -1, 100]


@pytest.fixture
def actions() -> Any:
    """Ten actions from -0.9 to 0.9, and the other way round."""
    return np.linspace(-0.9, 0.9, 10)[:, None] * [1, -1]


def refused(ts: Trajectories, ta: Trajectories, low: list[float] = LOW, high: list[float] = HIGH) -> str:
    with pytest.raises(UserError) as caught:
        check_task(Task(ts, ta), low, high)
    text = str(caught.value)
    assert "\n" not in text
    return text


def found(ts: Trajectories, ta: Trajectories, low: list[float] = LOW, high: list[float] = HIGH) -> list[str]:
    lines = check_task(Task(ts, ta), low, high)
    assert not any("\n" in line for line in lines)
    return lines


@pytest.fixture(params=[None, 3], ids=["at-once", "in-chunks"], autouse=True)
def chunk_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this holds whether data is looked at in one piece or a few rows at a time."""
    if request.param is not None:
        monkeypatch.setattr(module, "CHUNK_BYTES", request.param * 24)


class TestNothingToSay:
    def test_good_data(self, states: Any, actions: Any) -> None:
        assert found(states_only(states), with_actions(states, actions, [4, 6])) == []

    def test_ts_with_actions_of_its_own(self, states: Any, actions: Any) -> None:
        ta = with_actions(states, actions, [4, 6])
        assert found(ta.take([0]), ta) == []

    def test_actions_at_their_bounds_in_float32(self, states: Any) -> None:
        # 0.7 and -0.7 in float32, read as float64, are a little off: within what rounding may do.
        actions = np.full((10, 2), 0.7, dtype=np.float32)
        actions[::2] *= -1
        ta = with_actions(states, actions.astype(np.float64) * (1 + 1e-7), [4, 6])
        assert found(states_only(states), ta, [-0.7, -0.7], [0.7, 0.7]) == []

    def test_one_state_in_a_hundred_outside(self, states: Any, actions: Any) -> None:
        ts = np.tile(states[:1], (100, 1))
        ts[42, 0] = 10
        assert found(states_only(ts), with_actions(states, actions, [4, 6])) == []

    def test_unbounded_actions(self, states: Any, actions: Any) -> None:
        ta = with_actions(states, actions * 1e6, [4, 6])
        assert found(states_only(states), ta, [-np.inf, -np.inf], [np.inf, np.inf]) == []


class TestRefused:
    def test_no_states_at_all(self, states: Any, actions: Any) -> None:
        ts = states_only(states)
        object.__setattr__(ts, "rows", Rows.all(0))  # its own checks would not let it be made like this
        assert refused(ts, with_actions(states, actions, [4, 6])) == "TS: no states found, expected at least one"

    def test_ta_without_actions(self, states: Any) -> None:
        ts = states_only(states)
        assert refused(ts, ts) == "TA: actions: none recorded, expected state-action trajectories"

    def test_other_dimensions(self, states: Any, actions: Any) -> None:
        assert refused(states_only(states[:, :2]), with_actions(states, actions, [4, 6])) == (
            "TS: observations: 2 dimensions found, expected 3 as in TA; "
            "choose the same for both with source.columns.observations=[...]"
        )

    def test_other_number_of_bounds(self, states: Any, actions: Any) -> None:
        assert refused(states_only(states), with_actions(states, actions, [4, 6]), [-1.0], [1.0]) == (
            "TA: actions: 2 dimensions found, expected 1, one per bound"
        )

    def test_one_trajectory(self, states: Any, actions: Any) -> None:
        assert refused(states_only(states), with_actions(states, actions, [10])) == (
            "TA: 1 trajectory of 10 steps found, expected at least 2 trajectories, or beta_1 leaves no safe negatives"
        )

    def test_single_steps(self, states: Any, actions: Any) -> None:
        assert refused(states_only(states), with_actions(states, actions, [1] * 10)) == (
            "TA: all 10 trajectories have a single step, expected longer ones"
        )

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    @pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
    def test_numbers_that_are_none(self, states: Any, actions: Any, value: float, shown: str, kind: Any) -> None:
        states, actions = states.astype(kind), actions.astype(kind)
        broken, broken_actions = states.copy(), actions.copy()
        broken[7, 1] = broken[8, 0] = broken_actions[6, 1] = value
        ta = with_actions(states, actions, [4, 6])
        assert refused(states_only(broken), ta) == (
            f"TS: observations: {shown} found in row 7 (counted from 0), dimension 1, expected finite numbers"
        )
        assert refused(states_only(states), with_actions(broken, actions, [4, 6])) == (
            f"TA: observations: {shown} found in row 7 (counted from 0), dimension 1, expected finite numbers"
        )
        assert refused(states_only(states), with_actions(states, broken_actions, [4, 6])) == (
            f"TA: actions: {shown} found in row 6 (counted from 0), dimension 1, expected finite numbers"
        )

    def test_the_row_is_that_of_the_recording(self, states: Any, actions: Any) -> None:
        states[7, 2] = np.nan
        ta = with_actions(states, actions, [2, 2, 6])
        assert refused(states_only(np.ones((1, 3))), ta.take([2, 0])).startswith("TA: observations: nan found in row 7")
        assert found(states_only(np.ones((1, 3)) * [1, -1, 100]), ta.take([0, 1])) == []

    def test_too_large_for_float32(self, states: Any, actions: Any) -> None:
        states[3, 2] = -1e39
        assert refused(states_only(states), with_actions(states, actions, [4, 6])) == (
            "TS: observations: -1e+39 found in row 3 (counted from 0), "
            "dimension 2, expected a number within the range of float32"
        )

    def test_actions_outside_their_bounds(self, states: Any, actions: Any) -> None:
        ta = with_actions(states, actions, [4, 6])
        # Half of 0.9, 0.7, 0.5, 0.3, 0.1 and their negatives stay within 0.6 in both dimensions: six of ten.
        assert refused(states_only(states), ta, [-0.6, -0.6], [0.6, 0.6]) == (
            "TA: actions: 4 of 10 are outside the bounds, the worst -0.9 in row 0 (counted from 0), dimension 0, "
            "expected -0.6 to 0.6 there"
        )

    def test_the_worst_action(self, states: Any, actions: Any) -> None:
        actions[8, 1] = 3.25
        ta = with_actions(states, actions, [2, 2, 6]).take([2, 1])
        assert refused(states_only(states), ta) == (
            "TA: actions: 1 of 8 are outside the bounds, the worst 3.25 in row 8 (counted from 0), "
            "dimension 1, expected -1 to 1 there"
        )

    def test_one_open_bound(self, states: Any, actions: Any) -> None:
        assert refused(
            states_only(states), with_actions(states, actions, [4, 6]), [0.0, -np.inf], [np.inf, np.inf]
        ) == (
            "TA: actions: 5 of 10 are outside the bounds, the worst -0.9 in row 0 (counted from 0), "
            "dimension 0, expected 0 to inf there"
        )


class TestRemarks:
    def test_short_trajectories(self, states: Any, actions: Any) -> None:
        assert found(states_only(states), with_actions(states, actions, [4, 1, 4, 1])) == [
            "TA: 2 of 4 trajectories have a single step"
        ]

    def test_constant_dimensions(self, actions: Any) -> None:
        states = np.zeros((10, 111))
        states[:, :27] = np.arange(10.0)[:, None]
        assert found(states_only(states), with_actions(states, actions, [4, 6])) == [
            "TA: 84 of 111 dimensions are constant (27, 28, 29, 30, 31, 32, 33, 34, ...)"
        ]

    def test_constant_in_ta_but_not_in_ts(self, states: Any, actions: Any) -> None:
        states[:, 1:] = 0.25
        ts = states.copy()
        ts[:, 1] = 0.26
        ts[:, 2] = np.linspace(0.25, 0.2, 10)
        assert found(states_only(ts), with_actions(states, actions, [4, 6])) == [
            "TA: 2 of 3 dimensions are constant (1, 2)",
            "TS: other values than TA's only one in 2 of 3 dimensions (1, 2), the farthest in dimension 2: "
            "0.2 to 0.25, where TA has 0.25; standardising divides by 0.0001 there, which makes that 500 standard "
            "deviations: leave such dimensions out of what is compared (method.dimensions)",
        ]

    def test_what_is_not_compared_is_not_remarked_on(self, states: Any, actions: Any) -> None:
        states[:, 1] = 0.25
        ts = states.copy()
        ts[:, 1:] += 0.5
        task = Task(states_only(ts), with_actions(states, actions, [4, 6]))
        assert len(check_task(task, LOW, HIGH)) == 3
        assert check_task(replace(task, compared=(0,)), LOW, HIGH) == ["TA: 1 of 3 dimensions are constant (1)"]
        assert "divides by 0.5 there, which makes that 1 standard" in check_task(task, LOW, HIGH, std_floor=0.5)[1]

    def test_constant_in_both_at_another_value(self, states: Any, actions: Any) -> None:
        states[:, 1] = 0.25
        ts = states.copy()
        ts[:, 1] = 0.5
        (_, line) = found(states_only(ts), with_actions(states, actions, [4, 6]))
        assert line.startswith(
            "TS: other values than TA's only one in 1 of 3 dimensions (1), the farthest in dimension 1: 0.5, where TA "
            "has 0.25; standardising divides by 0.0001 there, which makes that 2500 standard deviations"
        )

    def test_the_floor_of_the_environment_is_named(self, states: Any, actions: Any) -> None:
        states[:, 1] = 0.25
        ts = states.copy()
        ts[:, 1] = 0.5
        task = Task(states_only(ts), with_actions(states, actions, [4, 6]))
        lines = check_task(task, (-1.0,) * 2, (1.0,) * 2, std_floor=1e-3)
        assert "divides by 0.001 there, which makes that 250 standard deviations" in lines[1]

    def test_some_states_of_ts_outside(self, states: Any, actions: Any) -> None:
        ts = states.copy()
        ts[:3, 2] = -50
        ts[2:4, 0] = 10
        assert found(states_only(ts), with_actions(states, actions, [4, 6])) == [
            "TS: 3 of 10 states (30.0%) are outside TA's range in dimension 2: -50 to 900, where TA has 0 to 900 "
            "(40.0% in any dimension); TA should cover the expert's states"
        ]

    def test_all_states_of_ts_outside(self, states: Any, actions: Any) -> None:
        ts = states.copy()
        ts[:, 0] += 100
        ts[:, 2] = -1
        assert found(states_only(ts), with_actions(states, actions, [4, 6])) == [
            "TS: all 10 states are outside TA's range in 2 of 3 dimensions (0, 2), e.g. dimension 0: 100 to 109, where "
            "TA has 0 to 9; TA cannot contain the expert's states: are units and the order of dimensions the same?"
        ]

    def test_outside_on_both_sides(self, states: Any, actions: Any) -> None:
        # The ranges overlap, and yet no state of TS is within TA's.
        ts = states.copy()
        ts[:5, 0], ts[5:, 0] = -1, 10
        (line,) = found(states_only(ts), with_actions(states, actions, [4, 6]))
        assert line.startswith(
            "TS: all 10 states are outside TA's range in 1 of 3 dimensions (0), e.g. dimension 0: -1"
        )

    def test_all_in_one_dimension_and_some_in_another(self, states: Any, actions: Any) -> None:
        ts = states.copy()
        ts[:, 0] += 100
        ts[:5, 1] = 1
        first, second = found(states_only(ts), with_actions(states, actions, [4, 6]))
        assert first.startswith("TS: all 10 states are outside TA's range in 1 of 3 dimensions (0)")
        assert second.startswith("TS: 5 of 10 states (50.0%) are outside TA's range in dimension 1: -9 to 1, where TA")

    def test_actions_that_never_move(self, states: Any, actions: Any) -> None:
        actions[:, 1] = 0.5
        assert found(states_only(states), with_actions(states, actions, [4, 6])) == [
            "TA: actions: 1 of 2 dimensions are constant (1), e.g. dimension 1: always 0.5"
        ]

    def test_actions_in_other_units(self, states: Any, actions: Any) -> None:
        ta = with_actions(states, actions, [4, 6])
        assert found(states_only(states), ta, [-180.0, -10.0], [180.5, 10.0]) == [
            "TA: actions: 1 of 2 dimensions use less than 1% of the bounds' range (0), "
            "e.g. dimension 0: -0.9 to 0.9 of -180 to 180.5; probably other units"
        ]


@given(st.integers(0, 9), st.integers(0, 2), st.sampled_from([np.nan, np.inf, -np.inf, 1e300]), st.integers(1, 10))
def test_every_place_is_found(row: int, dimension: int, value: float, rows: int) -> None:
    states = np.arange(30.0).reshape(10, 3)
    broken = states.copy()
    broken[row, dimension] = value
    ta = with_actions(broken, np.linspace(-1, 1, 20).reshape(10, 2), [4, 6])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", rows * 24)
        text = refused(states_only(states), ta)
    assert text.startswith(
        f"TA: observations: {value:g} found in row {row} (counted from 0), dimension {dimension}, expected"
    )
