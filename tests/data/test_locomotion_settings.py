"""The settings of the paper on locomotion data: exactly which steps end up in TS and in TA."""

from __future__ import annotations

import numpy as np
import pytest

from tailo_pl.data.settings import ExpertsAndOthers, IncompleteTA, IncompleteTS, Mismatch, OfflineRL, Setting, Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError


def part(lengths: list[int], first_value: int, origin: str) -> Trajectories:
    """Trajectories whose states are numbered from `first_value` on; each step's reward is its state."""
    values = np.arange(first_value, first_value + sum(lengths), dtype=np.float32)
    starts = np.cumsum([0, *lengths[:-1]])
    recording = Recording(observations=values[:, None], starts=starts, actions=values[:, None], rewards=values)
    return Trajectories.of(recording, origin)


PARTS = {
    "expert": part([4, 3, 4], 100, "expert"),
    "random": part([2, 3], 0, "random"),
    "medium": part([5, 2], 50, "medium"),
    "mismatch": part([3], 900, "half-torso"),
}


def cut(setting: Setting) -> Task:
    return setting.cut({name: PARTS[name] for name in setting.parts})


def states(trajectories: Trajectories) -> list[list[int]]:
    values = trajectories.observations[:, 0].astype(int)
    return [values[a:b].tolist() for a, b in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True)]


def test_standard_takes_the_first_experts_then_all_random() -> None:
    task = cut(ExpertsAndOthers(experts=2))
    assert states(task.ts) == [[100, 101, 102, 103]]
    assert states(task.ta) == [[100, 101, 102, 103], [104, 105, 106], [0, 1], [2, 3, 4]]
    assert task.ta.origins.tolist() == ["expert", "expert", "random", "random"]


def test_recoil_puts_the_others_first() -> None:
    task = cut(ExpertsAndOthers(experts=1, experts_first=False))
    assert states(task.ta) == [[0, 1], [2, 3, 4], [100, 101, 102, 103]]
    task = cut(ExpertsAndOthers(experts=3, others="medium", experts_first=False))
    assert states(task.ta)[:2] == [[50, 51, 52, 53, 54], [55, 56]]
    assert len(task.ta) == 5


def test_more_experts_than_there_are_is_refused() -> None:
    with pytest.raises(UserError, match=r"setting\.experts: 4 asked for, but the source has 3"):
        cut(ExpertsAndOthers(experts=4))


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        # i % 2 == 1 of 100..106, 0..4: positions 1, 3, 5, 7, 9, 11 are gone
        (2, [[100, 102], [104, 106], [1], [3]]),
        # i % 3 == 1: positions 1, 4, 7, 10
        (3, [[100, 102, 103], [105, 106], [1], [2, 4]]),
        # i % 5 == 2: positions 2, 7
        (5, [[100, 101, 103], [104, 105, 106], [1], [2, 3, 4]]),
    ],
)
def test_incomplete_ta_drops_every_xth_step_of_the_concatenation(every: int, expected: list[list[int]]) -> None:
    task = cut(IncompleteTA(every=every, experts=2))
    assert states(task.ta) == expected
    assert states(task.ts) == [[100, 101, 102, 103]]  # TS is whole


def test_incomplete_ta_keeps_the_recorded_next_state_of_a_step_whose_neighbour_is_gone() -> None:
    ta = cut(IncompleteTA(every=2, experts=2)).ta
    following, known = ta.next_observations()
    # 100 -> 101 although 101 is gone; 104 -> 105; 106 was the last of its trajectory.
    assert dict(zip(ta.observations[:4, 0], following[:4, 0], strict=True)) == {100: 101, 102: 103, 104: 105, 106: 106}
    assert known[:4].tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 2, [100, 102, 103]), (2, 0, [100, 101]), (0, 1, [103]), (9, 9, [100, 101, 102, 103])],
)
def test_incomplete_ts_keeps_the_first_and_last_states(first: int, last: int, expected: list[int]) -> None:
    task = cut(IncompleteTS(first=first, last=last, experts=2))
    assert states(task.ts) == [expected]
    assert len(task.ta) == 4


def test_incomplete_ts_needs_a_state() -> None:
    with pytest.raises(UserError, match=r"setting\.first \+ setting\.last"):
        IncompleteTS(first=0, last=0)


def test_mismatch_takes_ts_from_the_other_body() -> None:
    task = cut(Mismatch(experts=2))
    assert states(task.ts) == [[900, 901, 902]]
    assert states(task.ta)[0] == [100, 101, 102, 103]


def test_offline_rl_takes_the_trajectory_of_highest_return() -> None:
    task = cut(OfflineRL("medium"))  # returns 50+...+54 = 260 and 55+56 = 111
    assert states(task.ts) == [[50, 51, 52, 53, 54]]
    assert states(task.ta) == [[50, 51, 52, 53, 54], [55, 56]]
