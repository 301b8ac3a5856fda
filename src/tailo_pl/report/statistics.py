"""Comparing methods over tasks and seeds with few runs each, as Agarwal et al. (2021) advise. Pure functions.

Scores of a method are a list with one array per task, which holds one score per seed. The bootstrap is stratified:
it draws seeds again within each task, so every replicate has as many scores of each task as were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[NDArray[np.float64]]
REPLICATES = 2000


class Estimate(NamedTuple):
    """A number and its 95 % confidence interval; None where one seed per task leaves nothing to draw from."""

    value: float
    interval: tuple[float, float] | None


def interquartile_mean(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the middle half along the last axis: a quarter of the numbers, rounded down, is left out at each end."""
    ordered = np.sort(scores, axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1))


def interquartile_estimate(scores: Scores, replicates: int = REPLICATES, seed: int = 0) -> Estimate:
    """Interquartile mean over all seeds of all tasks."""
    generator = np.random.default_rng(seed)
    drawn = [task[_draws(generator, len(task), replicates)] for task in scores]
    return _estimate(
        float(interquartile_mean(np.concatenate(list(scores)))),
        interquartile_mean(np.concatenate(drawn, axis=1)),
        [len(task) for task in scores],
    )


def probability_of_improvement(ours: Scores, theirs: Scores, replicates: int = REPLICATES, seed: int = 0) -> Estimate:
    """How likely a run of `ours` scores above a run of `theirs` on the same task; ties count half; mean over tasks."""
    generator = np.random.default_rng(seed)
    values, drawn = [], np.zeros(replicates)
    for one, other in zip(ours, theirs, strict=True):
        above = (one[:, None] > other) + 0.5 * (one[:, None] == other)
        values.append(above.mean())
        rows, columns = (_draws(generator, len(task), replicates) for task in (one, other))
        drawn += above[rows[:, :, None], columns[:, None, :]].mean(axis=(1, 2)) / len(ours)
    return _estimate(float(np.mean(values)), drawn, [len(task) for task in (*ours, *theirs)])


def _draws(generator: np.random.Generator, count: int, replicates: int) -> NDArray[np.int64]:
    return generator.integers(0, count, (replicates, count))


def _estimate(value: float, drawn: NDArray[np.float64], counts: list[int]) -> Estimate:
    if max(counts) < 2:
        return Estimate(value, None)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value, (float(low), float(high)))
