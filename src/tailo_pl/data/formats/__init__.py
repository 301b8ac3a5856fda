"""File formats of recorded steps: one module each, and here the way in: open a file, write a file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.data.formats.record_file import RecordFile
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, one_line
from tailo_pl.files import whole_file

# Module, class that reads, function that writes. Imported when needed: some of them bring large libraries along.
_HDF5 = ("hdf5", "Hdf5File", "write_hdf5")
_CSV = ("csv_table", "CsvFile", "write_csv")
_FORMATS = {
    ".npz": ("npz", "NpzFile", "write_npz"),
    ".hdf5": _HDF5,
    ".h5": _HDF5,
    ".parquet": ("parquet", "ParquetFile", "write_parquet"),
    ".csv": _CSV,
    ".tsv": _CSV,
    ".csv.gz": _CSV,
    ".tsv.gz": _CSV,
    ".pt": ("pt", "PtFile", "write_pt"),
}
SUFFIXES = tuple(_FORMATS)
WRITTEN = tuple(suffix for suffix in _FORMATS if suffix == ".csv" or _FORMATS[suffix] != _CSV)
"""Those that can be written."""
_INSTEAD = {
    ".npy": "it has no names: write numpy.savez('x.npz', observations=..., actions=..., episode=...)",
    ".mat": "load it with scipy.io.loadmat and write numpy.savez('x.npz', observations=..., actions=..., episode=...)",
    ".pkl": "it could run anything when opened: load it where you trust it and write numpy.savez('x.npz', "
    "observations=..., actions=..., episode=...)",
}
_INSTEAD[".pickle"] = _INSTEAD[".pkl"]


def ending_of(path: Path) -> str:
    """The part of a file's name that says its format: `.csv`, or `.csv.gz`."""
    endings = [one.lower() for one in path.suffixes]
    return "".join(endings[-2:]) if endings[-1:] == [".gz"] else "".join(endings[-1:])


def open_file(path: Path, holes: bool = False) -> RecordFile:
    """Open a file of recorded steps; its ending says the format. With `holes` missing numbers of tables are NaN."""
    module, reader, _ = _format(path)
    try:
        if not path.is_file() and path.exists():  # opening a pipe would wait for its other end
            raise UserError(f"{path}: not a file, expected recorded steps")
        with path.open("rb"):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    tabular = reader in ("ParquetFile", "CsvFile")
    file: RecordFile = getattr(_module(module), reader)(path, *([holes] if tabular else []))
    return file


def write_file(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps of all trajectories as a new file, whole or not at all; its ending says the format.

    Fields have their canonical names, and `episode` numbers the trajectories.
    """
    module, _, writer = _format(path)
    if ending_of(path) not in WRITTEN:
        raise UserError(f"{path}: cannot be written, expected one of {', '.join(WRITTEN)}")
    _require_neighbours(path, trajectories)
    if path.exists():
        raise UserError(f"{path}: already there, expected the name of a new file")
    try:
        with whole_file(path) as scratch:
            getattr(_module(module), writer)(scratch, trajectories)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or one_line(error)})") from error


def _format(path: Path) -> tuple[str, str, str]:
    found = ending_of(path)
    if found in _INSTEAD:
        raise UserError(f"{path}: {found} is not read; {_INSTEAD[found]}")
    if found not in _FORMATS:
        raise UserError(f"{path}: ending {found!r} found, expected one of {', '.join(SUFFIXES)}")
    return _FORMATS[found]


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name}")


def _require_neighbours(path: Path, trajectories: Trajectories) -> None:
    """Without recorded next states the next row is the next state: no row in between may have been dropped."""
    recording, rows = trajectories.recording, trajectories.rows
    if recording.next_observations is not None:
        return
    first, last = trajectories.offsets[:-1], trajectories.offsets[1:] - 1
    in_one_run = np.searchsorted(rows.offsets, first, side="right") == np.searchsorted(rows.offsets, last, side="right")
    ends = np.append(recording.starts[1:], len(recording.observations)) - 1
    if not (in_one_run & np.isin(rows.at(last), ends)).all():
        raise UserError(
            f"{path}: steps were dropped from trajectories without recorded next states, expected whole trajectories"
        )
