"""LocomotionRows is gymnasium's environment, many times over."""

from __future__ import annotations

import warnings

import gymnasium
import mujoco
import numpy as np
import pytest

from tailo_pl.envs.bodies import STOCK, load_model
from tailo_pl.envs.locomotion import Locomotion, LocomotionRows
from tailo_pl.errors import UserError
from tailo_pl.experts import load_expert

GYMNASIUM = {"ant": "Ant-v4", "halfcheetah": "HalfCheetah-v4", "hopper": "Hopper-v4", "walker2d": "Walker2d-v4"}
SHAPES = {"ant": (27, 8), "halfcheetah": (17, 6), "hopper": (11, 3), "walker2d": (17, 6)}
CASES = [(task, STOCK) for task in GYMNASIUM] + [("ant", "crippled-leg"), ("halfcheetah", "half-torso")]


def make_gymnasium(task: str, body: str) -> gymnasium.Env:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # -v4 is meant
        env = gymnasium.make(GYMNASIUM[task], disable_env_checker=True)
    if body != STOCK:  # the same environment around another model
        env.unwrapped.model = load_model(task, body)
        env.unwrapped.data = mujoco.MjData(env.unwrapped.model)
    return env


@pytest.mark.parametrize(("task", "body"), CASES)
def test_equals_gymnasium_over_1000_steps(task: str, body: str) -> None:
    """Observation, reward and ends: one row acted by the expert, which lives long, and one by chance, which falls."""
    rows = np.arange(2)
    simulator, envs = LocomotionRows(task, 2, body=body), [make_gymnasium(task, body) for _ in rows]
    expert, rng = load_expert(task), np.random.default_rng(0)
    seeds = rng.integers(2**31, size=(1001, 2))
    observations = simulator.reset(rows, seeds[-1])
    for row, env in enumerate(envs):
        np.testing.assert_array_equal(observations[row], env.reset(seed=int(seeds[-1, row]))[0])
    ends = 0
    for t in range(1000):
        actions = expert.act(observations)
        actions[1] = rng.uniform(-1, 1, simulator.action_dim)
        step = simulator.step(rows, actions)
        observations = step.observations.copy()
        for row, env in enumerate(envs):
            observation, reward, terminated, truncated, _ = env.step(actions[row])
            np.testing.assert_allclose(step.observations[row], observation, rtol=0, atol=1e-10)
            assert abs(step.rewards[row] - reward) <= 1e-10
            assert (step.terminated[row], step.truncated[row]) == (terminated, truncated)
            if terminated or truncated:
                ends += 1
                observations[[row]] = simulator.reset(rows[[row]], seeds[t, [row]])
                np.testing.assert_array_equal(observations[row], env.reset(seed=int(seeds[t, row]))[0])
    assert ends >= 2  # both ways of ending were met: falls, or the time limit where there is no fall
    simulator.close()


@pytest.mark.parametrize("task", GYMNASIUM)
def test_spaces(task: str) -> None:
    simulator = LocomotionRows(task, 3, threads=1)
    assert (simulator.observation_dim, simulator.action_dim) == SHAPES[task]
    assert (simulator.rows, simulator.horizon) == (3, 1000)
    assert simulator.action_low.tolist() == [-1] * simulator.action_dim
    assert simulator.action_high.tolist() == [1] * simulator.action_dim
    assert simulator.reset(np.arange(3), np.arange(3)).shape == (3, SHAPES[task][0])


@pytest.mark.parametrize("task", GYMNASIUM)
def test_endings_can_be_told_from_states(task: str) -> None:
    rng, rows = np.random.default_rng(0), np.arange(10)
    environment = Locomotion(task)
    simulator = environment.simulator(10)
    simulator.reset(rows, rows)
    ended = []
    for _ in range(60):
        step = simulator.step(rows, rng.uniform(environment.action_low, environment.action_high, (10, SHAPES[task][1])))
        assert environment.ended(step.observations).tolist() == step.terminated.tolist()
        ended.append(step.terminated)
    assert environment.knows_endings and np.any(ended) == (task != "halfcheetah")


def test_ant_is_padded_with_the_84_zeros_of_d4rl() -> None:
    padded, plain = LocomotionRows("ant", 1, pad_contact_forces=True), LocomotionRows("ant", 1)
    assert padded.observation_dim == 111
    row, seed, action = np.array([0]), np.array([3]), np.full((1, 8), 0.5)
    for a, b in (
        (padded.reset(row, seed), plain.reset(row, seed)),
        (padded.step(row, action).observations, plain.step(row, action).observations),
    ):
        np.testing.assert_array_equal(a, np.pad(b, ((0, 0), (0, 84))))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_row_does_not_depend_on_the_others(threads: int) -> None:
    """Whoever is stepped along with a row, in whatever order and by however many threads: it goes the same way."""
    rng = np.random.default_rng(1)
    actions = rng.uniform(-1, 1, (60, 5, 6))
    alone, together = LocomotionRows("walker2d", 1, threads=1), LocomotionRows("walker2d", 5, threads=threads)
    together.reset(np.arange(5), np.arange(5))
    taken = np.zeros(5, dtype=int)
    paths: list[list[np.ndarray]] = [[] for _ in range(5)]
    for _ in range(60):
        rows = rng.permutation(5)[: rng.integers(1, 6)]
        for row, observation in zip(rows, together.step(rows, actions[taken[rows], rows]).observations, strict=True):
            paths[row].append(observation)
        taken[rows] += 1
    for row, path in enumerate(paths):
        alone.reset(np.array([0]), np.array([row]))
        for t, observation in enumerate(path):
            np.testing.assert_array_equal(alone.step(np.array([0]), actions[t, [row]]).observations[0], observation)


def test_truncation_counts_each_row_from_its_own_reset() -> None:
    simulator = LocomotionRows("halfcheetah", 2)
    both, second = np.arange(2), np.array([1])
    simulator.reset(both, both)
    idle = np.zeros((2, 6))
    for _ in range(10):
        simulator.step(both, idle)
    simulator.reset(second, second)
    truncated = np.array([simulator.step(both, idle).truncated for _ in range(1000)])
    assert [int(np.flatnonzero(column)[0]) for column in truncated.T] == [989, 999]


def test_no_rows_is_no_step() -> None:
    step = LocomotionRows("hopper", 2).step(np.empty(0, dtype=np.int64), np.empty((0, 3)))
    assert step.observations.shape == (0, 11) and step.rewards.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "swimmer", "rows": 1}, "swimmer.*ant, halfcheetah, hopper, walker2d"),
        ({"task": "ant", "rows": 1, "body": "half-torso"}, "half-torso.*stock, crippled-leg"),
        ({"task": "hopper", "rows": 1, "pad_contact_forces": True}, "only ant"),
        ({"task": "hopper", "rows": 0}, "rows: 0"),
        ({"task": "hopper", "rows": 1, "threads": 0}, "threads: 0"),
    ],
)
def test_mistakes_are_named(arguments: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LocomotionRows(**arguments)


def test_actions_of_another_shape_are_refused() -> None:
    simulator = LocomotionRows("hopper", 2)
    with pytest.raises(ValueError, match=r"\(2, 4\).*\(2, 3\)"):
        simulator.step(np.arange(2), np.zeros((2, 4)))
