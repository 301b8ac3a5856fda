"""Pointmaze: a point mass on an open plane that should go left.

Built on gymnasium-robotics' PointMaze. D4RL has no such task, hence no reference score; ours are measured.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium_robotics.envs.maze.point_maze import PointMazeEnv
from numpy.typing import NDArray

from tailo_pl.envs.environment import Environment
from tailo_pl.envs.gym_rows import MujocoRows
from tailo_pl.envs.plan import Plan
from tailo_pl.envs.reference_scores import Reference

START = np.array([4.0, 4.0])
START_NOISE = 0.1
REACHED = 0.17
GOALS = {
    "left": np.array([1.0, 4.0]),
    "right": np.array([7.0, 4.0]),
    "up": np.array([4.0, 7.0]),
    "down": np.array([4.0, 1.0]),
}

# An empty square with walls only at its rim. gymnasium-robotics puts the origin at the map's centre; with 17 cells
# a side the start (4, 4) and all four goals are cell centres well inside it.
_SIDE = 17
_OPEN_MAP = [[1 if {row, column} & {0, _SIDE - 1} else 0 for column in range(_SIDE)] for row in range(_SIDE)]


class OpenPlane(PointMazeEnv):  # type: ignore[misc]  # gymnasium-robotics is untyped
    """The plane with one fixed goal: reward 1 and the end of the episode within `REACHED` of it.

    Args:
        direction: which of `GOALS` is the goal.
    """

    def __init__(self, direction: str = "left") -> None:
        self._fixed_goal = GOALS[direction]
        super().__init__(_OPEN_MAP, reward_type="sparse", continuing_task=False)
        self.position_noise_range = START_NOISE  # as an argument it would also reach a class that refuses it

    def generate_target_goal(self) -> NDArray[np.float64]:
        return self._fixed_goal.copy()

    def generate_reset_pos(self) -> NDArray[np.float64]:
        return START.copy()

    def add_xy_position_noise(self, xy_pos: NDArray[np.float64]) -> NDArray[np.float64]:
        # The parent shakes start and goal alike; the goal here is fixed.
        if np.array_equal(xy_pos, self._fixed_goal):
            return xy_pos
        return np.asarray(super().add_xy_position_noise(xy_pos))

    def compute_reward(self, achieved_goal: NDArray[np.float64], desired_goal: NDArray[np.float64], info: Any) -> float:
        return float(np.linalg.norm(achieved_goal - desired_goal) <= REACHED)

    def compute_terminated(
        self, achieved_goal: NDArray[np.float64], desired_goal: NDArray[np.float64], info: Any
    ) -> bool:
        return self.compute_reward(achieved_goal, desired_goal, info) > 0


class PointMaze(Environment):
    """The pointmaze task.

    Args:
        direction: where the goal lies; the task as scored goes left.
    """

    observation_dim = 4
    action_low = (-1.0, -1.0)
    action_high = (1.0, 1.0)
    horizon = 200
    rows: ClassVar[int] = 5  # each takes a tenth of a second to make
    knows_success = True
    knows_endings = True
    # Mean success of 1,000 episodes each, `python tools/measure_pointmaze.py`.
    reference = Reference(low=0.004, high=1.0, source="measured: random actions, scripted controller; D4RL has none")

    def __init__(self, direction: str = "left") -> None:
        self._direction = direction
        self.plan = Plan.of_cells(START, GOALS[direction], REACHED, np.empty((0, 2)), 1.0)

    def simulator(self, rows: int) -> MujocoRows:
        # The state is position and velocity, without the goals that gymnasium-robotics adds.
        keys = ["observation"]
        return MujocoRows(lambda: OpenPlane(self._direction), rows, self.horizon, keys=keys, success="termination")

    def ended(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.linalg.norm(states[:, :2] - GOALS[self._direction], axis=1) <= REACHED)


def controller(
    observations: NDArray[np.float64], direction: str, noise: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The scripted controller: a spring to the goal with damping, plus noise, within the action bounds."""
    position, velocity = observations[:, :2], observations[:, 2:]
    force = 2.0 * (GOALS[direction] - position) - 0.6 * velocity
    return np.clip(force + noise * rng.standard_normal(force.shape), -1.0, 1.0)
