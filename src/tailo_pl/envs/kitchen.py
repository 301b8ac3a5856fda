"""Kitchen: a Franka arm that opens, pushes and turns things, several of them in one episode.

Built on gymnasium-robotics' FrankaKitchen-v1, which continues D4RL's kitchen. States come in its layout (59 numbers) or
in D4RL's (60): the two are not the same space, and each is for data of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from gymnasium_robotics.envs.franka_kitchen.franka_env import DEFAULT_CAMERA_CONFIG
from gymnasium_robotics.envs.franka_kitchen.kitchen_env import BONUS_THRESH, KitchenEnv
from gymnasium_robotics.envs.franka_kitchen.kitchen_env import OBS_ELEMENT_GOALS as GOALS
from gymnasium_robotics.envs.franka_kitchen.kitchen_env import OBS_ELEMENT_INDICES as JOINTS
from numpy.typing import NDArray

from tailo_pl.envs.environment import Environment
from tailo_pl.envs.gym_rows import MujocoRows
from tailo_pl.envs.kitchen_tasks import ARM, OBSERVED, POSITIONS, ROBOT, SUBTASKS, Layout, wanted
from tailo_pl.envs.reference_scores import Reference
from tailo_pl.errors import UserError, require_range


def positions(states: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """All 30 joint positions of states (…, 59) or (…, 60): those of the robot first."""
    if layout == "d4rl":
        return states[..., :POSITIONS]
    return np.concatenate([states[..., :ROBOT], states[..., 2 * ROBOT : ROBOT + POSITIONS]], -1)


def goal_numbers(task: str) -> NDArray[np.float64]:
    """D4RL's 30 goal numbers: where the wanted things should be, and 0 for everything else."""
    numbers = np.zeros(POSITIONS)
    for subtask in wanted(task):
        numbers[JOINTS[subtask]] = GOALS[subtask]
    return numbers


def laid_out(states: NDArray[Any], layout: Layout, task: str) -> NDArray[Any]:
    """States of FrankaKitchen, (…, 59), in a layout."""
    if layout == "robotics":
        return states
    goals = np.broadcast_to(goal_numbers(task), (*states.shape[:-1], POSITIONS))
    return np.concatenate([positions(states, "robotics"), goals], -1).astype(states.dtype)


def done(joints: NDArray[Any]) -> NDArray[np.bool_]:
    """Which subtasks count as done at joint positions (…, 30): one column per entry of `SUBTASKS`."""
    distances = [np.linalg.norm(joints[..., JOINTS[name]] - GOALS[name], axis=-1) for name in SUBTASKS]
    near: NDArray[np.bool_] = np.stack(distances, -1) < BONUS_THRESH
    return near


class KitchenEpisode(gymnasium.Env[NDArray[np.float64], NDArray[Any]]):
    """FrankaKitchen as D4RL scores it: reward 1 for each wanted subtask, once, and the end when all are done.

    Args:
        task: what is wanted, see `wanted`.
        layout: of the states.
        start_noise: the arm's joints start up to so many radians from FrankaKitchen's one pose, each on its own.
    """

    def __init__(self, task: str = "mixed", layout: Layout = "robotics", start_noise: float = 0.0) -> None:
        self._kitchen = KitchenEnv(tasks_to_complete=list(wanted(task)))
        self._task, self._layout, self._start_noise = task, layout, start_noise
        width = OBSERVED if layout == "robotics" else 2 * POSITIONS
        self.observation_space = spaces.Box(-np.inf, np.inf, (width,), np.float64)
        self.action_space = self._kitchen.action_space
        self.model: mujoco.MjModel = self._kitchen.model
        self.data: mujoco.MjData = self._kitchen.data
        self.dt = float(self._kitchen.robot_env.dt)
        _look_at_the_arm(self.model)

    def reset(self, *, seed: int | None = None, **options: Any) -> tuple[NDArray[np.float64], dict[str, Any]]:
        observation, info = self._kitchen.reset(seed=seed, **options)
        if self._start_noise:
            robot = self._kitchen.robot_env
            low, high = robot.robot_pos_bound[:ARM].T
            joints, noise = robot.init_qpos.copy(), robot.np_random.uniform(-1, 1, ARM)
            joints[:ARM] = np.clip(joints[:ARM] + self._start_noise * noise, low, high)
            robot.set_state(joints, robot.init_qvel)
            observation = self._kitchen._get_obs(robot._get_obs())
        return self._state(observation), info

    def step(self, action: NDArray[Any]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._kitchen.step(action)
        return self._state(observation), reward, terminated, truncated, info

    def close(self) -> None:
        self._kitchen.close()

    def _state(self, observation: dict[str, Any]) -> NDArray[np.float64]:
        return laid_out(observation["observation"], self._layout, self._task)


def _look_at_the_arm(model: mujoco.MjModel) -> None:
    """Let the model's own view be the one that FrankaKitchen draws."""
    model.stat.center[:] = DEFAULT_CAMERA_CONFIG["lookat"]
    model.stat.extent = DEFAULT_CAMERA_CONFIG["distance"] / 1.5  # MuJoCo looks from so many extents away
    model.vis.global_.azimuth = DEFAULT_CAMERA_CONFIG["azimuth"]
    model.vis.global_.elevation = DEFAULT_CAMERA_CONFIG["elevation"]


class Kitchen(Environment):
    """A kitchen task.

    Args:
        task: `mixed` (microwave, kettle, bottom burner, light switch), `complete` (microwave, kettle, light switch,
            slide cabinet), or one subtask by its name.
        layout: `robotics`, the 59 numbers of FrankaKitchen-v1 (positions and velocities of the robot, then of the
            things), or `d4rl`, the 60 of D4RL's files (positions of both, then 30 numbers of the task's goal).
        start_noise: the arm's joints start up to so many radians from FrankaKitchen's one pose, each on its own.
    """

    action_low = (-1.0,) * ROBOT
    action_high = (1.0,) * ROBOT
    horizon = 280
    rows: ClassVar[int] = 2  # stepped in turn, and each takes half a second to make
    knows_success = True
    subtasks = SUBTASKS

    def __init__(self, task: str = "mixed", layout: Layout = "robotics", start_noise: float = 0.0) -> None:
        if layout not in get_args(Layout):
            raise UserError(f"env.layout: {layout!r} given, expected one of {', '.join(get_args(Layout))}")
        require_range("env.start_noise", start_noise, 0, closed="[)")
        self._task, self._layout, self._start_noise = task, layout, start_noise
        self.observation_dim = OBSERVED if layout == "robotics" else 2 * POSITIONS
        self.reference = Reference(0.0, len(wanted(task)), "D4RL 1.1: the share of the task's subtasks that were done")

    def simulator(self, rows: int) -> MujocoRows:
        return MujocoRows(self._episode, rows, self.horizon, success="termination")

    def subtasks_done(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return done(positions(states, self._layout))

    def _episode(self) -> KitchenEpisode:
        return KitchenEpisode(self._task, self._layout, self._start_noise)
