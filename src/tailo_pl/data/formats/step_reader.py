"""The recorded steps of one file, checked a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.array_files import ArrayWriter
from tailo_pl.data.formats.columns import FLAGS, VECTORS, FieldNames
from tailo_pl.data.formats.record_file import RecordFile
from tailo_pl.errors import UserError

NUMBERS, TEXT = "biuf", "OUST"
"""Kinds of array types."""


@dataclass(frozen=True)
class Ending:
    """Where trajectories end in files that name no episodes.

    Args:
        whole_file: a file without any mark of an end is one trajectory; otherwise it is an error.
        horizon: files without timeouts: a trajectory also ends after this many steps.
    """

    whole_file: bool = False
    horizon: int | None = None


class StepReader:
    """Reads one file: stacks the fields of each role, checks the numbers, finds where trajectories begin."""

    def __init__(
        self,
        file: RecordFile,
        layout: FieldNames,
        ending: Ending,
        dtypes: Mapping[str, np.dtype[Any]] | None,
        finite: bool,
    ) -> None:
        self._finite = finite
        self._file, self._layout, self._ending, self._dtypes = file, layout, ending, dtypes
        self.rows = 0
        self._begun: list[NDArray[np.int64]] = []
        self._seen: set[Any] = set()
        self._last: dict[str, Any] = {}
        self._since_start = 0
        names = layout.names
        marked = any(role in names for role in ("episode", "step", *FLAGS))
        if not marked and not ending.whole_file and ending.horizon is None:
            raise UserError(
                f"{file.path}: episode: no field found that tells trajectories apart, expected an episode column "
                "(source.columns.episode=NAME), or source.columns.episode=null where each file is one trajectory"
            )

    def copy(self, writer: ArrayWriter) -> NDArray[np.int64]:
        """Hand every batch on to the writer; the rows at which trajectories begin."""
        for batch in self._file.batches(self._layout.all_names):
            count = len(next(iter(batch.values())))
            if not count:
                continue
            arrays = {role: self._array(role, names, batch) for role, names in self._layout.names.items()}
            self._begun.append(self._starts(arrays, count) + self.rows)
            for role in ("episode", "step"):
                arrays.pop(role, None)
            writer.add(arrays)
            self.rows += count
        if not self.rows:
            raise UserError(f"{self._file.path}: no rows found, expected at least one step")
        return np.concatenate(self._begun)

    def _array(self, role: str, names: tuple[str, ...], batch: dict[str, NDArray[Any]]) -> NDArray[Any]:
        is_text = [batch[name].dtype.kind in TEXT for name in names]
        if role == "episode" and is_text[0]:
            return batch[names[0]].reshape(-1)
        for name, text in zip(names, is_text, strict=True):
            if batch[name].dtype.kind not in NUMBERS:
                found = "text" if text else batch[name].dtype
                raise UserError(f"{self._file.path}: {name}: type {found} found, expected numbers")
        pieces = [batch[name].reshape(len(batch[name]), -1) for name in names]
        matrix = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        if self._finite or role in ("episode", "step", *FLAGS):
            self._require_finite(role, matrix)
        if role in FLAGS:
            return self._flags(role, matrix[:, 0])
        if role not in ("episode", "step"):
            matrix = (
                self._narrow(role, matrix) if self._dtypes is None else matrix.astype(self._dtypes[role], copy=False)
            )
        return matrix if role in VECTORS else matrix[:, 0]

    def _flags(self, role: str, column: NDArray[Any]) -> NDArray[np.bool_]:
        strange = np.flatnonzero((column != 0) & (column != 1))
        if len(strange):
            row = int(strange[0])
            raise UserError(f"{self._file.path}: {role}: {column[row]} found in row {self.rows + row}, expected 0 or 1")
        return column.astype(bool)

    def _narrow(self, role: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
        if matrix.dtype == np.float32:
            return matrix
        with np.errstate(over="ignore"):
            narrow = matrix.astype(np.float32)
        if matrix.dtype == np.float64:
            self._require_finite(role, narrow, "a number too large for float32")
        return narrow

    def _require_finite(self, role: str, matrix: NDArray[Any], what: str = "") -> None:
        if matrix.dtype.kind != "f" or np.isfinite(matrix).all():
            return
        row, dimension = np.argwhere(~np.isfinite(matrix))[0]
        where = f"row {self.rows + row}" + (f", dimension {dimension}" if role in VECTORS else "")
        found = what or str(matrix[row, dimension])
        raise UserError(f"{self._file.path}: {role}: {found} found in {where}, expected finite numbers")

    def _starts(self, arrays: dict[str, NDArray[Any]], count: int) -> NDArray[np.int64]:
        """Rows of this batch at which a trajectory begins."""
        begins = np.zeros(count, dtype=bool)
        begins[0] = not self.rows
        if "episode" in arrays:
            begins |= self._changes("episode", arrays["episode"], lambda now, before: now != before)
            self._require_together(arrays["episode"][begins])
            return np.flatnonzero(begins)
        if "step" in arrays:
            begins |= self._changes("step", arrays["step"], lambda now, before: now <= before)
        for role in FLAGS:
            if role in arrays:
                begins |= self._changes(role, arrays[role], lambda now, before: before)
        if self._ending.horizon is not None and "timeouts" not in arrays:
            begins = self._cut_at_horizon(begins, self._ending.horizon)
        return np.flatnonzero(begins)

    def _changes(self, role: str, column: NDArray[Any], differs: Callable[[Any, Any], Any]) -> NDArray[np.bool_]:
        """Where a row differs from the one before it, which may be the last of the batch before."""
        result = np.zeros(len(column), dtype=bool)
        result[1:] = differs(column[1:], column[:-1])
        if role in self._last:
            result[0] = bool(differs(column[0], self._last[role]))
        self._last[role] = column[-1]
        return result

    def _require_together(self, begun: NDArray[Any]) -> None:
        for episode in begun.tolist():
            if episode in self._seen:
                raise UserError(
                    f"{self._file.path}: episode: {episode!r} begins a second time, expected its rows to stand together"
                )
            self._seen.add(episode)

    def _cut_at_horizon(self, begins: NDArray[np.bool_], horizon: int) -> NDArray[np.bool_]:
        """A trajectory that has lasted the task's episode length ends there."""
        rows = np.arange(len(begins))
        # Row at which the trajectory of each row began, counted from this batch's first row.
        first = np.maximum.accumulate(np.where(begins, rows, -1))
        age = np.where(first >= 0, rows - first, rows + self._since_start)
        begins = begins | (age % horizon == 0)
        last = np.flatnonzero(begins)
        self._since_start = len(begins) - int(last[-1]) if len(last) else self._since_start + len(begins)
        return begins
