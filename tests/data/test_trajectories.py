"""Trajectories: an index over recorded arrays that never change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.rows import Rows
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError


def recording(lengths: list[int], *, dim: int = 2, first: int = 0, **arrays: Any) -> Recording:
    """States that name their row: row i is (i, i, ...) counting from `first`; actions are minus that."""
    steps = sum(lengths)
    rows = first + np.arange(steps, dtype=np.float32)
    observations = np.repeat(rows[:, None], dim, axis=1)
    return Recording(observations, np.cumsum([0, *lengths[:-1]]), **{"actions": -observations[:, :1], **arrays})


def names(trajectories: Trajectories) -> list[list[int]]:
    """The kept rows of each trajectory, as their states name them."""
    rows = trajectories.observations[:, 0].astype(int)
    return [part.tolist() for part in np.split(rows, trajectories.offsets[1:-1])]


@pytest.fixture
def three() -> Trajectories:
    """Rows 0-2, 3-4, 5-8."""
    return Trajectories.of(recording([3, 2, 4], rewards=np.arange(9.0)), ["expert", "random", "expert"])


class TestValidation:
    @pytest.mark.parametrize("shape", [(4,), (4, 2, 1), (0, 2), (4, 0)])
    def test_observations_shape(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(UserError, match="observations: shape"):
            Recording(np.zeros(shape), np.array([0]))

    @pytest.mark.parametrize(
        ("name", "array", "message"),
        [
            ("actions", np.zeros((3, 1)), "actions: 3 rows found, expected 4"),
            ("actions", np.zeros(4), "actions: shape"),
            ("next_observations", np.zeros((4, 3)), "next_observations: shape"),
            ("next_observations", np.zeros((5, 2)), "next_observations: 5 rows"),
            ("rewards", np.zeros(5), "rewards: 5 rows"),
            ("rewards", np.zeros((4, 1)), "rewards: shape"),
            ("terminals", np.zeros(3, dtype=bool), "terminals: 3 rows"),
            ("timeouts", np.zeros((4, 2), dtype=bool), "timeouts: shape"),
        ],
    )
    def test_other_arrays_must_fit(self, name: str, array: np.ndarray, message: str) -> None:
        with pytest.raises(UserError, match=message):
            Recording(np.zeros((4, 2)), np.array([0]), **{name: array})

    @pytest.mark.parametrize("starts", [[], [1], [0, 2, 2], [0, 3, 1], [0, 4], [[0]]])
    def test_starts(self, starts: list[Any]) -> None:
        with pytest.raises(UserError, match="starts"):
            Recording(np.zeros((4, 2)), np.array(starts, dtype=np.int64))

    @pytest.mark.parametrize(
        ("index", "offsets", "origins", "message"),
        [
            ([], [0], [], "no step is left"),
            ([0, 1], [0, 1], ["a"], "offsets: expected to run from 0 to 2"),
            ([0, 1], [1, 2], ["a"], "offsets: expected to run from 0 to 2"),
            ([0, 1], [0], [], "offsets"),
            ([0, 1], [0, 1, 1, 2], ["a"] * 3, "empty trajectory"),
            ([0, 4], [0, 2], ["a"], "rows: 0 to 4 found, expected 0 to 3"),
            ([-1, 2], [0, 2], ["a"], "rows: -1"),
            ([0, 1], [0, 1, 2], ["a"], "origins: 1 labels found, expected 2"),
        ],
    )
    def test_index(self, index: list[int], offsets: list[int], origins: list[str], message: str) -> None:
        with pytest.raises(UserError, match=message):
            rows = Rows.of(np.array(index, dtype=np.int64))
            Trajectories(recording([4]), rows, np.array(offsets), np.array(origins, dtype=np.str_))

    def test_number_of_labels(self) -> None:
        with pytest.raises(UserError, match="origins: 1 labels found, expected 2"):
            Trajectories.of(recording([1, 1]), ["expert"])

    def test_what_was_not_recorded_cannot_be_read(self) -> None:
        states_only = Trajectories.of(Recording(np.zeros((2, 1)), np.array([0])))
        with pytest.raises(UserError, match="actions: none recorded"):
            _ = states_only.actions
        with pytest.raises(UserError, match="rewards: none recorded"):
            _ = states_only.returns


class TestReading:
    def test_everything_of_a_recording(self, three: Trajectories) -> None:
        assert len(three) == 3
        assert three.steps == 9
        assert three.lengths.tolist() == [3, 2, 4]
        assert three.trajectory_of_step.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
        assert names(three) == [[0, 1, 2], [3, 4], [5, 6, 7, 8]]
        assert three.actions[:, 0].tolist() == [-row for row in range(9)]
        assert three.keeps_first.all()

    def test_one_label_for_all(self) -> None:
        assert Trajectories.of(recording([2, 1]), "random").origins.tolist() == ["random", "random"]

    def test_first_last_mean_returns(self, three: Trajectories) -> None:
        assert three.first_states[:, 0].tolist() == [0, 3, 5]
        assert three.last_states[:, 0].tolist() == [2, 4, 8]
        assert three.mean(np.array([1, 2, 6, 0, 1, 1, 1, 1, 5])).tolist() == [3, 0.5, 2]
        assert three.returns.tolist() == [0 + 1 + 2, 3 + 4, 5 + 6 + 7 + 8]

    def test_first_last_mean_returns_of_what_is_kept(self, three: Trajectories) -> None:
        kept = three.drop(np.isin(np.arange(9), [0, 4, 6, 8]))  # 1 2 | 3 | 5 7
        assert kept.first_states[:, 0].tolist() == [1, 3, 5]
        assert kept.last_states[:, 0].tolist() == [2, 3, 7]
        assert kept.mean(np.array([1, 2, 7, 4, 6])).tolist() == [1.5, 7, 5]
        assert kept.returns.tolist() == [3, 3, 12]
        assert kept.keeps_first.tolist() == [False, True, True]

    def test_mean_is_taken_in_float64(self) -> None:
        values = np.full(1000, 0.1, dtype=np.float32) + np.float32(1e4)
        mean = Trajectories.of(recording([1000])).mean(values)
        assert mean[0] == pytest.approx(values.astype(np.float64).mean(), rel=1e-12)

    def test_mean_needs_one_value_per_step(self, three: Trajectories) -> None:
        with pytest.raises(ValueError, match="8 values for 9 steps"):
            three.mean(np.zeros(8))


class TestNextStates:
    def test_without_recorded_next_states_the_next_row_is_the_next_state(self, three: Trajectories) -> None:
        states, known = three.next_observations()
        assert known.tolist() == [True, True, False, True, False, True, True, True, False]
        assert states[known, 0].tolist() == [1, 2, 4, 6, 7, 8]

    def test_a_step_keeps_its_next_state_when_its_neighbour_is_dropped(self, three: Trajectories) -> None:
        kept = three.drop(np.isin(np.arange(9), [1, 4, 8]))  # 0 2 | 3 | 5 6 7
        states, known = kept.next_observations()
        assert names(kept) == [[0, 2], [3], [5, 6, 7]]
        # Row 0 is followed by row 1, not by row 2; rows 3 and 7 still have the dropped rows 4 and 8 after them.
        assert known.tolist() == [True, False, True, True, True, True]
        assert states[known, 0].tolist() == [1, 4, 6, 7, 8]

    def test_recorded_next_states_win(self) -> None:
        after = np.arange(100.0, 105.0)[:, None].repeat(2, axis=1)
        both = Trajectories.of(recording([3, 2], next_observations=after))
        states, known = both.drop(np.array([False, True, False, False, True])).next_observations()
        assert known.all()  # the source says what followed the last step, too
        assert states[:, 0].tolist() == [100, 102, 103]

    def test_after_take_and_concat(self, three: Trajectories) -> None:
        states, known = Trajectories.concat([three.take([2]), three.take([0])]).next_observations()
        assert known.tolist() == [True, True, True, False, True, True, False]
        assert states[known, 0].tolist() == [6, 7, 8, 1, 2]

    def test_after_stack(self) -> None:
        stacked = Trajectories.stack([Trajectories.of(recording([2])), Trajectories.of(recording([2], first=10))])
        states, known = stacked.next_observations()
        assert known.tolist() == [True, False, True, False]  # row 1 is not followed by the other part's row 10
        assert states[known, 0].tolist() == [1, 11]


class TestTake:
    def test_numbers_in_the_order_given(self, three: Trajectories) -> None:
        taken = three.take([2, 0])
        assert names(taken) == [[5, 6, 7, 8], [0, 1, 2]]
        assert taken.origins.tolist() == ["expert", "expert"]
        assert taken.returns.tolist() == [26, 3]

    def test_marks(self, three: Trajectories) -> None:
        assert names(three.take(three.origins == "random")) == [[3, 4]]

    def test_one_twice(self, three: Trajectories) -> None:
        assert names(three.take([1, 1])) == [[3, 4], [3, 4]]

    def test_none_is_an_error(self, three: Trajectories) -> None:
        with pytest.raises(UserError, match="no step is left"):
            three.take(np.zeros(3, dtype=bool))

    def test_wrong_number_of_marks(self, three: Trajectories) -> None:
        with pytest.raises(ValueError, match="2 marks for 3 trajectories"):
            three.take(np.ones(2, dtype=bool))

    @pytest.mark.parametrize("beyond", [[3], [0, 7]])
    def test_number_beyond_the_last(self, three: Trajectories, beyond: list[int]) -> None:
        with pytest.raises(IndexError):
            three.take(beyond)

    @pytest.mark.parametrize("number", [-1, -2, -3])
    def test_negative_numbers_are_refused_or_count_from_the_end(self, three: Trajectories, number: int) -> None:
        try:
            taken = names(three.take([number]))
        except (IndexError, ValueError, UserError):
            return
        assert taken == [names(three)[number]]


class TestDrop:
    def test_keeps_true_boundaries(self, three: Trajectories) -> None:
        kept = three.drop(np.isin(np.arange(9), [3]))  # the first step of a trajectory is lost
        assert names(kept) == [[0, 1, 2], [4], [5, 6, 7, 8]]  # and it is not glued to the one before
        assert kept.keeps_first.tolist() == [True, False, True]

    def test_empty_trajectories_disappear(self, three: Trajectories) -> None:
        kept = three.drop(np.isin(np.arange(9), [3, 4, 8]))
        assert names(kept) == [[0, 1, 2], [5, 6, 7]]
        assert kept.origins.tolist() == ["expert", "expert"]
        first_gone = three.drop(np.arange(9) < 3)
        assert names(first_gone) == [[3, 4], [5, 6, 7, 8]]
        assert first_gone.origins.tolist() == ["random", "expert"]

    def test_marks_count_kept_steps_not_rows(self, three: Trajectories) -> None:
        once = three.drop(np.arange(9) < 2)  # 2 | 3 4 | 5 6 7 8
        assert names(once.drop(np.array([False, True, False, False, False, True, False]))) == [[2], [4], [5, 6, 8]]

    def test_all_is_an_error(self, three: Trajectories) -> None:
        with pytest.raises(UserError, match="no step is left"):
            three.drop(np.ones(9, dtype=bool))

    def test_wrong_number_of_marks(self, three: Trajectories) -> None:
        with pytest.raises(ValueError, match="8 marks for 9 steps"):
            three.drop(np.zeros(8, dtype=bool))


class TestConcatAndStack:
    def test_concat(self, three: Trajectories) -> None:
        whole = Trajectories.concat([three.take([1]), three.take([0]).drop(np.array([False, True, False]))])
        assert names(whole) == [[3, 4], [0, 2]]
        assert whole.origins.tolist() == ["random", "expert"]

    def test_concat_refuses_two_recordings(self, three: Trajectories) -> None:
        with pytest.raises(ValueError, match="one recording"):
            Trajectories.concat([three, Trajectories.of(recording([3]))])

    def test_stack(self, three: Trajectories) -> None:
        other = Trajectories.of(recording([2, 2], first=100), "medium-replay").drop(
            np.array([True, False, False, False])
        )
        whole = Trajectories.stack([other, three.take([1])])
        assert names(whole) == [[101], [102, 103], [3, 4]]
        assert whole.origins.tolist() == ["medium-replay", "medium-replay", "random"]
        assert whole.actions[:, 0].tolist() == [-101, -102, -103, -3, -4]
        assert whole.keeps_first.tolist() == [False, True, True]

    def test_stack_keeps_what_all_parts_have(self, three: Trajectories) -> None:
        whole = Trajectories.stack([three, Trajectories.of(recording([1]))])
        assert set(whole.recording.arrays()) == {"observations", "actions"}
        both = Trajectories.stack([three, three])
        assert both.returns.tolist() == [3, 7, 26, 3, 7, 26]

    def test_stack_refuses_different_dimensions(self, three: Trajectories) -> None:
        with pytest.raises(UserError, match=r"observations: \[2, 3\] dimensions"):
            Trajectories.stack([three, Trajectories.of(recording([3], dim=3))])


class TestImmutable:
    def test_nothing_can_be_assigned(self, three: Trajectories) -> None:
        for thing, field in (
            (three, "index"),
            (three, "recording"),
            (three.recording, "observations"),
            (three.recording, "starts"),
        ):
            with pytest.raises(FrozenInstanceError):
                setattr(thing, field, None)

    def test_operations_share_the_arrays_and_leave_the_original_alone(self, three: Trajectories) -> None:
        before = names(three), three.index.copy(), three.offsets.copy(), three.origins.copy()
        derived = [
            three.take([2, 0]),
            three.drop(np.arange(9) % 2 == 0),
            Trajectories.concat([three, three.take([0])]),
        ]
        for other in derived:
            assert other.recording is three.recording
        assert names(three) == before[0]
        for array, old in zip((three.index, three.offsets, three.origins), before[1:], strict=True):
            np.testing.assert_array_equal(array, old)

    def test_reading_everything_copies_nothing(self, three: Trajectories) -> None:
        assert np.shares_memory(three.observations, three.recording.observations)
        assert np.shares_memory(three.actions, three.recording.actions)


@st.composite
def selections(draw: st.DrawFn) -> Trajectories:
    """Any selection that take and drop can make."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    origins = [f"origin{number}" for number in range(len(lengths))]
    selection = Trajectories.of(recording(lengths), origins)
    numbers = draw(st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=5))
    selection = selection.take(numbers)
    marks = draw(st.lists(st.booleans(), min_size=selection.steps, max_size=selection.steps))
    marks[draw(st.integers(0, selection.steps - 1))] = False
    return selection.drop(np.array(marks))


@given(selections(), st.data())
def test_drop_is_what_a_list_would_do(selection: Trajectories, data: st.DataObject) -> None:
    marks = data.draw(st.lists(st.booleans(), min_size=selection.steps, max_size=selection.steps))
    marks[0] = False
    lost, rest = iter(marks), []
    for rows, origin in zip(names(selection), selection.origins, strict=True):
        kept = [row for row in rows if not next(lost)]
        if kept:
            rest.append((kept, str(origin)))
    after = selection.drop(np.array(marks))
    assert list(zip(names(after), after.origins.tolist(), strict=True)) == rest


@given(selections())
def test_a_selection_holds_together(selection: Trajectories) -> None:
    rows = names(selection)
    starts = [*selection.recording.starts.tolist(), len(selection.recording.observations)]
    assert [len(part) for part in rows] == selection.lengths.tolist()
    assert selection.steps == sum(selection.lengths)
    for part, origin in zip(rows, selection.origins, strict=True):
        number = int(str(origin).removeprefix("origin"))
        assert part == sorted(part)
        assert starts[number] <= part[0] and part[-1] < starts[number + 1]  # the label still names the trajectory
    states, known = selection.next_observations()
    flat = np.concatenate([np.array(part) for part in rows])
    np.testing.assert_array_equal(known, ~np.isin(flat + 1, starts[1:]))
    np.testing.assert_array_equal(states[known, 0], (flat + 1)[known])
    np.testing.assert_allclose(selection.mean(flat), [np.mean(part) for part in rows])


@given(selections(), st.data())
def test_concat_of_takes_is_one_take(selection: Trajectories, data: st.DataObject) -> None:
    number = st.lists(st.integers(0, len(selection) - 1), min_size=1, max_size=4)
    one, two = data.draw(number), data.draw(number)
    parts = Trajectories.concat([selection.take(one), selection.take(two)])
    whole = selection.take(one + two)
    assert names(parts) == names(whole)
    assert parts.origins.tolist() == whole.origins.tolist()


@given(selections(), selections())
def test_stack_is_both_one_after_the_other(one: Trajectories, two: Trajectories) -> None:
    whole = Trajectories.stack([one, two])
    assert names(whole) == names(one) + names(two)
    assert whole.origins.tolist() == one.origins.tolist() + two.origins.tolist()
    np.testing.assert_array_equal(
        whole.next_observations()[1], np.append(*(t.next_observations()[1] for t in (one, two)))
    )
