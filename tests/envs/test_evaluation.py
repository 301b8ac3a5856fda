"""Episodes side by side: rows restart, and nothing depends on how many rows there are."""

from __future__ import annotations

from itertools import count, islice

import numpy as np
import pytest
from numpy.typing import NDArray

from tailo_pl.envs.evaluation import Moment, episode_seeds, play, run_episodes
from tailo_pl.envs.simulator import Step


class Countdown:
    """An episode of seed n lasts n % 10 steps (at most 6: then it is truncated); each rewards what the action says.
    With three steps left the task is accomplished.

    The observation is (seed, steps left), so it tells which episode it belongs to.
    """

    observation_dim, action_dim, horizon = 2, 1, 6
    action_low, action_high = np.array([-1.0]), np.array([1.0])

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.seeds = np.zeros(rows, dtype=np.int64)
        self.left = np.zeros(rows, dtype=np.int64)
        self.elapsed = np.zeros(rows, dtype=np.int64)
        self.resets: list[tuple[list[int], list[int]]] = []

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
        assert (self.left[rows] == 0).all() | (self.elapsed[rows] == self.horizon).all()
        self.resets.append((rows.tolist(), seeds.tolist()))
        self.seeds[rows], self.left[rows], self.elapsed[rows] = seeds, seeds % 10, 0
        return self._observe(rows)

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        assert len(set(rows.tolist())) == len(rows) == len(actions)
        assert (self.left[rows] > 0).all()  # an ended episode is never stepped
        self.left[rows] -= 1
        self.elapsed[rows] += 1
        truncated = self.elapsed[rows] == self.horizon
        rewards, done, success = actions[:, 0].astype(np.float64), self.left[rows] == 0, self.left[rows] == 3
        return Step(self._observe(rows), rewards, done, truncated, success)

    def _observe(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.stack([self.seeds[rows], self.left[rows]], axis=1).astype(np.float64)

    def close(self) -> None:
        pass


def own_seed(observations: NDArray[np.float64]) -> NDArray[np.float64]:
    """An action that tells which episode asked for it."""
    return observations[:, :1]


SEEDS = np.array([13, 21, 35, 41, 58, 62, 74])


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 20])
def test_results_by_hand_whatever_the_rows(rows: int) -> None:
    episodes = run_episodes(Countdown(rows), own_seed, SEEDS)
    # Lengths are the last digits, 8 cut to 6; each step rewards the seed.
    assert episodes.lengths.tolist() == [3, 1, 5, 1, 6, 2, 4]
    assert episodes.returns.tolist() == [39, 21, 175, 41, 348, 124, 296]
    assert episodes.terminated.tolist() == [True, True, True, True, False, True, True]
    # One successful step is enough, wherever it lies.
    assert episodes.success.tolist() == [False, False, True, False, True, False, True]


def test_a_row_that_ends_takes_the_next_seed() -> None:
    simulator = Countdown(2)
    moments = list(play(simulator, own_seed, SEEDS.tolist()))
    # 13 and 21 begin; 21 ends after one step, its row takes 35; 13 ends after three, its row takes 41; ...
    assert simulator.resets == [
        ([0, 1], [13, 21]),
        ([1], [35]),
        ([0], [41]),
        ([0], [58]),
        ([1], [62]),
        ([1], [74]),
    ]
    assert [moment.episodes.tolist() for moment in moments[:5]] == [[0, 1], [0, 2], [0, 2], [2, 3], [2, 4]]


def test_moments_tell_who_saw_and_did_what() -> None:
    by_episode: dict[int, list[Moment]] = {}
    for moment in play(Countdown(3), own_seed, SEEDS.tolist()):
        np.testing.assert_array_equal(moment.observations[:, 0], SEEDS[moment.episodes])
        np.testing.assert_array_equal(moment.actions[:, 0], SEEDS[moment.episodes])
        np.testing.assert_array_equal(moment.step.observations[:, 1], moment.observations[:, 1] - 1)
        for episode in moment.episodes.tolist():
            by_episode.setdefault(episode, []).append(moment)
    assert {episode: len(moments) for episode, moments in by_episode.items()} == dict(enumerate([3, 1, 5, 1, 6, 2, 4]))


def test_earlier_moments_are_not_overwritten() -> None:
    moments = list(play(Countdown(2), own_seed, [15, 25]))
    assert [moment.observations[0, 1] for moment in moments] == [5, 4, 3, 2, 1]


def test_one_policy_call_per_step_for_all_rows() -> None:
    calls: list[int] = []

    def actor(observations: NDArray[np.float64]) -> NDArray[np.float64]:
        calls.append(len(observations))
        return own_seed(observations)

    run_episodes(Countdown(10), actor, np.array([13, 12, 11]))
    assert calls == [3, 2, 1]


def test_endless_seeds() -> None:
    moments = islice(play(Countdown(2), own_seed, (10 * number + 1 for number in count())), 50)
    assert [moment.episodes.tolist() for moment in moments] == [[2 * k, 2 * k + 1] for k in range(50)]


def test_no_seeds_no_moments() -> None:
    assert list(play(Countdown(2), own_seed, [])) == []


def test_episode_seeds() -> None:
    seeds = episode_seeds(0, "rollout", 100)
    assert seeds.dtype == np.int64 and (seeds >= 0).all() and len(set(seeds.tolist())) == 100
    assert np.array_equal(seeds, episode_seeds(0, "rollout", 100))
    assert np.array_equal(seeds[:10], episode_seeds(0, "rollout", 10))
    for other in (episode_seeds(1, "rollout", 100), episode_seeds(0, "evaluate", 100)):
        assert not set(seeds.tolist()) & set(other.tolist())
