"""Walking the ant in any direction: turning the world and renumbering the legs changes nothing but names."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from tailo_pl.envs.antmaze import AntMazeRows
from tailo_pl.envs.bodies import load_model
from tailo_pl.envs.evaluation import run_episodes
from tailo_pl.experts import load_expert
from tailo_pl.experts.heading import pursue, quarter_turns, turn_back, turned, walk

MODEL = load_model("ant")


def after(states: np.ndarray, action: np.ndarray) -> np.ndarray:
    """The ant's 29 numbers one control step later, on the open plane."""
    data = mujoco.MjData(MODEL)
    data.qpos[:], data.qvel[:], data.ctrl[:] = states[:15], states[15:], action
    mujoco.mj_step(MODEL, data, 5)
    return np.concatenate([data.qpos, data.qvel])


@pytest.mark.parametrize("turns", range(4))
def test_the_turned_ant_moves_as_the_ant_does(turns: int) -> None:
    """Acting on the turned state leads to the turned next state, whatever the heading and the numbering of the legs."""
    rng = np.random.default_rng(turns)
    state = np.concatenate([MODEL.qpos0 + rng.uniform(-0.1, 0.1, 15), rng.normal(size=14)])
    state[2] = 0.45
    state[3:7] /= np.linalg.norm(state[3:7])
    heading, by = np.array([rng.uniform(-np.pi, np.pi)]), np.array([turns])
    for _ in range(5):
        action = rng.uniform(-1, 1, (1, 8)).astype(np.float32)
        direct = after(state, turn_back(action, by)[0])
        other = after(np.concatenate([np.zeros(2), turned(state[None], heading, by)[0]]), action[0])
        np.testing.assert_allclose(turned(direct[None], heading, by)[0], other[2:], rtol=0, atol=1e-9)
        state = direct


def test_legs_are_numbered_so_that_the_body_is_held_as_the_policy_holds_it() -> None:
    states = np.zeros((4, 29))
    for row, yaw in enumerate(np.radians([-25, 65, 155, 245])):
        states[row, 3], states[row, 6] = np.cos(yaw / 2), np.sin(yaw / 2)
    assert quarter_turns(states, np.zeros(4)).tolist() == [0, 3, 2, 1]
    assert quarter_turns(states, np.radians([0, 90, 180, 270])).tolist() == [0, 0, 0, 0]


def test_pursuit_follows_the_corridor_and_then_the_goal() -> None:
    goal = np.array([[0.0, 8.0]])
    for place, towards in (((0, 0), 0), ((8, 3), 90), ((5, 8), 180), ((0, 7), 90), ((-1, 8), 0)):
        found = np.degrees(pursue(np.array([place], dtype=float), goal))[0]
        assert (found - towards) % 360 == pytest.approx(0, abs=1e-9)
    assert np.degrees(pursue(np.array([[4.0, 8.0]]), np.array([[0.0, 0.0]])))[0] == pytest.approx(0)  # and back


def test_the_heading_policy_reaches_the_goal() -> None:
    policy, simulator = load_expert("ant-heading"), AntMazeRows(4, show_goal=True)
    episodes = run_episodes(
        simulator, lambda seen: walk(policy, seen[:, :29], pursue(seen[:, :2], seen[:, 29:])), np.arange(4)
    )
    simulator.close()
    assert episodes.success.sum() >= 3
    assert 200 < episodes.lengths[episodes.success].mean() < 450
