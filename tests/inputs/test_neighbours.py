"""SEABO's rewards against a search by hand through all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.inputs import neighbours
from tailo_pl.inputs.neighbours import NeighbourRewards, neighbour_rewards


def trajectories(lengths: list[int], seed: int, dim: int = 3) -> Trajectories:
    rng = np.random.default_rng(seed)
    states = rng.normal(0, 1, (sum(lengths), dim)).astype(np.float32)
    actions = rng.uniform(-1, 1, (sum(lengths), 2)).astype(np.float32)
    return Trajectories.of(Recording(states, np.cumsum([0, *lengths[:-1]]), actions=actions))


def by_brute_force(task: Task, pairs: bool, scale: float, offset: float) -> list[float]:
    def points(part: Trajectories, *, last: bool) -> list[np.ndarray]:
        found = []
        for number in range(len(part.lengths)):
            states = np.asarray(part.take([number]).observations, dtype=np.float64)
            for step in range(len(states)):
                if not pairs:
                    found.append(states[step])
                elif step + 1 < len(states):
                    found.append(np.hstack([states[step], states[step + 1]]))
                elif last:
                    found.append(np.hstack([states[step], states[step]]))
        return found

    known = points(task.ts, last=False)
    return [
        float(np.exp(-scale * min(np.linalg.norm(point - one) for one in known) / 2) + offset)
        for point in points(task.ta, last=True)
    ]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 99), st.booleans())
def test_rewards_are_those_of_brute_force(lengths: list[int], seed: int, pairs: bool) -> None:
    task = Task(trajectories([4, 3], seed + 1), trajectories(lengths, seed))
    given = NeighbourRewards(scale=0.7, offset=-1.0, pairs=pairs)
    assert neighbour_rewards(task, given) == pytest.approx(by_brute_force(task, pairs, 0.7, -1.0), abs=1e-6)


def test_small_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(trajectories([5], 1), trajectories([7, 4, 6], 0))
    whole = neighbour_rewards(task, NeighbourRewards())
    monkeypatch.setattr(neighbours, "GROUP_NUMBERS", 12)
    assert neighbour_rewards(task, NeighbourRewards()).tolist() == whole.tolist()


def test_the_experts_own_steps_have_the_largest_reward() -> None:
    ts = trajectories([6], 0)
    states = np.asarray(ts.observations) + np.float32(1000)  # far from the origin: nothing may cancel
    far = Trajectories.of(Recording(states, np.array([0]), actions=np.zeros((6, 2), dtype=np.float32)))
    rewards = neighbour_rewards(Task(far, far), NeighbourRewards())
    assert rewards[:5].tolist() == [1.0] * 5 and rewards[5] < 1


def test_recorded_next_states_count() -> None:
    states, nexts = np.array([[0.0], [5.0]], dtype=np.float32), np.array([[1.0], [7.0]], dtype=np.float32)
    recording = Recording(states, np.array([0]), actions=np.zeros((2, 1), dtype=np.float32), next_observations=nexts)
    ts = Trajectories.of(Recording(np.array([[5.0], [6.0]], dtype=np.float32), np.array([0])))
    rewards = neighbour_rewards(Task(ts, Trajectories.of(recording)), NeighbourRewards(scale=1.0))
    assert rewards == pytest.approx([np.exp(-np.hypot(5, 5)), np.exp(-1)])


def test_constants() -> None:
    with pytest.raises(UserError, match=r"neighbours.scale: 0 given, expected a number in \(0, inf\)"):
        NeighbourRewards(scale=0)
