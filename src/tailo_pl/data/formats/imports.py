"""From files of recorded steps to the arrays of a Recording, a batch of rows at a time, checked on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data import formats
from tailo_pl.data.cache import save_labels
from tailo_pl.data.formats.array_files import ArrayFile, ArrayWriter
from tailo_pl.data.formats.columns import FLAGS, VECTORS, Columns, FieldNames, resolve
from tailo_pl.data.formats.record_file import BATCH_BYTES, RecordFile
from tailo_pl.data.formats.step_reader import NUMBERS, Ending, StepReader
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

Opener = Callable[[Path], RecordFile]


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
            reader = StepReader(file, layout, ending, dtypes, finite)
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
    narrow = ArrayFile(path.with_suffix(".narrow"), np.dtype(np.float32), wide.shape[1:])
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


def _common_dtypes(files: Sequence[RecordFile], layouts: Sequence[FieldNames]) -> dict[str, np.dtype[Any]]:
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


def _agreed(files: Sequence[RecordFile], layouts: Sequence[FieldNames]) -> list[FieldNames]:
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
