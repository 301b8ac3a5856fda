"""Rows: which rows of a recording are kept, as runs of consecutive rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """An ordered list of row numbers, held as runs of consecutive ones: its size is that of the gaps, not of the data.

    Args:
        starts: first row of each run.
        offsets: run i stands at the positions from `offsets[i]` to `offsets[i + 1]`; none is empty.
    """

    starts: Index
    offsets: Index

    @classmethod
    def all(cls, count: int) -> Rows:
        """Rows 0 to `count`."""
        return cls(np.zeros(min(count, 1), dtype=np.int64), np.array([0, count][: 1 + min(count, 1)], dtype=np.int64))

    @classmethod
    def of(cls, index: Index) -> Rows:
        """These rows, in this order."""
        begins = np.flatnonzero(np.diff(index, prepend=index[:1] - 2) != 1)
        return cls(index[begins], np.append(begins, len(index)))

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def at(self, positions: NDArray[Any]) -> Index:
        """The rows at these positions."""
        if len(self.starts) == 1:
            return np.asarray(positions + self.starts[0])
        run = np.searchsorted(self.offsets, positions, side="right") - 1
        return np.asarray(self.starts[run] + (positions - self.offsets[run]))

    def to_array(self) -> Index:
        """All rows, one number each."""
        return np.repeat(self.starts - self.offsets[:-1], np.diff(self.offsets)) + np.arange(len(self))

    def spans(self, begins: Index, ends: Index) -> Rows:
        """The rows at the positions from `begins[0]` to `ends[0]`, then from `begins[1]` to `ends[1]`, and so on.

        No span may be empty.
        """
        first = np.searchsorted(self.offsets, begins, side="right") - 1
        last = np.searchsorted(self.offsets, ends - 1, side="right") - 1
        pieces = last - first + 1  # runs that each span touches
        span = np.repeat(np.arange(len(begins)), pieces)
        run = np.arange(len(span)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[span]
        low = np.maximum(self.offsets[run], begins[span])
        high = np.minimum(self.offsets[run + 1], ends[span])
        return Rows._joined(self.starts[run] + low - self.offsets[run], high - low)

    def shifted(self, by: int) -> Rows:
        """Every row moved by so many."""
        return Rows(self.starts + by, self.offsets)

    @staticmethod
    def concat(parts: list[Rows]) -> Rows:
        """All rows of several lists, in order."""
        starts = np.concatenate([part.starts for part in parts])
        return Rows._joined(starts, np.concatenate([np.diff(part.offsets) for part in parts]))

    @staticmethod
    def _joined(starts: Index, lengths: Index) -> Rows:
        """Runs from their first rows and lengths; those that continue the one before become one with it."""
        new = np.ones(len(starts), dtype=bool)
        new[1:] = starts[1:] != starts[:-1] + lengths[:-1]
        offsets = np.append(0, np.cumsum(lengths))
        return Rows(starts[new], np.append(offsets[:-1][new], offsets[-1]))
