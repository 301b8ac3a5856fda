"""HDF5 files: the datasets of all groups as fields, and trajectories written as such a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.columns import ALIASES
from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.hdf5_columns import Chunked, Column, Plain
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.data.formats.writing import batches, patient_file, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

CHUNK_BYTES = 1 << 18
DAMAGED = "damaged or not an HDF5 file"
_USUAL = frozenset(name for names in ALIASES.values() for name in names)


class Hdf5File(RecordFile):
    """An open HDF5 file. A dataset `x` in group `g` is the field `g/x`.

    The library behind h5py trusts what a file says about itself. So everything that is used is checked first: the
    type of the numbers bit by bit, that all storage is there, inside the file and nowhere else; and chunks are
    unpacked here, since the library hands out whatever lies in memory behind a chunk that is too short.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open(path)
        # Datasets by name; instead of one that cannot be used, what it is.
        self._found: dict[str, h5py.Dataset | str] = {}
        try:
            with damage_told(path, DAMAGED):
                self._find(self._file, "", set())
                self.fields = {name: _field(item) for name, item in self._found.items()}
        except UserError:
            self.close()
            raise

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        with damage_told(self.path, DAMAGED):
            columns = {name: self._column(name) for name in names}
            self.require_plausible(sum(column.decoded for column in columns.values()))
        self._require_apart(columns)
        first = next(iter(columns))
        steps = columns[first].rows
        for name, column in columns.items():
            if column.rows != steps:
                raise UserError(f"{self.path}: {name}: {column.rows} rows found, expected {steps} as in {first}")
        rows = self.rows_per_batch(names)
        for start in range(0, steps, rows):
            stop = min(start + rows, steps)
            with damage_told(self.path, DAMAGED):
                batch = {name: self._read(name, column, start, stop) for name, column in columns.items()}
            yield batch

    def close(self) -> None:
        with damage_told(self.path, DAMAGED):
            self._file.close()

    def attribute(self, group: str, name: str) -> Any:
        """A plain number or text that a group bears; None: it has none of this name."""
        with damage_told(self.path, DAMAGED):
            found = self._file[group].attrs.get(name) if group in self._file else None
            if isinstance(found, bytes):
                return found.decode()
            return found.item() if isinstance(found, np.generic) else found

    def texts(self, name: str) -> list[str]:
        """A dataset of short texts of one length, as robomimic keeps names."""
        with damage_told(self.path, DAMAGED):
            column = self._column(name, texts=True)
            self.require_plausible(column.decoded)
            return [text.decode() for text in column.read(0, column.rows).tolist()]

    def _find(self, group: h5py.Group, prefix: str, seen: set[int]) -> None:
        """Note every dataset below a group; links are noted, never followed."""
        address = h5py.h5o.get_info(group.id).addr
        if address in seen:
            raise UserError(f"{self.path}: group {prefix!r} is linked from two places, expected one")
        seen.add(address)
        for key in group:
            name = prefix + key
            if not name.isprintable():
                raise UserError(f"{self.path}: a field called {name!a} found, expected printable names")
            if name in self._found:
                raise UserError(f"{self.path}: field {name!r} found twice, expected each name once")
            link = group.get(name=key, getlink=True)
            if not isinstance(link, h5py.HardLink):
                self._found[name] = "an external link" if isinstance(link, h5py.ExternalLink) else "a soft link"
                continue
            item = group[key]
            if isinstance(item, h5py.Group):
                if name in _USUAL:  # otherwise what it should have held would be taken for not recorded
                    self._found[name] = "a group"
                self._find(item, f"{name}/", seen)
            elif not isinstance(item, h5py.Dataset):
                self._found[name] = "a named type"
            elif item.is_virtual or item.external:
                self._found[name] = "a dataset kept in other files"
            else:
                self._found[name] = item

    def _column(self, name: str, *, texts: bool = False) -> Column:
        """The dataset of a field, once everything it says about itself is known to be true."""
        item = self._found[name]
        where = f"{self.path}: {name}"
        if isinstance(item, str):
            raise UserError(f"{where}: {item} found, expected a dataset of this file")
        if item.shape is None or item.ndim not in ((1,) if texts else (1, 2)):
            raise UserError(f"{where}: shape {item.shape} found, expected (steps,) or (steps, dim)")
        dtype = np.dtype(self.fields[name].dtype.str)
        if not texts:
            self.require_number(name, dtype)
        elif dtype.kind != "S":
            raise UserError(f"{where}: type {dtype} found, expected texts of one length")
        if dtype.str[0] == ">" or not h5py.h5t.py_create(dtype, logical=True).equal(item.id.get_type()):
            raise UserError(f"{where}: an unusual number type found, expected little-endian integers or IEEE floats")
        size = self.path.stat().st_size
        return Chunked(where, item, dtype, size) if item.chunks else Plain(where, item, dtype, size)

    def _require_apart(self, columns: Mapping[str, Column]) -> None:
        """Refuse numbers that lie on those of another field: then one of the two is not where it should be."""
        end, before = 0, ""
        places = [(*extent, name) for name, column in columns.items() for extent in column.extents]
        for begin, stop, name in sorted(places):
            if begin < end:
                raise UserError(f"{self.path}: {name}: damaged, its numbers lie on those of {before}")
            end, before = stop, name

    def _read(self, name: str, column: Column, start: int, stop: int) -> NDArray[Any]:
        array = column.read(start, stop)
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise UserError(
                f"{self.path}: {name}: neither true nor false found in rows {start} to {stop - 1} (counted from 0)"
            )
        return array


def write_hdf5(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps, and as `episode` the number of their trajectory. Number types stay as they are.

    The format is the oldest one that keeps checksums of everything: HDF5 1.10.
    """
    steps = trajectories.steps
    # HDF5 crashes, sooner or later, where writing fails.
    with patient_file(path) as raw, h5py.File(raw, "w", libver=("v110", "v110")) as file:
        for name, like in written_arrays(trajectories).items():
            width = like.shape[1:]
            rows = min(steps, max(1, CHUNK_BYTES // (like.dtype.itemsize * math.prod(width))))
            dataset = file.create_dataset(
                name,
                shape=(steps, *width),
                dtype=like.dtype.newbyteorder("<"),
                chunks=(rows, *width),
                compression="gzip",
                fletcher32=True,
            )
            done = 0
            for batch in batches(trajectories, [name]):
                dataset[done : done + len(batch[name])] = batch[name]
                done += len(batch[name])
                raw.raise_error()


def _open(path: Path) -> h5py.File:
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
            raise UserError(f"{path}: not a file, expected an HDF5 file")
        with path.open("rb"):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected an HDF5 file") from error
    with damage_told(path, DAMAGED):
        if not h5py.is_hdf5(path):
            raise UserError(f"{path}: not an HDF5 file")
        # No lock: the file may lie on a disk that has none, or that may only be read.
        return h5py.File(path, "r", locking=False)


def _field(item: h5py.Dataset | str) -> Field:
    """What a field seems to be. Whether it can be used is checked when it is."""
    try:
        if isinstance(item, str) or item.shape is None:
            return Field(np.dtype(object))
        return Field(item.dtype, math.prod(item.shape[1:]) if item.ndim > 1 else None)
    except (TypeError, ValueError):  # a type that numpy does not have
        return Field(np.dtype(object))
