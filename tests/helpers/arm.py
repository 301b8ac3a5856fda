"""A robot arm small enough to count with: joints that turn by what is commanded, and logs of it going to several poses.

Its simulator is kept for the truth: nothing of it is shown to what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

JOINTS = 3
STEPS = 50
POSES = np.array(  # radians; logs go to all of them, TS shows the first
    [
        *([0.8, -0.6, 0.0], [1.5, -0.6, 1.0], [-0.9, 0.6, 0.7], [0.9, 0.6, -0.7]),
        *([-0.9, -0.6, -0.7], [0.0, 1.0, 0.0], [-0.2, -0.4, 1.2]),
    ]
)
UNVISITED = np.array([-1.2, 1.9, -1.6])
_REACH = 0.08  # radians a step, at most
_NEAR = 0.15  # of every joint: reached


def _towards(state: NDArray[np.float64], pose: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(0.3 * (pose - state), -_REACH, _REACH)


def drive(
    act: Callable[[NDArray[np.float64]], NDArray[np.float64]], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """States and actions of one episode from about the middle."""
    state, states, actions = rng.normal(0, 0.05, JOINTS), [], []
    for _ in range(STEPS):
        action = np.clip(act(state), -_REACH, _REACH)
        states.append(state)
        actions.append(action)
        state = state + action
    return np.array(states), np.array(actions)


def write_logs(folder: Path, each: int = 20) -> Path:
    """TA: `each` noisy episodes towards every pose."""
    rng = np.random.default_rng(0)
    episodes = [
        drive(lambda state, pose=pose: _towards(state, pose) + rng.normal(0, 0.02, JOINTS), rng)
        for pose in np.repeat(POSES, each, axis=0)
    ]
    path = folder / "logs.npz"
    states, actions = (np.concatenate(one) for one in zip(*episodes, strict=True))
    np.savez(path, observations=states, actions=actions, episode=np.repeat(np.arange(len(episodes)), STEPS))
    return path


def write_expert(folder: Path, name: str, pose: NDArray[np.float64] = POSES[0], unit: float = 1.0) -> Path:
    """TS: the last states of three episodes that end at a pose."""
    rng = np.random.default_rng(1)
    episodes = [drive(lambda state: _towards(state, pose), rng)[0][-STEPS // 2 :] for _ in range(3)]
    path = folder / f"{name}.npz"
    np.savez(path, observations=unit * np.concatenate(episodes), episode=np.repeat(np.arange(3), len(episodes[0])))
    return path


def success(policy: Callable[..., NDArray[np.float32]], pose: NDArray[np.float64] = POSES[0]) -> float:
    """Share of fresh episodes that end at a pose."""
    rng = np.random.default_rng(2)
    ends = [drive(lambda state: np.asarray(policy(state), dtype=np.float64), rng)[0][-1] for _ in range(10)]
    return float(np.mean([np.abs(end - pose).max() < _NEAR for end in ends]))
