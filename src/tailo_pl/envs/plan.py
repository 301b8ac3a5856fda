"""Plan: what a task on the floor looks like from above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plan:
    """Start, goal and walls of a task whose states begin with x and y.

    Args:
        start: x and y.
        goal: x and y.
        reached: how near the goal counts.
        walls: low x, low y, high x, high y of each.
    """

    start: tuple[float, float]
    goal: tuple[float, float]
    reached: float
    walls: Sequence[tuple[float, float, float, float]] = ()

    @classmethod
    def of_cells(
        cls,
        start: NDArray[np.float64],
        goal: NDArray[np.float64],
        reached: float,
        cells: NDArray[np.float64],
        side: float,
    ) -> Plan:
        """A plan whose walls are squares around these centres."""
        boxes = np.column_stack([cells - side / 2, cells + side / 2])
        return cls(_pair(start), _pair(goal), reached, [(a, b, c, d) for a, b, c, d in boxes.tolist()])

    def circle(self) -> NDArray[np.float64]:
        """Points around the goal at the distance that counts."""
        angles = np.linspace(0.0, 2 * np.pi, 41)
        return np.array(self.goal) + self.reached * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _pair(place: NDArray[np.float64]) -> tuple[float, float]:
    return float(place[0]), float(place[1])
