"""The kept steps of trajectories as files hold them: canonical names, some rows at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.record_file import BATCH_BYTES
from tailo_pl.data.trajectories import Trajectories


def written_arrays(trajectories: Trajectories) -> dict[str, NDArray[Any]]:
    """For each field of a file an array of its type and width: those of the recording, and the episode's number."""
    return {**trajectories.recording.arrays(), "episode": np.empty(0, dtype=np.int64)}


def batches(trajectories: Trajectories, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
    """The named fields of the kept steps. Recordings may be larger than memory: only a batch is ever gathered."""
    likes = written_arrays(trajectories)
    row_bytes = sum(likes[name].dtype.itemsize * int(np.prod(likes[name].shape[1:])) for name in names)
    rows = max(1, BATCH_BYTES // row_bytes)
    for start in range(0, trajectories.steps, rows):
        stop = min(start + rows, trajectories.steps)
        kept = trajectories.rows.at(np.arange(start, stop))
        yield {
            name: _episodes(trajectories, start, stop) if name == "episode" else np.asarray(likes[name][kept])
            for name in names
        }


def _episodes(trajectories: Trajectories, start: int, stop: int) -> NDArray[np.int64]:
    """The numbers of the trajectories to which the steps at these positions belong."""
    return np.searchsorted(trajectories.offsets, np.arange(start, stop), side="right") - 1


def numbered_columns(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """A table's columns: vectors become observations_0, observations_1, ..."""
    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}_{number}": array[:, number] for number in range(array.shape[1])}
    return columns


class PatientFile(io.FileIO):
    """A new file for libraries that crash, or lose the reason, when writing fails: it keeps the first error."""

    error: OSError | None = None

    def write(self, content: Any) -> int:
        left = memoryview(content).cast("B")
        size = len(left)
        try:
            while left and self.error is None:
                left = left[super().write(left) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def raise_error(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


@contextmanager
def patient_file(path: Path) -> Iterator[PatientFile]:
    """A new file whose errors are raised here, at the end."""
    with PatientFile(path, "w+") as file:
        try:
            yield file
        except Exception:
            file.raise_error()
            raise
        file.raise_error()
