"""A Simulator over ordinary gymnasium environments, one per row, stepped in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.observations import pieces, state
from tailo_pl.envs.simulator import Step
from tailo_pl.errors import UserError

Success = Literal["info", "termination", "none"]
Make = Callable[[], gymnasium.Env[Any, Any]]
_IN_INFO = ("success", "is_success")
_SHARED_FILE = "ant_maze.xml"


class GymRows:
    """Rows that are gymnasium environments.

    Args:
        make: makes one environment. Its actions are a Box with finite bounds; of its observations see
            `tailo_pl.envs.observations.pieces`.
        rows: how many.
        horizon: steps after which an episode is truncated, unless the environment does so before.
        keys: pieces of the observation that make up a state; None: all.
        success: what tells success: `info` (its `success` or `is_success`), `termination`, or `none`.
    """

    def __init__(
        self, make: Make, rows: int, horizon: int, *, keys: Sequence[str] | None = None, success: Success = "none"
    ) -> None:
        self._envs = [made(make) for _ in range(rows)]
        self._pieces = pieces(self._envs[0].observation_space, keys, "env.keys")
        self._actions = continuous(self._envs[0].action_space)
        self._success = success
        self.rows = rows
        self.horizon = horizon
        self.observation_dim = sum(piece.width for piece in self._pieces)
        self.action_low = self._actions.low.reshape(-1).astype(np.float64)
        self.action_high = self._actions.high.reshape(-1).astype(np.float64)
        self.action_dim = len(self.action_low)
        self._elapsed = np.zeros(rows, dtype=np.int64)

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
        self._elapsed[rows] = 0
        first = [self._envs[row].reset(seed=int(seed))[0] for row, seed in zip(rows, seeds, strict=True)]
        return np.stack([state(observation, self._pieces) for observation in first])

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        self._elapsed[rows] += 1
        shaped = actions.reshape(-1, *self._actions.shape)
        results = [self._envs[row].step(action) for row, action in zip(rows, shaped, strict=True)]
        observations, rewards, terminated, truncated, infos = zip(*results, strict=True)
        ended = np.array(terminated, dtype=bool)
        return Step(
            np.stack([state(observation, self._pieces) for observation in observations]),
            np.array(rewards, dtype=np.float64),
            ended,
            np.array(truncated, dtype=bool) | (self._elapsed[rows] >= self.horizon),
            self._succeeded(ended, infos),
        )

    def _succeeded(self, terminated: NDArray[np.bool_], infos: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
        if self._success == "termination":
            return terminated
        if self._success == "none":
            return np.zeros(len(terminated), dtype=bool)
        return np.array([any(bool(info.get(key, False)) for key in _IN_INFO) for info in infos], dtype=bool)

    def close(self) -> None:
        for env in self._envs:
            env.close()


class MujocoRows(GymRows):
    """Rows that MuJoCo simulates, and that can therefore be drawn."""

    @property
    def model(self) -> mujoco.MjModel:
        return self._mujoco(0).model

    @property
    def step_seconds(self) -> float:
        return float(self._mujoco(0).dt)

    def pose(self, row: int) -> NDArray[np.float64]:
        pose: NDArray[np.float64] = self._mujoco(row).data.qpos.copy()
        return pose

    def _mujoco(self, row: int) -> Any:
        return mujoco_inside(self._envs[row])


def made(make: Make) -> gymnasium.Env[Any, Any]:
    """A new environment, without the model file that gymnasium-robotics' mazes leave in the temporary folder."""
    env = make()
    left = getattr(env.unwrapped, "tmp_xml_file_path", None)
    # Older mazes all write the same file, which another process may be about to read.
    if isinstance(left, str) and Path(left).name != _SHARED_FILE:
        Path(left).unlink(missing_ok=True)
    return env


def continuous(space: gymnasium.Space[Any]) -> gymnasium.spaces.Box:
    """The space of actions, which must be a box of real numbers with finite bounds."""
    if not isinstance(space, gymnasium.spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise UserError(f"actions: space {space} found, expected Box (continuous actions)")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise UserError(f"actions: space {space} found, expected finite bounds")
    return space


def mujoco_inside(env: gymnasium.Env[Any, Any]) -> Any:
    """The environment with MuJoCo's model and data (gymnasium-robotics' mazes hold it inside); None: there is none."""
    outer = env.unwrapped
    for found in (outer, getattr(outer, "point_env", None), getattr(outer, "ant_env", None)):
        if isinstance(getattr(found, "model", None), mujoco.MjModel) and hasattr(found, "dt"):
            return found
    return None
