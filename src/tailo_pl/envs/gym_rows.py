"""A Simulator over ordinary gymnasium environments, one per row, stepped in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.simulator import Step


class GymRows:
    """Rows that are gymnasium environments with Box spaces.

    Args:
        make: makes one environment.
        rows: how many.
        horizon: steps after which an episode is truncated.
    """

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[NDArray[np.float64], NDArray[Any]]],
        rows: int,
        horizon: int,
    ) -> None:
        self._envs = [make() for _ in range(rows)]
        observation_space, action_space = self._envs[0].observation_space, self._envs[0].action_space
        assert isinstance(observation_space, gymnasium.spaces.Box) and isinstance(action_space, gymnasium.spaces.Box)
        self.rows = rows
        self.horizon = horizon
        self.observation_dim = observation_space.shape[0]
        self.action_dim = action_space.shape[0]
        self.action_low = action_space.low.astype(np.float64)
        self.action_high = action_space.high.astype(np.float64)
        self._elapsed = np.zeros(rows, dtype=np.int64)

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
        self._elapsed[rows] = 0
        return np.stack([self._envs[row].reset(seed=int(seed))[0] for row, seed in zip(rows, seeds, strict=True)])

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        self._elapsed[rows] += 1
        results = [self._envs[row].step(action) for row, action in zip(rows, actions, strict=True)]
        observations, rewards, terminated, _, _ = zip(*results, strict=True)
        return Step(
            np.stack(observations),
            np.array(rewards, dtype=np.float64),
            np.array(terminated, dtype=bool),
            self._elapsed[rows] >= self.horizon,
        )

    @property
    def model(self) -> Any:
        return self._mujoco(0).model

    @property
    def step_seconds(self) -> float:
        return float(self._mujoco(0).dt)

    def pose(self, row: int) -> NDArray[np.float64]:
        pose: NDArray[np.float64] = self._mujoco(row).data.qpos.copy()
        return pose

    def _mujoco(self, row: int) -> Any:
        """The environment with MuJoCo's model and data; gymnasium-robotics' mazes hold it inside."""
        env = self._envs[row].unwrapped
        return getattr(env, "point_env", env)

    def close(self) -> None:
        for env in self._envs:
            env.close()
