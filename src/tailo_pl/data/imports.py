"""From files of recorded steps to the arrays of a Recording, a batch of rows at a time, checked on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tailo_pl.data import formats
from tailo_pl.data.cache import save_labels
from tailo_pl.data.columns import FLAGS, VECTORS, Columns, Layout, resolve
from tailo_pl.data.formats.record_file import BATCH_BYTES, RecordFile
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

NUMBERS, TEXT = "biuf", "OUST"
"""Kinds of array types."""

Opener = Callable[[Path], RecordFile]


@dataclass(frozen=True)
class Ending:
    """Where trajectories end in files that name no episodes.

    Args:
        whole_file: a file without any mark of an end is one trajectory; otherwise it is an error.
        horizon: files without timeouts: a trajectory also ends after this many steps.
    """

    whole_file: bool = False
    horizon: int | None = None


def import_files(
    paths: Sequence[Path],
    open_file: Opener,
    folder: Path,
    columns: Columns,
    *,
    ignored: Iterable[str] = (),
    ending: Ending | None = None,
    exact: bool = False,
    finite: bool = True,
) -> None:
    """Write the recorded steps of all files, one after the other, into `folder` as a cache entry holds them.

    Memory stays at a few batches of rows, whatever the files' sizes.

    Args:
        paths: the files.
        open_file: opens one.
        folder: where the arrays go.
        columns: which fields hold what.
        ignored: roles that are not wanted.
        ending: where trajectories end when no field names episodes. Default: a file is one only where
            `columns.episode` is null.
        exact: keep the files' number types (of several files, one that holds the numbers of all); otherwise numbers
            become float32.
        finite: refuse NaN and infinity; without, states, actions and rewards may hold them.
    """
    ending = ending or Ending(whole_file=columns.episode is None)
    with ExitStack() as stack:
        files = [stack.enter_context(open_file(path)) for path in paths]
        layouts = _agreed(files, [resolve(file.path, file.fields, columns, ignored) for file in files])
        dtypes = _common_dtypes(files, layouts) if exact else None
        writer = stack.enter_context(ArrayWriter(folder))
        starts: list[NDArray[np.int64]] = []
        origins: list[str] = []
        for file, layout in zip(files, layouts, strict=True):
            reader = _Reader(file, layout, ending, dtypes, finite)
            begun = reader.copy(writer) + writer.rows
            writer.rows += reader.rows
            starts.append(begun)
            origins += [file.path.stem] * len(begun)
    np.save(folder / "starts.npy", np.concatenate(starts))
    save_labels(folder, origins)


def read_exactly(paths: Sequence[Path], columns: Columns | None = None, *, finite: bool = True) -> Trajectories:
    """All steps of some files with the number types they have there, as memory maps of files that are gone.

    CSV does not say its number types: there float32 is what float32 can hold.

    Args:
        paths: the files.
        columns: which fields hold what.
        finite: refuse NaN and infinity.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        try:
            import_files(paths, formats.open_file, folder, columns or Columns(), exact=True, finite=finite)
        except OSError as error:
            raise UserError(f"{folder}: cannot write temporary files ({error.strerror}); set TMPDIR") from error
        if all(path.suffix.lower() == ".csv" for path in paths):
            for path in folder.glob("*.npy"):
                _narrow_file(path)
        arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in folder.glob("*.npy")}
        origins, starts = arrays.pop("origins"), np.array(arrays.pop("starts"))
        return Trajectories.of(Recording(starts=starts, **arrays), origins.tolist())


def _narrow_file(path: Path) -> None:
    """Turn an array of float64 into one of float32 where each number stays the same."""
    wide = np.load(path, mmap_mode="r", allow_pickle=False)
    if wide.dtype != np.float64:
        return
    rows = max(1, BATCH_BYTES // (wide.itemsize * wide[0].size))
    narrow = _ArrayFile(path.with_suffix(".narrow"), np.dtype(np.float32), wide.shape[1:])
    for start in range(0, len(wide), rows):
        part = wide[start : start + rows]
        with np.errstate(over="ignore", under="ignore"):
            rounded = part.astype(np.float32)
        if (rounded != part).any():
            narrow.discard()
            return
        narrow.append(rounded)
    narrow.close()
    path.with_suffix(".narrow").replace(path)


def _common_dtypes(files: Sequence[RecordFile], layouts: Sequence[Layout]) -> dict[str, np.dtype[Any]]:
    """For each role of numbers that stay as they are, the type that holds those of all files."""
    dtypes: dict[str, np.dtype[Any]] = {}
    for role in (*VECTORS, "rewards"):
        found = [
            file.fields[name].dtype
            for file, layout in zip(files, layouts, strict=True)
            for name in layout.names.get(role, ())
            if file.fields[name].dtype.kind in NUMBERS
        ]
        if found:
            dtypes[role] = np.result_type(*found)
    return dtypes


def _agreed(files: Sequence[RecordFile], layouts: Sequence[Layout]) -> list[Layout]:
    """Only the roles that all files have, with the same widths everywhere."""
    roles = set.intersection(*[set(layout.names) for layout in layouts])
    # What tells trajectories apart is each file's own affair.
    own = {"episode", "step"}
    for file, layout in zip(files, layouts, strict=True):
        for role in sorted(roles - own):
            if layout.widths[role] != layouts[0].widths[role]:
                raise UserError(
                    f"{file.path}: {role}: {layout.widths[role]} dimensions found, expected "
                    f"{layouts[0].widths[role]} as in {files[0].path}"
                )
    kept = [{role: names for role, names in layout.names.items() if role in roles | own} for layout in layouts]
    # Ends are read even where not all files mark them, and kept only where all do.
    return [
        replace(layout, names={**names, **{role: layout.names[role] for role in FLAGS if role in layout.names}})
        for layout, names in zip(layouts, kept, strict=True)
    ]


class _Reader:
    """Reads one file: stacks the fields of each role, checks the numbers, finds where trajectories begin."""

    def __init__(
        self,
        file: RecordFile,
        layout: Layout,
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


class ArrayWriter:
    """Appends batches to one `.npy` file per role, and leaves out roles that not every batch has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _ArrayFile] = {}
        self._dropped: set[str] = set()
        self.rows = 0
        self._written = 0

    def add(self, arrays: dict[str, NDArray[Any]]) -> None:
        count = len(next(iter(arrays.values())))
        for role in self._files.keys() - arrays.keys():
            self._files.pop(role).discard()
            self._dropped.add(role)
        for role, array in arrays.items():
            if role in self._dropped or (role not in self._files and self._written):
                continue
            if role not in self._files:
                self._files[role] = _ArrayFile(self._folder / f"{role}.npy", array.dtype, array.shape[1:])
            self._files[role].append(array)
        self._written += count

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()


class _ArrayFile:
    """A `.npy` file that grows. Its header leaves room for the number of rows, which is written at the end."""

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._dtype, self._shape, self._rows = dtype, shape, 0
        self._write_header()
        self._begin = self._file.tell()

    def append(self, array: NDArray[Any]) -> None:
        if array.dtype != self._dtype:
            raise ValueError(f"{array.dtype} appended to an array of {self._dtype}")
        self._file.write(np.ascontiguousarray(array).data)
        self._rows += len(array)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        assert self._file.tell() == self._begin
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        self._path.unlink()

    def _write_header(self) -> None:
        header = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._rows, *self._shape)}
        npy.write_array_header_1_0(self._file, header)
