"""Pointmaze as the method's table: start, goal, horizon, reward, and what the two reference policies reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tailo_pl.envs.evaluation import episode_seeds, play, run_episodes
from tailo_pl.envs.gym_rows import GymRows
from tailo_pl.envs.pointmaze import GOALS, PointMaze, controller

SEEDS = episode_seeds(0, "test", 6)


@pytest.fixture(scope="module")
def simulator() -> Iterator[GymRows]:
    rows = PointMaze().simulator(2)
    yield rows
    rows.close()


def scripted(direction: str = "left", noise: float = 0.0, seed: int = 0) -> Callable[..., NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    return lambda states: controller(states, direction, noise, rng)


def test_what_the_simulator_says_of_itself(simulator: GymRows) -> None:
    env = PointMaze()
    assert (simulator.observation_dim, simulator.action_dim) == (env.observation_dim, len(env.action_low)) == (4, 2)
    np.testing.assert_array_equal(simulator.action_low, env.action_low)
    np.testing.assert_array_equal(simulator.action_high, env.action_high)
    assert simulator.horizon == env.horizon == 200
    assert env.knows_success


def test_starts_around_the_middle(simulator: GymRows) -> None:
    starts = np.concatenate([simulator.reset(np.arange(2), np.array([k, 1000 + k])) for k in range(40)])
    assert np.abs(starts[:, :2] - 4).max() <= 0.1
    assert np.abs(starts[:, :2] - 4).max() > 0.08  # it does use the whole square
    assert np.abs(starts[:, :2].mean(0) - 4).max() < 0.04
    assert (starts[:, 2:] == 0).all()


def test_the_seed_decides_the_start(simulator: GymRows) -> None:
    one = simulator.reset(np.array([0, 1]), np.array([5, 6]))
    assert not np.array_equal(one[0], one[1])
    np.testing.assert_array_equal(simulator.reset(np.array([0, 1]), np.array([6, 5])), one[::-1])


def test_reaching_the_goal_ends_the_episode(simulator: GymRows) -> None:
    moments = list(play(simulator, scripted(), SEEDS[:1].tolist()))
    distances = [np.linalg.norm(moment.step.observations[0, :2] - [1, 4]) for moment in moments]
    assert distances[-1] <= 0.17 < distances[-2]
    assert [moment.step.rewards[0] for moment in moments] == [0] * (len(moments) - 1) + [1]
    assert [bool(moment.step.terminated[0]) for moment in moments] == [False] * (len(moments) - 1) + [True]
    assert not moments[-1].step.truncated[0]
    assert 50 < len(moments) < 200


def test_standing_still_ends_after_200_steps(simulator: GymRows) -> None:
    moments = list(play(simulator, lambda states: np.zeros((len(states), 2)), SEEDS[:2].tolist()))
    assert len(moments) == 200
    assert moments[-1].step.truncated.all() and not moments[-1].step.terminated.any()
    assert not any(moment.step.truncated.any() for moment in moments[:-1])
    assert all((moment.step.rewards == 0).all() for moment in moments)


@pytest.mark.parametrize("direction", list(GOALS))
def test_only_the_way_that_is_asked_for_counts(simulator: GymRows, direction: str) -> None:
    episodes = run_episodes(simulator, scripted(direction), SEEDS[:2])
    assert episodes.terminated.all() == episodes.success.all() == (direction == "left")
    assert (episodes.returns == (direction == "left")).all()


def test_goal_lies_where_the_direction_says() -> None:
    up = PointMaze("up").simulator(1)
    try:
        assert run_episodes(up, scripted("up"), SEEDS[:1]).terminated.all()
        assert not run_episodes(up, scripted("left"), SEEDS[:1]).terminated.any()
    finally:
        up.close()


def test_controller_scores_100_and_random_0(simulator: GymRows) -> None:
    reference = PointMaze().reference  # measured over 1,000 episodes, so a lucky random one may have moved it a little
    scripted_returns = run_episodes(simulator, scripted(noise=0.5), SEEDS).returns
    assert reference.normalise(scripted_returns).mean() == pytest.approx(100, abs=1)
    rng = np.random.default_rng(0)
    random_returns = run_episodes(simulator, lambda states: rng.uniform(-1, 1, (len(states), 2)), SEEDS).returns
    assert reference.normalise(random_returns).mean() == pytest.approx(0, abs=1)


def test_controller_stays_within_the_bounds() -> None:
    states = np.random.default_rng(0).uniform(-8, 8, (500, 4))
    actions = controller(states, "left", 3.0, np.random.default_rng(0))
    assert actions.shape == (500, 2)
    assert actions.min() == -1 and actions.max() == 1


def test_same_seeds_same_episodes_whatever_the_rows(simulator: GymRows) -> None:
    def paths(rows: GymRows) -> dict[int, list[list[float]]]:
        path: dict[int, list[list[float]]] = {}
        for moment in play(rows, scripted(), SEEDS[:5].tolist()):
            for episode, state in zip(moment.episodes.tolist(), moment.step.observations.tolist(), strict=True):
                path.setdefault(episode, []).append(state)
        return path

    expected = paths(simulator)  # used before: what it did earlier must not show either
    for count in (1, 5):
        fresh = PointMaze().simulator(count)
        try:
            assert paths(fresh) == expected
        finally:
            fresh.close()


def test_rows_are_independent(simulator: GymRows) -> None:
    """Stepping one row leaves the other alone."""
    start = simulator.reset(np.array([0, 1]), np.array([5, 6]))
    push = np.array([[1.0, 0.0]])
    for _ in range(5):
        simulator.step(np.array([0]), push)
    step = simulator.step(np.array([1]), np.zeros((1, 2)))
    np.testing.assert_allclose(step.observations[0], start[1], atol=1e-9)
