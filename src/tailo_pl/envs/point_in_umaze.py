"""A point mass in the U-maze, in a frame of its own: a cell has side 1, and the origin lies in the middle."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium_robotics.envs.maze.maps import U_MAZE
from gymnasium_robotics.envs.maze.point_maze import PointMazeEnv
from numpy.typing import NDArray

from tailo_pl.envs import umaze
from tailo_pl.envs.gym_rows import GymRows


def point_rows() -> GymRows:
    """A `Simulator` of one episode; its states are x, y and their velocities."""
    return GymRows(PointInUMaze, 1, umaze.HORIZON, keys=["observation"])


class PointInUMaze(PointMazeEnv):  # type: ignore[misc]  # gymnasium-robotics is untyped
    """From the maze's start to its goal."""

    def __init__(self) -> None:
        super().__init__(U_MAZE, reward_type="sparse", continuing_task=False)
        self.position_noise_range = 0.1 / umaze.CELL

    def generate_target_goal(self) -> NDArray[np.float64]:
        return _point_frame(umaze.GOAL)

    def generate_reset_pos(self) -> NDArray[np.float64]:
        return _point_frame(umaze.START)

    def compute_terminated(
        self, achieved_goal: NDArray[np.float64], desired_goal: NDArray[np.float64], info: Any
    ) -> bool:
        return bool(np.linalg.norm(achieved_goal - _point_frame(umaze.GOAL)) <= umaze.REACHED / umaze.CELL)


def _point_frame(position: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((position - 4.0) / umaze.CELL)
