"""The statistics of every dimension of an array, gathered a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Trajectories

_BLOCK_BYTES = 1 << 20
"""How much is worked on at a time: every block is read several times, so it should stay in the processor's cache."""

Numbers = tuple[float | None, ...]


@dataclass(frozen=True)
class Dimensions:
    """Each dimension of an array. Numbers that are not finite are counted, and left out of everything else.

    Args:
        min: smallest number; None where no number is finite.
        max: largest.
        mean: mean.
        std: standard deviation.
        constant: dimensions in which all numbers are finite and the same.
        nan: how many are not a number.
        infinite: how many are infinite.
        first_not_finite: row of the recording with the first of either; None where there is none.
    """

    min: Numbers
    max: Numbers
    mean: Numbers
    std: Numbers
    constant: tuple[int, ...]
    nan: tuple[int, ...]
    infinite: tuple[int, ...]
    first_not_finite: tuple[int | None, ...]


def blocks(trajectories: Trajectories, array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The kept rows of an array, a few at a time, and the position of the first."""
    size = max(1, _BLOCK_BYTES // max(1, array[:1].nbytes))
    position = 0
    for chunk in trajectories.chunks(array):
        for begin in range(0, len(chunk), size):
            block = np.asarray(chunk[begin : begin + size])
            yield position, block
            position += len(block)


class Moments:
    """Gathers the statistics of every dimension over blocks of rows."""

    def __init__(self, width: int) -> None:
        self._count = np.zeros(width)
        self._mean, self._squares = np.zeros(width), np.zeros(width)
        self._min, self._max = np.full(width, np.inf), np.full(width, -np.inf)
        self._nan, self._infinite = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
        self._first = np.full(width, -1)

    def add(self, block: NDArray[Any], position: int) -> None:
        """Take in a block that begins at this position."""
        with np.errstate(over="ignore", invalid="ignore"):  # numbers near the limit of their type
            self._add(block, position)

    def _add(self, block: NDArray[Any], position: int) -> None:
        low, high = block.min(0).astype(np.float64), block.max(0).astype(np.float64)
        values = block.astype(np.float64)
        if np.isfinite(low).all() and np.isfinite(high).all():
            mean = values.mean(0)
            values -= mean
            self._merge(np.full(len(mean), float(len(block))), mean, np.einsum("ij,ij->j", values, values), low, high)
            return
        finite = np.isfinite(values)
        self._nan += np.isnan(values).sum(0)
        self._infinite += np.isinf(values).sum(0)
        bad = ~finite
        new = bad.any(0) & (self._first < 0)
        self._first[new] = position + bad.argmax(0)[new]
        count = finite.sum(0).astype(np.float64)
        mean = np.where(finite, values, 0.0).sum(0) / np.maximum(count, 1)
        away = np.where(finite, values - mean, 0.0)
        low, high = np.where(finite, values, np.inf).min(0), np.where(finite, values, -np.inf).max(0)
        self._merge(count, mean, np.einsum("ij,ij->j", away, away), low, high)

    def _merge(self, count: Any, mean: Any, squares: Any, low: Any, high: Any) -> None:
        """Put a block's count, mean and squared distances from its mean to those so far, which loses no digits."""
        total = self._count + count
        apart = mean - self._mean
        share = count / np.maximum(total, 1)
        self._squares += squares + apart**2 * self._count * share
        self._mean += apart * share
        self._count = total
        np.minimum(self._min, low, out=self._min)
        np.maximum(self._max, high, out=self._max)

    def dimensions(self, trajectories: Trajectories) -> Dimensions:
        """What was gathered over all kept steps."""
        std = np.sqrt(self._squares / np.maximum(self._count, 1))
        there = self._count > 0
        constant = (self._min == self._max) & (self._count == trajectories.steps)
        rows = trajectories.rows.at(np.maximum(self._first, 0))
        return Dimensions(
            min=plain(self._min, there),
            max=plain(self._max, there),
            mean=plain(self._mean, there),
            std=plain(std, there),
            constant=tuple(np.flatnonzero(constant).tolist()),
            nan=tuple(self._nan.tolist()),
            infinite=tuple(self._infinite.tolist()),
            first_not_finite=tuple(
                row if first >= 0 else None for row, first in zip(rows.tolist(), self._first.tolist(), strict=True)
            ),
        )


def plain(values: NDArray[np.float64], there: NDArray[np.bool_] | bool = True) -> Numbers:
    """Numbers as JSON can write them."""
    usable = np.isfinite(values) & there
    return tuple(value if use else None for value, use in zip(values.tolist(), usable.tolist(), strict=True))
