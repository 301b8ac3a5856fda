"""Kitchen against FrankaKitchen-v1 and D4RL's table: both layouts, what counts as done, rewards, starts."""

from __future__ import annotations

from collections.abc import Iterator

import gymnasium
import gymnasium_robotics  # noqa: F401  # registers FrankaKitchen-v1
import numpy as np
import pytest
from numpy.typing import NDArray

from tailo_pl.envs.environment import Environment
from tailo_pl.envs.evaluation import run_episodes, summarise
from tailo_pl.envs.gym_rows import MujocoRows
from tailo_pl.envs.kitchen import Kitchen, KitchenEpisode, goal_numbers, laid_out, positions
from tailo_pl.envs.kitchen_tasks import SUBTASKS, Layout
from tailo_pl.errors import UserError

# D4RL's kitchen: where each thing lies among the 30 positions, and where it should be.
D4RL_TABLE = {
    "bottom burner": {11: -0.88, 12: -0.01},
    "top burner": {15: -0.92, 16: -0.01},
    "light switch": {17: -0.69, 18: -0.05},
    "slide cabinet": {19: 0.37},
    "hinge cabinet": {20: 0.0, 21: 1.45},
    "microwave": {22: -0.75},
    "kettle": {23: -0.23, 24: 0.75, 25: 1.62, 26: 0.99, 27: 0.0, 28: 0.0, 29: -0.06},
}
MIXED = ("microwave", "kettle", "bottom burner", "light switch")
COMPLETE = ("microwave", "kettle", "light switch", "slide cabinet")


@pytest.fixture(scope="module")
def episode() -> Iterator[KitchenEpisode]:
    made = KitchenEpisode("mixed", start_noise=0.1)
    yield made
    made.close()


def put(episode: KitchenEpisode, *subtasks: str) -> None:
    """Move things to where they should be, by hand."""
    for subtask in subtasks:
        for joint, goal in D4RL_TABLE[subtask].items():
            episode.data.qpos[joint] = goal


def test_states_are_those_of_franka_kitchen(episode: KitchenEpisode) -> None:
    stock, ours = gymnasium.make("FrankaKitchen-v1"), KitchenEpisode("mixed")
    rng = np.random.default_rng(0)
    try:
        theirs, _ = stock.reset(seed=7)
        state, _ = ours.reset(seed=7)
        for _ in range(5):
            np.testing.assert_array_equal(state, theirs["observation"])
            action = rng.uniform(-1, 1, 9)
            theirs, *_ = stock.step(action)
            state, *_ = ours.step(action)
    finally:
        stock.close()
        ours.close()


def test_d4rls_layout_is_positions_and_the_goals_that_are_wanted() -> None:
    state = np.arange(100.0, 159.0)
    for task, subtasks in (("mixed", MIXED), ("complete", COMPLETE), ("kettle", ("kettle",))):
        expected = np.zeros(30)
        for joint, goal in (pair for subtask in subtasks for pair in D4RL_TABLE[subtask].items()):
            expected[joint] = goal
        theirs = laid_out(state, "d4rl", task)
        np.testing.assert_array_equal(theirs[:9], state[:9])  # the robot
        np.testing.assert_array_equal(theirs[9:30], state[18:39])  # the things, without their speeds
        np.testing.assert_array_equal(theirs[30:], expected)
        np.testing.assert_array_equal(positions(theirs, "d4rl"), positions(state, "robotics"))
    assert (30 + np.flatnonzero(goal_numbers("mixed"))).tolist() == [41, 42, 47, 48, 52, 53, 54, 55, 56, 59]
    # What the setting kitchen_complete differs in, in units of a floor of 0.001 where a number never varies.
    change = (goal_numbers("complete") - goal_numbers("mixed")) / 1e-3
    assert {30 + at: round(change[at]) for at in np.flatnonzero(change)} == {41: 880, 42: 10, 49: 370}


@pytest.mark.parametrize("layout", ["robotics", "d4rl"])
def test_states_show_what_is_done(episode: KitchenEpisode, layout: Layout) -> None:
    environment = Kitchen("mixed", layout)
    episode.reset(seed=0)
    for subtask in SUBTASKS:
        before = done(environment, episode, layout)
        put(episode, subtask)
        after = done(environment, episode, layout)
        assert [name for name in SUBTASKS if name in after and name not in before] == [subtask]


def done(environment: Environment, episode: KitchenEpisode, layout: Layout) -> set[str]:
    robot = np.append(episode.data.qpos[:9], episode.data.qvel[:9])
    things = np.append(episode.data.qpos[9:], episode.data.qvel[9:])
    state = laid_out(np.append(robot, things), layout, "mixed")
    assert state.shape == (environment.observation_dim,)
    return {name for name, true in zip(SUBTASKS, environment.subtasks_done(state), strict=True) if true}


def test_each_wanted_subtask_counts_once_and_all_of_them_end_the_episode(episode: KitchenEpisode) -> None:
    episode.reset(seed=0)
    still = np.zeros(9)
    got = []
    for subtasks in ((), ("microwave",), (), ("slide cabinet",), ("kettle", "bottom burner"), ("light switch",)):
        put(episode, *subtasks)
        _, reward, terminated, _, _ = episode.step(still)
        got.append((reward, terminated))
    assert got == [(0, False), (1, False), (0, False), (0, False), (2, False), (1, True)]
    reference = Kitchen("mixed").reference
    assert reference.normalise([0, 1, 4]).tolist() == [0, 25, 100]
    assert Kitchen("kettle").reference.normalise([0, 1]).tolist() == [0, 100]


def test_an_evaluation_tells_what_was_done_and_when() -> None:
    environment = Kitchen("kettle")
    environment.horizon = 4
    simulator = environment.simulator(1)

    def actor(states: NDArray[np.float64]) -> NDArray[np.float64]:
        put(simulator._envs[0].unwrapped, *todo.pop(0))
        return np.zeros((1, 9))

    try:
        todo: list[tuple[str, ...]] = [(), ("top burner",), ("kettle",), *[()] * 4]
        played = run_episodes(simulator, actor, np.array([1, 2]), environment)
    finally:
        simulator.close()
    evaluation = summarise(played, environment, 10)
    assert (played.lengths.tolist(), played.success.tolist()) == ([3, 4], [True, False])
    assert evaluation.score == 50
    never = [None, None]
    assert evaluation.subtasks == {
        **dict.fromkeys(SUBTASKS, never), "top burner": [2, None], "kettle": [3, None],
    }  # fmt: skip


def test_the_arm_starts_around_one_pose(episode: KitchenEpisode) -> None:
    pose = np.array([0.14839, -1.76849, 1.8439, -2.47686, 0.26025, 0.71253, 1.59515])
    starts = np.stack([episode.reset(seed=seed)[0][:7] for seed in range(12)]) - pose
    assert 0.08 < np.abs(starts).max() < 0.102
    assert np.abs(starts.mean(0)).max() < 0.07
    np.testing.assert_array_equal(episode.reset(seed=3)[0][:7] - pose, starts[3])
    assert len(np.unique(starts[:, 0])) == 12


def test_what_the_simulator_says_of_itself() -> None:
    environment = Kitchen("complete", "d4rl")
    simulator = environment.simulator(1)
    try:
        assert isinstance(simulator, MujocoRows)
        assert (simulator.observation_dim, simulator.action_dim) == (environment.observation_dim, 9) == (60, 9)
        assert (simulator.action_low.tolist(), simulator.action_high.tolist()) == ([-1] * 9, [1] * 9)
        state = simulator.reset(np.array([0]), np.array([0]))
        assert np.abs(state[0, :7] - simulator.pose(0)[:7]).max() < 0.002  # noise of the sensors alone
        assert simulator.step_seconds == pytest.approx(0.08)
    finally:
        simulator.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "all"}, "env.task: 'all' given, expected one of mixed, complete, microwave, kettle"),
        ({"layout": "minari"}, "env.layout: 'minari' given, expected one of robotics, d4rl"),
        ({"start_noise": -1.0}, "env.start_noise: -1"),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Kitchen(**arguments)  # type: ignore[arg-type]
