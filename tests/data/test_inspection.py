"""Inspecting data: hand-counted numbers, whatever the size of the blocks they are gathered in."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from helpers.recordings import of_states, walk_and_jump
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tailo_pl.data import moments
from tailo_pl.data.inspection import AtBounds, Distribution, Ends, Origin, inspect
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError


@pytest.fixture
def small() -> Trajectories:
    return walk_and_jump()


class TestInspect:
    def test_counts_and_distributions(self, small: Trajectories) -> None:
        found = inspect(small)
        assert (found.steps, found.trajectories) == (6, 2)
        assert found.lengths == Distribution(2, 2.5, 3, 3.5, 4, mean=3)
        assert found.returns == Distribution(4, 10.5, 17, 23.5, 30, mean=17)
        assert found.origins == {"walk": Origin(1, 4), "jump": Origin(1, 2)}
        assert found.ends == Ends(terminal=1, timeout=0, neither=1)

    def test_dimensions(self, small: Trajectories) -> None:
        states = inspect(small).observations
        assert (states.min, states.max) == ((0, 7), (4, 7))
        assert states.mean == pytest.approx((10 / 6, 7))
        assert states.std == pytest.approx((np.sqrt(80) / 6, 0))  # mean of squares 30 / 6, less (10 / 6) ** 2
        assert states.constant == (1,)
        assert states.nan == states.infinite == (0, 0)
        assert states.first_not_finite == (None, None)

    def test_a_selection(self, small: Trajectories) -> None:
        found = inspect(small.drop(np.array([0, 0, 0, 1, 1, 0], dtype=bool)))
        assert found.steps == 4 and found.returns == Distribution(3, 7.25, 11.5, 15.75, 20, mean=11.5)
        assert found.observations.max == (4, 7) and found.observations.mean == (7 / 4, 7)
        assert found.ends == Ends(terminal=0, timeout=0, neither=2)

    def test_states_only(self) -> None:
        found = inspect(of_states(np.zeros((3, 1))))
        assert found.actions is None and found.at_bounds is None and found.returns is None and found.ends is None

    def test_ends(self) -> None:
        ends = {"terminals": np.array([1, 0, 1, 0], dtype=bool), "timeouts": np.array([1, 1, 0, 0], dtype=bool)}
        every = Trajectories.of(Recording(np.zeros((4, 1)), np.arange(4), **ends))
        assert inspect(every).ends == Ends(terminal=2, timeout=1, neither=1)

    def test_returns_that_are_none(self) -> None:
        rewards = np.array([1.0, np.nan, 3.0])
        some = Trajectories.of(Recording(np.zeros((3, 1)), np.arange(3), rewards=rewards))
        assert inspect(some).returns == Distribution(1, 1.5, 2, 2.5, 3, mean=2)
        assert inspect(some.take([1])).returns is None


class TestBounds:
    def test_given(self, small: Trajectories) -> None:
        assert inspect(small, [-1], [0.5]).at_bounds == AtBounds("given", (-1,), (0.5,), (3 / 6,))

    def test_recorded(self, small: Trajectories) -> None:
        assert inspect(small).at_bounds == AtBounds("recorded", (-1,), (1,), (2 / 6,))

    def test_float32_next_to_its_bound(self) -> None:
        # 0.7 becomes 0.699999988 in float32: at its bound all the same.
        found = inspect(of_states(np.zeros((2, 1)), actions=np.array([[0.7], [0.69]], dtype=np.float32)), [-0.7], [0.7])
        assert found.at_bounds is not None and found.at_bounds.share == (0.5,)

    def test_no_bounds(self, small: Trajectories) -> None:
        assert inspect(small, [-np.inf], [np.inf]).at_bounds == AtBounds("given", (None,), (None,), (0,))

    def test_of_another_width(self, small: Trajectories) -> None:
        with pytest.raises(UserError, match=r"^action bounds: 2 given, expected 1 as the actions have$"):
            inspect(small, [-1, -1], [1, 1])


class TestNumbersThatAreNone:
    @pytest.fixture
    def broken(self) -> Trajectories:
        states = np.arange(12, dtype=np.float64).reshape(6, 2)
        states[[2, 4], 1] = np.nan, np.inf
        return Trajectories.of(Recording(states, np.array([0, 3])))

    @pytest.mark.parametrize("rows", [1, 2, 100])
    def test_counted_and_left_out(self, broken: Trajectories, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
        monkeypatch.setattr(moments, "_BLOCK_BYTES", rows * 16)
        found = inspect(broken).observations
        assert (found.nan, found.infinite, found.first_not_finite) == ((0, 1), (0, 1), (None, 2))
        assert (found.min, found.max) == ((0, 1), (10, 11))
        assert found.mean == pytest.approx((5, 22 / 4)) and found.std[1] == pytest.approx(np.std([1, 3, 7, 11]))
        assert found.constant == ()

    def test_the_row_is_that_of_the_recording(self, broken: Trajectories) -> None:
        assert inspect(broken.take([1])).observations.first_not_finite == (None, 4)

    def test_nothing_else(self) -> None:
        found = inspect(of_states(np.full((3, 1), np.nan))).observations
        assert (found.min, found.max, found.mean, found.std) == ((None,),) * 4
        assert (found.nan, found.constant, found.first_not_finite) == ((3,), (), (0,))

    def test_json(self, broken: Trajectories) -> None:
        text = json.dumps(dataclasses.asdict(inspect(broken)), allow_nan=False)
        assert json.loads(text)["observations"]["nan"] == [0, 1]

    def test_json_of_numbers_near_the_limit(self) -> None:
        found = inspect(of_states(np.array([[1e308], [-1e308], [1e308]])))
        json.dumps(dataclasses.asdict(found), allow_nan=False)
        assert (found.observations.max, found.observations.std) == ((1e308,), (None,))


class TestDuplicates:
    def test_every_repetition_counts(self) -> None:
        states = np.array([[1, 2], [2, 1], [1, 2], [1, 2], [0, 0], [-0.0, 0]], dtype=np.float32)
        assert inspect(of_states(states)).duplicated_states == 3

    @pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16, np.uint8, bool])
    @pytest.mark.parametrize("width", [1, 2, 3, 9])
    def test_number_types_and_widths(self, kind: Any, width: int) -> None:
        states = np.random.default_rng(0).integers(0, 3, (200, width)).astype(kind)
        assert inspect(of_states(states)).duplicated_states == 200 - len(np.unique(states, axis=0))

    @given(arrays(np.float32, (40, 4), elements=st.sampled_from([-1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0])))
    def test_as_counted_by_numpy(self, states: Any) -> None:
        assert inspect(of_states(states)).duplicated_states == 40 - len(np.unique(states + 0.0, axis=0))

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    @pytest.mark.parametrize("pair", [(-1, 1), (0, 1), (0.5, 2)])
    def test_two_values_in_every_combination(self, kind: Any, pair: tuple[float, float]) -> None:
        # All 65,536 states of 16 numbers. Mirrored ones differ in nothing but the top bit of some numbers.
        states = np.where(np.arange(1 << 16)[:, None] >> np.arange(16) & 1, *pair).astype(kind)
        assert inspect(of_states(states)).duplicated_states == 0

    def test_a_grid_of_states(self) -> None:
        grid = np.stack(np.meshgrid(*[np.arange(64, dtype=np.float32)] * 3), -1).reshape(-1, 3)
        assert inspect(of_states(grid)).duplicated_states == 0


@given(
    arrays(np.float32, (50, 3), elements=st.floats(-1e6, 1e6, width=32)),
    st.integers(1, 50),
    st.floats(-1e6, 1e6, width=32),
)
def test_blocks_make_no_difference(states: Any, rows: int, offset: float) -> None:
    states = states + np.float32(offset)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments, "_BLOCK_BYTES", rows * 12)
        found = inspect(of_states(states)).observations
    exact = states.astype(np.float64)
    np.testing.assert_array_equal(found.min, exact.min(0))
    np.testing.assert_array_equal(found.max, exact.max(0))
    np.testing.assert_allclose(found.mean, exact.mean(0), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.std, exact.std(0), rtol=1e-9, atol=1e-9)


def test_a_memory_map_is_read_in_blocks(tmp_path: Any) -> None:
    states = np.random.default_rng(0).normal(size=(5000, 7)).astype(np.float32)
    np.save(tmp_path / "states.npy", states)
    mapped = of_states(np.load(tmp_path / "states.npy", mmap_mode="c"))
    assert inspect(mapped) == inspect(of_states(states))
