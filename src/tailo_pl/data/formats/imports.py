"""From files of recorded steps to the arrays of a Recording, a batch of rows at a time, checked on the way."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data import formats
from tailo_pl.data.cache import recorded, save_labels, save_names
from tailo_pl.data.formats.array_files import ArrayFile, ArrayWriter
from tailo_pl.data.formats.columns import FLAGS, OPTION, VECTORS, Columns, FieldNames, resolve
from tailo_pl.data.formats.record_file import BATCH_BYTES, RecordFile
from tailo_pl.data.formats.step_reader import NUMBERS, Care, Ending, StepReader
from tailo_pl.data.formats.survey import Survey
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

Opener = Callable[[Path], RecordFile]
_CAREFUL = Care()
_LISTED = 12
log = logging.getLogger(__name__)


def import_files(
    paths: Sequence[Path],
    open_file: Opener,
    folder: Path,
    columns: Columns,
    *,
    ignored: Iterable[str] = (),
    ending: Ending | None = None,
    exact: bool = False,
    care: Care = _CAREFUL,
    option: str = OPTION,
    telling: bool = False,
    survey: Survey | None = None,
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
        care: what to do about numbers that cannot be trained on.
        option: how the user says which fields play a role.
        telling: say which fields of the files are left out.
        survey: looks at everything that is read.
    """
    ending = ending or Ending(whole_file=columns.episode is None)
    with ExitStack() as stack:
        files = [stack.enter_context(open_file(path)) for path in paths]
        layouts = _agreed(files, [resolve(file.path, file.fields, columns, ignored, option) for file in files])
        if telling:
            _tell_left_out(paths, layouts)
        dtypes = _common_dtypes(files, layouts, holes=not care.finite) if exact else None
        names = {role: _names(files[0], layouts[0], role) for role in VECTORS}
        writer = stack.enter_context(ArrayWriter(folder))
        starts: list[NDArray[np.int64]] = []
        origins: list[str] = []
        dropped = clipped = 0
        for file, layout in zip(files, layouts, strict=True):
            looking = survey.of(file, layout, names) if survey else None
            reader = StepReader(file, layout, ending, dtypes, care, option, looking)
            begun = reader.copy(writer) + writer.rows
            writer.rows += reader.rows
            starts.append(begun)
            origins += [file.label] * len(begun)
            dropped, clipped = dropped + reader.dropped, clipped + reader.clipped
    if survey:
        survey.finish()
    np.save(folder / "starts.npy", np.concatenate(starts))
    save_labels(folder, origins)
    save_names(folder, names["observations"], names["actions"])
    if care.drop_nan:
        log.info("%s: %d of %d steps left out because of a NaN", told(paths), dropped, dropped + writer.rows)
    if care.clip is not None and "actions" not in ignored:
        log.info("%s: actions of %d of %d steps brought within their bounds", told(paths), clipped, writer.rows)


def told(paths: Sequence[Path]) -> str:
    """Some files for people."""
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _tell_left_out(paths: Sequence[Path], layouts: Sequence[FieldNames]) -> None:
    """One line for all files that leave out the same."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path, layout in zip(paths, layouts, strict=True):
        groups.setdefault(layout.left_out, []).append(path)
    for left_out, alike in groups.items():
        if left_out:
            listed = ", ".join(left_out[:_LISTED])
            more = f" and {len(left_out) - _LISTED} more" if len(left_out) > _LISTED else ""
            log.info("%s: left out: %s%s", told(alike), listed, more)


def _names(file: RecordFile, layout: FieldNames, role: str) -> list[str]:
    """What the numbers of a role are called: by the file, or after its fields."""
    names: list[str] = []
    for name in layout.names.get(role, ()):
        field = file.fields[name]
        numbered = [f"{name}[{number}]" for number in range(field.width)] if field.width is not None else [name]
        names += field.names or numbered
    return names


def read_exactly(
    paths: Sequence[Path],
    columns: Columns | None = None,
    *,
    care: Care = _CAREFUL,
    open_file: Opener = formats.open_file,
    ending: Ending | None = None,
    ignored: Iterable[str] = (),
    option: str = OPTION,
    telling: bool = False,
    survey: Survey | None = None,
) -> Trajectories:
    """All steps of some files with the number types they have there, as memory maps of files that are gone.

    CSV does not say its number types: there float32 is what float32 can hold.

    Args:
        paths: the files.
        columns: which fields hold what.
        care: what to do about numbers that cannot be trained on.
        open_file: opens one.
        ending: where trajectories end when no field names episodes.
        ignored: roles that are not wanted.
        option: how the user says which fields play a role.
        telling: say which fields of the files are left out.
        survey: looks at everything that is read.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        try:
            import_files(
                paths, open_file, folder, columns or Columns(), ignored=ignored, ending=ending, exact=True, care=care,
                option=option, telling=telling, survey=survey,
            )  # fmt: skip
        except OSError as error:
            raise UserError(f"{folder}: cannot write temporary files ({error.strerror}); set TMPDIR") from error
        if all(formats.ending_of(path)[:4] in (".csv", ".tsv") for path in paths):
            for path in folder.glob("*.npy"):
                _narrow_file(path)
        arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in folder.glob("*.npy")}
        origins = arrays.pop("origins")
        return Trajectories.of(recorded(arrays), origins)


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


def _common_dtypes(files: Sequence[RecordFile], layouts: Sequence[FieldNames], holes: bool) -> dict[str, np.dtype[Any]]:
    """For each role of numbers that stay as they are, the type that holds those of all files, and where asked NaN."""
    dtypes: dict[str, np.dtype[Any]] = {}
    for role in (*VECTORS, "rewards"):
        found = [
            file.fields[name].dtype
            for file, layout in zip(files, layouts, strict=True)
            for name in layout.names.get(role, ())
            if file.fields[name].dtype.kind in NUMBERS
        ]
        if found:
            dtypes[role] = np.result_type(*found, *([np.float32] if holes else []))
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
