"""What is done with scores everywhere: their kinds, walking trajectories from their ends, agreement of rankings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ScoreKind = Literal["logit", "probability"]


def steps_backwards(offsets: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The last step of every trajectory, then the steps before them, and so on.

    Longest trajectory first: those that still have a step at a distance from their end are a prefix of those before,
    and the loop runs over the longest trajectory, not over all steps.
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    ends, lengths = offsets[1:][order] - 1, lengths[order]
    alive = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    for distance, count in enumerate(alive):
        yield ends[:count] - distance


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Spearman's correlation of two rankings of the same things, ties at their mean rank; None if one is constant."""
    first, second = ranks(one), ranks(other)
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, ties at their mean."""
    ordered = np.sort(values)
    left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return np.asarray((left + right) / 2)
