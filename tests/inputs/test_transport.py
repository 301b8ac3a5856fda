"""OTR's rewards: the plan against POT's, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import ot
import pytest

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.inputs import transport
from tailo_pl.inputs.transport import TransportRewards, groups_of_like_length, transport_costs, transport_rewards


def trajectories(lengths: list[int], seed: int = 0, dim: int = 3) -> Trajectories:
    states = np.random.default_rng(seed).normal(0, 1, (sum(lengths), dim)).astype(np.float32)
    return Trajectories.of(Recording(states, np.cumsum([0, *lengths[:-1]])))


def costs_by_pot(states: np.ndarray, expert: np.ndarray, epsilon: float, iterations: int) -> np.ndarray:
    cost = ot.dist(states.astype(np.float64), expert.astype(np.float64), metric="cosine")
    count, width = cost.shape
    plan = ot.bregman.sinkhorn_log(
        np.full(count, 1 / count), np.full(width, 1 / width), cost, epsilon,
        numItermax=iterations, stopThr=0, warn=False,
    )  # fmt: skip
    return (plan * cost).sum(1) * count / 1000  # POT's masses sum to 1, ours are 1/1000 per step


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_costs_of_padded_trajectories_are_pots(epsilon: float) -> None:
    ta, expert = trajectories([4, 6, 1]), trajectories([5], seed=1).observations.astype(np.float64)
    padded = np.ones((3, 6, 3))
    for number in range(3):
        padded[number, : ta.lengths[number]] = ta.take([number]).observations
    costs = transport_costs(padded, ta.lengths, expert, epsilon, 100)
    for number, length in enumerate(ta.lengths):
        theirs = costs_by_pot(ta.take([number]).observations, expert, epsilon, 100)
        assert costs[number, :length] == pytest.approx(theirs, rel=1e-6)
        assert (costs[number, length:] == 0).all()


def test_opposite_states_stay_within_the_numbers_there_are() -> None:
    """The largest cost there is, everywhere: exp(-2 / 0.01) in every entry of the kernel."""
    states, expert = np.ones((1, 3, 2)), -np.ones((4, 2))
    costs = transport_costs(states, np.array([3]), expert, 0.01, 100)
    assert costs == pytest.approx(np.full((1, 3), 2 / 1000))


def test_rewards_by_hand() -> None:
    """One trajectory on the expert's only state, one at a right angle to it: costs 0 and 1/1000 per step."""
    ta = Trajectories.of(Recording(np.array([[2, 0], [3, 0], [0, 1], [0, 5]], dtype=np.float32), np.array([0, 2])))
    ts = Trajectories.of(Recording(np.array([[1, 0]], dtype=np.float32), np.array([0])))
    near, far = 5.0, 5 * np.exp(-5000 / 2 / 1000)
    scale = 1000 / (2 * near - 2 * far)
    rewards = transport_rewards(Task(ts, ta), TransportRewards(), ordered=True)
    assert rewards == pytest.approx(np.array([near, near, far, far]) * scale)


def test_the_best_of_several_experts_counts() -> None:
    ta, ts = trajectories([4, 5, 7]), trajectories([3, 6], seed=1)
    alone = []
    for number in range(2):
        expert = ts.take([number]).observations.astype(np.float64)
        costs = [costs_by_pot(ta.take([k]).observations, expert, 0.01, 100) for k in range(3)]
        alone.append([5 * np.exp(-5000 / 3 * one) for one in costs])
    best = [max(pair, key=np.sum) for pair in zip(*alone, strict=True)]
    returns = [one.sum() for one in best]
    expected = np.concatenate(best) * 1000 / (max(returns) - min(returns))
    rewards = transport_rewards(Task(ts, ta), TransportRewards(), ordered=True)
    assert rewards == pytest.approx(expected, rel=1e-3)
    together = transport_rewards(Task(ts, ta), TransportRewards(), ordered=False)
    assert not np.allclose(together, rewards)


def test_groups_hold_every_trajectory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ta = trajectories([5, 1, 3, 9, 2, 2, 4])
    monkeypatch.setattr(transport, "GROUP_NUMBERS", 100)
    seen = []
    for numbers, padded, lengths in groups_of_like_length(ta, 10):
        assert padded.shape[0] * padded.shape[1] * 10 <= 100 or len(numbers) == 1
        for row, number in enumerate(numbers):
            assert np.array_equal(padded[row, : lengths[row]], ta.take([number]).observations)
        seen += numbers.tolist()
    assert sorted(seen) == list(range(7))


def test_an_epsilon_the_arithmetic_cannot_hold() -> None:
    with pytest.raises(UserError, match=r"transport.epsilon: 0.001 given"):
        TransportRewards(epsilon=0.001)


def test_an_offset_is_added_to_every_reward(trajectories_of: Callable[..., Trajectories]) -> None:
    rng = np.random.default_rng(0)
    task = Task(trajectories_of(rng.normal(size=(4, 3)), [4]), trajectories_of(rng.normal(size=(9, 3)), [5, 4]))
    plain, moved = (transport_rewards(task, TransportRewards(offset=by), ordered=True) for by in (0.0, -2.0))
    np.testing.assert_allclose(moved, plain - 2, rtol=1e-6)
