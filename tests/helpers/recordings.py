"""Recordings small enough to count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailo_pl.data.trajectories import Recording, Trajectories


def of_states(states: Any, **arrays: Any) -> Trajectories:
    return Trajectories.of(Recording(np.asarray(states), np.array([0]), **arrays))


def walk_and_jump() -> Trajectories:
    """Two trajectories of 4 and 2 steps: a state that counts, one that stays; actions between -1 and 1."""
    states = np.array([[0, 7], [1, 7], [2, 7], [3, 7], [0, 7], [4, 7]], dtype=np.float32)
    return Trajectories.of(
        Recording(
            states,
            np.array([0, 4]),
            actions=np.array([[-1], [1], [0.5], [0], [0.25], [-0.25]], dtype=np.float32),
            rewards=np.array([1, 1, 1, 1, 10, 20], dtype=np.float32),
            terminals=np.array([0, 0, 0, 1, 0, 0], dtype=bool),
            timeouts=np.zeros(6, dtype=bool),
        ),
        ["walk", "jump"],
    )
