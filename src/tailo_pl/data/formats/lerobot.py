"""LeRobot data sets, v3.0 and v2.x: the rows of their Parquet files, held against the data set's own index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats import lerobot_meta as meta
from tailo_pl.data.formats.members import member
from tailo_pl.data.formats.parquet import ParquetFile
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.errors import UserError

STATE, ACTION = "observation.state", "action"
_ROW = ("episode_index", "frame_index", "task_index")


class LeRobotSet(RecordFile):
    """An open data set: the columns of all its data files, one after the other, and of these the chosen episodes.

    Args:
        path: its folder.
        episodes: numbers of the chosen ones; None: all.
        tasks: texts or numbers of the chosen ones; None: all. Frames of other tasks are left out.
        holes: let numbers be missing: they are NaN then.

    Attributes:
        info: what the data set says of itself.
        episodes: its episodes, chosen or not.
        chosen: for each of them, whether it is.
    """

    def __init__(
        self,
        path: Path,
        episodes: Sequence[int] | None = None,
        tasks: Sequence[str | int] | None = None,
        holes: bool = False,
    ) -> None:
        self.path, self._holes = path, holes
        self.info = meta.read_info(path)
        self.episodes = meta.read_episodes(path, self.info)
        self._tasks = meta.read_tasks(path, self.info)
        self._known = frozenset(self._tasks.values())
        self._wanted = None if tasks is None else self._task_numbers(tasks)
        self.chosen = self._chosen(episodes)
        self.fields = {
            name: Field(np.dtype(one.dtype), one.width if one.width != 1 else None, one.names)
            for name, one in self.info.features.items()
            if one.dtype in meta.NUMBERS and one.width is not None
        }
        missing = next((name for name in _ROW if name not in self.fields), None)
        if missing:
            raise UserError(f"{path}: {meta.INFO}: features: no {missing} found, expected the columns of every row")
        self._last: tuple[int, str, NDArray[np.int64]] = 0, "", np.empty(0, dtype=np.int64)

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        columns = list(dict.fromkeys([*names, *_ROW]))
        handed_on = 0
        task_seen = self._wanted is None
        for number, relative in enumerate(self.episodes.paths):
            here = self.episodes.file == number
            if not self.chosen[here].any():
                continue
            for row, batch in self._rows_of(relative, np.flatnonzero(here), columns):
                keep = self._kept(batch)
                task_seen |= bool(keep.any())
                rows = np.flatnonzero(keep)
                self._last = handed_on, relative, rows + row
                handed_on += len(rows)
                whole = len(rows) == len(keep)
                yield {name: batch[name] if whole else batch[name][rows] for name in names}
        if not task_seen:
            raise UserError(f"{self.path}: no row of the chosen tasks found (task_index {self._wanted}), expected some")

    @property
    def label(self) -> str:
        return self.path.name

    def close(self) -> None:
        """Nothing to do: a data file is open only while it is read."""

    def place(self, row: int) -> str:
        begin, relative, rows = self._last
        at = row - begin
        return f"row {rows[at]} (counted from 0) of {relative}" if 0 <= at < len(rows) else super().place(row)

    @property
    def tasks(self) -> list[str]:
        """The texts of all tasks."""
        return list(self._tasks)

    def _task_numbers(self, tasks: Sequence[str | int]) -> list[int]:
        numbers = set(self._tasks.values())
        for task in tasks:
            if task not in self._tasks and task not in numbers:
                there = ", ".join(f"{text!r} ({number})" for text, number in list(self._tasks.items())[:8])
                raise UserError(f"{self.path}: task {task!r} asked for, expected one of {there}")
        return sorted({task if isinstance(task, int) else self._tasks[task] for task in tasks})

    def _chosen(self, episodes: Sequence[int] | None) -> NDArray[np.bool_]:
        numbers = self.episodes.number
        if episodes is None:
            return np.ones(len(numbers), dtype=bool)
        missing = sorted(set(episodes) - set(numbers.tolist()))
        if missing or not episodes:
            found = f"episode {missing[0]}" if missing else "no episode"
            raise UserError(
                f"{self.path}: {found} asked for, expected some of {numbers[0]} to {numbers[-1]} "
                f"({len(numbers)} episodes)"
            )
        return np.isin(numbers, list(episodes))

    def _kept(self, batch: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
        if self._wanted is None and self.chosen.all():
            return np.ones(len(batch["episode_index"]), dtype=bool)
        keep = np.isin(batch["episode_index"], self.episodes.number[self.chosen])
        return keep if self._wanted is None else keep & np.isin(batch["task_index"], self._wanted)

    def _rows_of(
        self, relative: str, here: NDArray[np.int64], names: Sequence[str]
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        """The rows of one data file in batches, each with its first row's number; they must be as the index says."""
        lengths = self.episodes.length[here]
        total = int(lengths.sum())
        ends = np.cumsum(lengths)
        row = 0
        with ParquetFile(member(self.path, relative, "recorded frames"), self._holes) as file:
            self._require_columns(file, relative, names)
            for batch in file.batches(names):
                rows = np.arange(row, row + len(batch["episode_index"]))
                if row + len(rows) > total:
                    break
                at = np.searchsorted(ends, rows, side="right")
                expected = {
                    "episode_index": self.episodes.number[here][at],
                    "frame_index": rows - (ends - lengths)[at],
                }
                for name, numbers in expected.items():
                    self._require_equal(relative, name, batch[name], numbers, row)
                self._require_known_tasks(relative, batch["task_index"], row)
                yield row, batch
                row += len(rows)
            found = file.rows
        if found != total:
            first, last = self.episodes.number[here[0]], self.episodes.number[here[-1]]
            raise UserError(
                f"{self.path}: {relative}: {found} rows found, expected {total} for the episodes {first} to {last} "
                "of the index"
            )

    def _require_columns(self, file: ParquetFile, relative: str, names: Sequence[str]) -> None:
        for name in names:
            described = self.fields[name]
            found = file.fields.get(name)
            if found is None:
                raise UserError(f"{self.path}: {relative}: no column {name!r} found, expected it as in {meta.INFO}")
            if (found.width or 1) != (described.width or 1) or found.dtype.kind not in "biuf":
                raise UserError(
                    f"{self.path}: {relative}: {name}: {found.width or 1} times {found.dtype} found, expected "
                    f"{described.width or 1} times {described.dtype} as in {meta.INFO}"
                )

    def _require_equal(
        self, relative: str, name: str, found: NDArray[Any], expected: NDArray[np.int64], row: int
    ) -> None:
        wrong = np.flatnonzero(found.reshape(-1) != expected)
        if len(wrong):
            at = int(wrong[0])
            raise UserError(
                f"{self.path}: {relative}: {name} {found.reshape(-1)[at]} found in row {row + at} (counted from 0), "
                f"expected {expected[at]} by the data set's index of episodes"
            )

    def _require_known_tasks(self, relative: str, found: NDArray[Any], row: int) -> None:
        if len(found) and found.min() == found.max() and found.flat[0] in self._known:
            return
        strange = np.flatnonzero(~np.isin(found.reshape(-1), list(self._known)))
        if len(strange):
            at = int(strange[0])
            raise UserError(
                f"{self.path}: {relative}: task_index {found.reshape(-1)[at]} found in row {row + at} "
                f"(counted from 0), expected one of the {len(self._tasks)} of meta/tasks"
            )
