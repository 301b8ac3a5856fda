"""The U-maze of D4RL and gymnasium-robotics, in D4RL's frame: from (0, 0) around the wall to (0, 8)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELL = 4.0
"""Side of a cell, and half the inner wall's length."""
WALL_HEIGHT = 2.0
START = np.array([0.0, 0.0])
GOAL = np.array([0.0, 8.0])
REACHED = 0.5
"""How near the goal counts."""
HORIZON = 700
"""Steps of an episode."""
Goals = Literal["fixed", "d4rl", "errands"]
"""Where episodes go; `AntMazeRows` says what each means."""
CORNERS = np.array([[0.0, 0.0], [8.0, 0.0], [8.0, 8.0], [0.0, 8.0]])
"""Where the centre line of the corridor begins, bends twice, and ends."""
OUTER = (-2.0, 10.0)
"""Where the corridor's outer walls stand, along both axes."""
_SIDE = 5  # cells along each edge, the outer walls included
_FREE = {(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (0, 2)}

_LEGS = np.diff(CORNERS, axis=0)
_LENGTHS = np.linalg.norm(_LEGS, axis=1)
_ENDS = np.append(0.0, np.cumsum(_LENGTHS))
LENGTH = float(_ENDS[-1])
"""Of the centre line."""


def free_cells() -> Floats:
    """Centres of the corridor's seven cells, from the start to the goal."""
    return along(np.arange(0.0, LENGTH + 1.0, CELL))


def wall_cells() -> Floats:
    """Centres of the cells that are walls, row by row from the largest y as gymnasium-robotics lists them."""
    numbers = range(-1, _SIDE - 1)
    return CELL * np.array(
        [(i, j) for j in reversed(numbers) for i in numbers if (i, j) not in _FREE], dtype=np.float64
    )


def along(distances: Floats) -> Floats:
    """Points of the centre line so far from its beginning; beyond its ends the ends themselves."""
    return np.stack([np.interp(distances, _ENDS, CORNERS[:, axis]) for axis in (0, 1)], axis=-1)


def project(points: Floats) -> Floats:
    """How far along the centre line the nearest of its points lies."""
    offsets = points[:, None] - CORNERS[:-1]  # (points, legs, 2)
    shares = np.clip((offsets * _LEGS).sum(-1) / _LENGTHS**2, 0.0, 1.0)
    distances = np.linalg.norm(offsets - shares[..., None] * _LEGS, axis=-1)
    nearest = distances.argmin(axis=1)
    rows = np.arange(len(points))
    return np.asarray(_ENDS[nearest] + shares[rows, nearest] * _LENGTHS[nearest])
