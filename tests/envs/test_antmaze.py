"""Antmaze: equal to gymnasium-robotics' environment in the stock body; D4RL's frame, ends and goals."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import gymnasium
import gymnasium_robotics  # noqa: F401  # registers its environments
import mujoco
import numpy as np
import pytest

from tailo_pl.config.compose import composed
from tailo_pl.envs import umaze
from tailo_pl.envs.antmaze import AntMaze, AntMazeRows
from tailo_pl.envs.bodies import OVERVIEW
from tailo_pl.envs.gym_rows import made, mujoco_inside
from tailo_pl.envs.pointmaze import PointMaze
from tailo_pl.errors import UserError
from tailo_pl.runs.checks import check, other_bodies

ONE = np.array([0])


def place(simulator: AntMazeRows, row: int, x: float, y: float) -> None:
    """Put the ant somewhere in D4RL's frame, as it stands."""
    pose = simulator.pose(row)
    pose[:2] = x - 4, y - 4
    simulator._begin(row, pose, np.zeros(simulator.model.nv))


def test_equals_gymnasium_robotics_over_500_steps() -> None:
    """Against AntMaze_UMaze-v4, from the same state under the same actions, walls touched on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # -v4 is meant
        env = made(lambda: gymnasium.make("AntMaze_UMaze-v4", disable_env_checker=True, max_episode_steps=1000))
    env.reset(seed=3, options={"reset_cell": np.array([3, 1]), "goal_cell": np.array([1, 1])})
    inner = mujoco_inside(env)
    simulator = AntMazeRows(1)
    simulator.reset(ONE, ONE)
    inner.set_state(simulator.pose(0), simulator._states[0, simulator._qvel])
    # What the solver starts from belongs to the state too.
    mujoco.mj_resetData(inner.model, inner.data)
    inner.data.qpos[:], inner.data.qvel[:] = simulator.pose(0), simulator._states[0, simulator._qvel]
    mujoco.mj_forward(inner.model, inner.data)
    rng = np.random.default_rng(0)
    touched = False
    for t in range(500):
        action = np.clip(rng.normal(0.3 * np.sin(t / 5 + np.arange(8)), 1.0), -1, 1)
        step = simulator.step(ONE, action[None])
        observation, *_ = env.step(action)
        state = np.concatenate([observation["achieved_goal"] + 4, observation["observation"]])
        np.testing.assert_allclose(step.observations[0], state, rtol=0, atol=1e-10)
        walls = {i for i in range(inner.model.ngeom) if "block" in inner.model.geom(i).name}
        touched |= any(walls & set(pair) for pair in inner.data.contact.geom.tolist())
    env.close()
    simulator.close()
    assert touched


def test_states_are_those_of_d4rl() -> None:
    simulator = AntMazeRows(40)
    states = simulator.reset(np.arange(40), np.arange(40))
    assert states.shape == (40, 29) and (simulator.action_dim, simulator.horizon) == (8, 700)
    assert np.abs(states[:, :2]).max() <= 0.1 and np.abs(states[:, :2]).max() > 0.08
    np.testing.assert_array_equal(simulator.reset(ONE, np.array([7])), states[7:8])
    assert simulator.action_low.tolist() == [-1] * 8 and simulator.action_high.tolist() == [1] * 8


def test_reaching_the_goal_ends_the_episode_and_falling_does_not() -> None:
    simulator = AntMazeRows(3)
    rows = np.arange(3)
    simulator.reset(rows, rows)
    place(simulator, 0, 0.3, 8.3)  # 0.42 away
    place(simulator, 1, 0.5, 8.5)  # 0.71 away
    on_its_back = simulator.pose(2)
    on_its_back[2:7] = 0.3, 0, 1, 0, 0
    simulator._begin(2, on_its_back, np.zeros(14))
    step = simulator.step(rows, np.zeros((3, 8)))
    assert step.terminated.tolist() == step.success.tolist() == [True, False, False]
    assert step.rewards.tolist() == [1, 0, 0] and not step.truncated.any()


def test_time_is_up_after_700_steps() -> None:
    simulator = AntMazeRows(1)
    simulator.reset(ONE, ONE)
    simulator._elapsed[0] = 698
    assert [bool(simulator.step(ONE, np.zeros((1, 8))).truncated[0]) for _ in range(2)] == [False, True]


def test_the_score_is_the_share_of_successes_in_percent() -> None:
    assert AntMaze().reference.normalise([0, 1]).tolist() == [0, 100]
    assert AntMaze().knows_success


def test_d4rl_draws_a_goal_for_each_episode() -> None:
    simulator = AntMazeRows(200, goals="d4rl", show_goal=True)
    goals = simulator.reset(np.arange(200), np.arange(200))[:, 29:]
    assert (goals >= [0, 8]).all() and (goals <= [1.5, 9.5]).all()
    np.testing.assert_allclose(goals.mean(0), [0.75, 8.75], atol=0.1)
    np.testing.assert_allclose(goals.std(0), np.sqrt((1 + 0.25) / 12), atol=0.05)


def test_errands_begin_and_end_in_the_corridor_some_way_apart() -> None:
    simulator = AntMazeRows(200, goals="errands", show_goal=True)
    states = simulator.reset(np.arange(200), np.arange(200))
    for places in (states[:, :2], states[:, 29:]):
        middle = umaze.along(umaze.project(places))
        assert np.abs(places - middle).max() < 0.8
        assert len(np.unique(umaze.project(places).round() // 4)) == 7  # all cells
    assert np.linalg.norm(states[:, :2] - states[:, 29:], axis=1).min() > 2


def test_the_body_of_d4rl_is_weaker_slower_and_softer() -> None:
    stock, other = AntMazeRows(1).model, AntMazeRows(1, body="d4rl").model
    assert (stock.opt.timestep, other.opt.timestep) == (0.01, 0.02)
    assert (set(stock.actuator_gear[:, 0]), set(other.actuator_gear[:, 0])) == ({150}, {30})
    assert (other.geom_solimp[:, :3] == [0.8, 0.8, 0.01]).all()
    assert (stock.geom_solimp[:, :3] == [0.9, 0.95, 0.001]).all()
    np.testing.assert_array_equal(stock.geom_pos, other.geom_pos)
    with pytest.raises(UserError, match=r"body: the ant in a maze has no body 'big', expected one of stock, d4rl"):
        AntMaze(body="big")


def test_the_maze_is_a_u() -> None:
    """Every wall is a cell beside the corridor or at the rim, and the corridor's cells are free."""
    walls, free = umaze.wall_cells(), umaze.free_cells()
    assert len(walls) == 18 and len(free) == 7
    assert {tuple(cell) for cell in walls}.isdisjoint(tuple(cell) for cell in free)
    assert [0, 4] in walls.tolist() and [4, 4] in walls.tolist()  # what makes it a U


def test_projecting_onto_the_centre_line() -> None:
    points = np.array([[0.0, 0.5], [3.0, -1.0], [9.0, 2.0], [8.5, 8.5], [-1.0, 9.0]])
    np.testing.assert_allclose(umaze.project(points), [0, 3, 10, 16, 24])
    np.testing.assert_allclose(umaze.along(np.array([-1.0, 3, 10, 16, 30])), [[0, 0], [3, 0], [8, 2], [8, 8], [0, 8]])


@pytest.mark.parametrize("environment", [AntMaze(), PointMaze()])
def test_mazes_leave_nothing_in_the_temporary_folder(
    environment: AntMaze | PointMaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    simulator = environment.simulator(2)
    simulator.reset(np.arange(2), np.arange(2))
    simulator.close()
    assert list(tmp_path.iterdir()) == []


def test_its_plan_shows_what_is_simulated() -> None:
    plan = AntMaze().plan
    assert plan is not None and len(plan.walls) == 18
    model = AntMazeRows(1).model
    boxes = [number for number in range(model.ngeom) if model.geom_type[number] == mujoco.mjtGeom.mjGEOM_BOX]
    low = model.geom_pos[boxes, :2] - model.geom_size[boxes, :2] + 4
    np.testing.assert_allclose(np.array(plan.walls)[:, :2], low)
    assert (plan.start, plan.goal, plan.reached) == ((0, 0), (0, 8), 0.5)
    drawn = AntMaze(goal="d4rl").plan
    assert drawn is not None and drawn.goal == (0.75, 8.75)


def test_data_of_another_body_is_warned_of() -> None:
    """One line a part, before anything is made or trained; the same body says nothing."""
    for body, parts in (("d4rl", ["goal", "random", "demonstration"]), ("stock", [])):
        experiment = composed(["env=antmaze", f"env.body={body}", "env.data.body=stock"])
        assert list(other_bodies(experiment)) == [
            f"env.body: d4rl given, but part {part} of the data was recorded in stock; expected the same"
            for part in parts
        ]
    assert not list(other_bodies(composed(["env=antmaze", "source=d4rl"])))
    wrong = list(other_bodies(composed(["env=antmaze", "source=d4rl", "env.body=stock", "env.data.body=d4rl"])))
    assert [line.split("part ")[1].split()[0] for line in wrong] == ["goal", "random"]


def test_data_of_another_width_is_refused_in_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("ts", "ta"):
        arrays = {"observations": rng.normal(size=(40, 27)), "actions": rng.uniform(-1, 1, (40, 8))}
        np.savez(tmp_path / f"{name}.npz", **arrays, episode=np.repeat([0, 1], 20))
    experiment = composed(
        ["source=files", "env=antmaze", *(f"source.{one}={tmp_path / one}.npz" for one in ("ts", "ta"))]
    )
    with pytest.raises(
        UserError, match=r"env antmaze: 29 numbers in a state and 8 in an action, but the data has 27 and 8"
    ):
        check(experiment)


def test_the_film_has_all_walls_in_sight() -> None:
    """The camera above sees the whole floor: a wall's corner lies within the picture."""
    model = AntMazeRows(1).model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, OVERVIEW)
    place, half = data.cam_xpos[number], np.tan(np.radians(model.cam_fovy[number]) / 2)
    assert (data.cam_xmat[number].reshape(3, 3)[:, 2] == [0, 0, 1]).all()  # looks straight down
    top = place[2] - 2.0  # from the camera to the top of the walls
    assert half * top > 10  # the walls reach 10 m to each side
