"""What every file format offers: named fields with one entry per recorded step, read in batches of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError

BATCH_BYTES = 16 << 20
"""About how much of a file is in memory at a time."""

# A file may hold more than it seems to. Tables of constants compress a lot, so the limit is generous; it exists to
# refuse files made to fill the disk.
_MOST_EXPANSION, _ALWAYS_ALLOWED = 1000, 1 << 30


@dataclass(frozen=True)
class Field:
    """One field of a file.

    Args:
        dtype: of its numbers (booleans, integers or floats).
        width: numbers per step; None: a plain number rather than a vector.
        names: what the file calls each of the numbers; None: it does not say.
    """

    dtype: np.dtype[Any]
    width: int | None = None
    names: tuple[str, ...] | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes one step takes in memory."""
        return int(self.dtype.itemsize * (self.width or 1))


class RecordFile(ABC):
    """An open file. Opening reads what describes the fields, never the numbers.

    Every problem with the file is a `UserError` that begins with its path.

    Attributes:
        path: the file.
        fields: what it holds, by name, in the file's order.
    """

    path: Path
    fields: Mapping[str, Field]

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """The named fields, some rows at a time: (rows,) or (rows, width) arrays of equal length."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def label(self) -> str:
        """What people call the file."""
        stem = self.path.stem
        return Path(stem).stem if self.path.suffix.lower() == ".gz" else stem

    def place(self, row: int) -> str:
        """Where a row is, for people: the file's own line where it has lines."""
        return f"row {row} (counted from 0)"

    def rows_per_batch(self, names: Sequence[str]) -> int:
        """How many rows of these fields to read at a time."""
        return max(1, BATCH_BYTES // max(1, sum(self.fields[name].row_bytes for name in names)))

    def require_number(self, name: str, dtype: np.dtype[Any]) -> None:
        """Refuse a field that does not hold plain numbers."""
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise UserError(f"{self.path}: {name}: type {dtype} found, expected numbers")

    def require_plausible(self, decoded: int, allowed: int | None = None) -> None:
        """Refuse a file whose fields are absurdly larger than the file: it was made to fill memory or disk.

        Args:
            decoded: bytes its fields take in memory.
            allowed: as many are not absurd however small the file is; None: a gigabyte.
        """
        size = self.path.stat().st_size
        if decoded > max(_ALWAYS_ALLOWED if allowed is None else allowed, _MOST_EXPANSION * size):
            raise UserError(f"{self.path}: unpacks from {size:,} to {decoded:,} bytes, expected at most 1000 times")
