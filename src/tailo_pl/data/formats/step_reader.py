"""The recorded steps of one file, checked a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.array_files import ArrayWriter
from tailo_pl.data.formats.columns import FLAGS, OPTION, VECTORS, FieldNames
from tailo_pl.data.formats.record_file import RecordFile
from tailo_pl.data.formats.survey import FileSurvey
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


@dataclass(frozen=True)
class Care:
    """What to do about numbers that cannot be trained on.

    Args:
        finite: refuse NaN and infinity; without, states, actions and rewards may hold them.
        drop_nan: leave out steps with a NaN instead. Their neighbours are then what is left, in order.
        clip: lower and upper bounds to bring actions within, one number each or one per dimension.
    """

    finite: bool = True
    drop_nan: bool = False
    clip: tuple[Any, Any] | None = None


class StepReader:
    """Reads one file: stacks the fields of each role, checks the numbers, finds where trajectories begin.

    Attributes:
        rows: steps handed on.
        dropped: steps left out because of a NaN.
        clipped: steps with an action outside of its bounds.
    """

    def __init__(
        self,
        file: RecordFile,
        layout: FieldNames,
        ending: Ending,
        dtypes: Mapping[str, np.dtype[Any]] | None,
        care: Care,
        option: str = OPTION,
        survey: FileSurvey | None = None,
    ) -> None:
        self._survey = survey
        self._file, self._layout, self._ending, self._dtypes, self._care = file, layout, ending, dtypes, care
        self.rows = self.dropped = self.clipped = 0
        self._read = 0
        self._pending = False  # a trajectory whose first steps were left out
        self._begun: list[NDArray[np.int64]] = []
        self._seen: set[Any] = set()
        self._last: dict[str, Any] = {}
        self._since_start = 0
        names = layout.names
        marked = any(role in names for role in ("episode", "step", *FLAGS))
        if not marked and not ending.whole_file and ending.horizon is None:
            raise UserError(
                f"{file.path}: episode: no field found that tells trajectories apart, expected an episode column "
                f"({option.format('episode')}=NAME), or {option.format('episode')}=null where each file is one "
                "trajectory"
            )

    def copy(self, writer: ArrayWriter) -> NDArray[np.int64]:
        """Hand every batch on to the writer; the rows at which trajectories begin."""
        time = self._survey.time if self._survey else None
        names = self._layout.all_names
        for batch in self._file.batches(names if time is None or time in names else [*names, time]):
            count = len(next(iter(batch.values())))
            if not count:
                continue
            kept = self._whole_rows(batch) if self._care.drop_nan else np.ones(count, dtype=bool)
            whole = bool(kept.all()) and not self._pending
            arrays = {role: self._array(role, names, batch, kept) for role, names in self._layout.names.items()}
            if self._survey:
                self._survey.add(arrays, None if time is None else batch[time], self._read)
            begins = self._starts(arrays, count)
            self._read += count
            for role in ("episode", "step"):
                arrays.pop(role, None)
            arrays = arrays if whole else {role: array[kept] for role, array in arrays.items()}
            self._begun.append((begins if whole else self._moved(begins, kept)) + self.rows)
            if self._care.clip is not None and "actions" in arrays:
                arrays["actions"] = self._within(arrays["actions"], *self._care.clip)
            if (left := int(kept.sum())) > 0:
                writer.add(arrays)
            self.rows += left
            self.dropped += count - left
        if not self.rows:
            found = "only rows with NaN" if self.dropped else "no rows"
            raise UserError(f"{self._file.path}: {found} found, expected at least one step")
        starts = np.concatenate(self._begun)
        if self._survey:
            self._survey.finish(starts)
        return starts

    def _whole_rows(self, batch: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows without a NaN in anything that training would see."""
        names = {name for role in (*VECTORS, "rewards") for name in self._layout.names.get(role, ())}
        rows = [np.isnan(batch[name]) for name in names if batch[name].dtype.kind == "f"]
        missing = [one.reshape(len(one), -1).any(1) for one in rows]
        return ~np.any(missing, axis=0) if missing else np.ones(len(next(iter(batch.values()))), dtype=bool)

    def _moved(self, begins: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Where trajectories begin among the rows that are kept; one without any does not begin at all."""
        marks = np.zeros(len(kept), dtype=bool)
        marks[begins] = True
        # The first kept row at or behind a beginning, which may be in a later batch.
        group = np.cumsum(marks) + (1 if self._pending else 0)
        groups = group[kept]
        first = np.flatnonzero(np.diff(groups, prepend=0) > 0) if len(groups) else np.empty(0, dtype=np.int64)
        begun = int(groups[-1]) if len(groups) else 0
        self._pending = int(group[-1]) > begun
        return first

    def _within(self, actions: NDArray[Any], low: Any, high: Any) -> NDArray[Any]:
        for bound in (low, high):
            if np.ndim(bound) and len(bound) != actions.shape[1]:
                raise UserError(
                    f"source.action_low, source.action_high: {len(bound)} numbers given, expected {actions.shape[1]} "
                    f"as {self._file.path} has actions"
                )
        clipped: NDArray[Any] = np.clip(
            actions, np.array(low, dtype=actions.dtype), np.array(high, dtype=actions.dtype)
        )
        self.clipped += int(np.count_nonzero((clipped != actions).any(1)))
        return clipped

    def _array(
        self, role: str, names: tuple[str, ...], batch: dict[str, NDArray[Any]], kept: NDArray[np.bool_]
    ) -> NDArray[Any]:
        is_text = [batch[name].dtype.kind in TEXT for name in names]
        if role == "episode" and is_text[0]:
            return batch[names[0]].reshape(-1)
        for name, text in zip(names, is_text, strict=True):
            if batch[name].dtype.kind not in NUMBERS:
                found = "text" if text else batch[name].dtype
                raise UserError(f"{self._file.path}: {name}: type {found} found, expected numbers")
        pieces = [batch[name].reshape(len(batch[name]), -1) for name in names]
        matrix = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        if role in ("episode", "step", *FLAGS):
            self._require_finite(role, matrix)
        elif self._care.finite:
            self._require_finite(role, matrix, kept=kept)
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
            place = self._file.place(self._read + row)
            raise UserError(f"{self._file.path}: {role}: {column[row]} found in {place}, expected 0 or 1")
        return column.astype(bool)

    def _narrow(self, role: str, matrix: NDArray[Any]) -> NDArray[np.float32]:
        if matrix.dtype == np.float32:
            return matrix
        with np.errstate(over="ignore"):
            narrow = matrix.astype(np.float32)
        if matrix.dtype == np.float64:
            self._require_finite(role, narrow, "a number too large for float32", kept=np.isfinite(matrix).all(1))
        return narrow

    def _require_finite(
        self, role: str, matrix: NDArray[Any], what: str = "", kept: NDArray[np.bool_] | None = None
    ) -> None:
        if matrix.dtype.kind != "f" or (finite := np.isfinite(matrix)).all():
            return
        if kept is not None:
            finite |= ~kept[:, None]
            if finite.all():
                return
        row, dimension = np.argwhere(~finite)[0]
        where = self._file.place(self._read + int(row)) + (f", dimension {dimension}" if role in VECTORS else "")
        found = what or str(matrix[row, dimension])
        raise UserError(f"{self._file.path}: {role}: {found} found in {where}, expected finite numbers")

    def _starts(self, arrays: dict[str, NDArray[Any]], count: int) -> NDArray[np.int64]:
        """Rows of this batch at which a trajectory begins."""
        begins = np.zeros(count, dtype=bool)
        begins[0] = not self._read
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
