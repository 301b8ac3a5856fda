"""HDF5 files: the datasets of all groups as fields, and trajectories written as such a file."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.data.formats.writing import batches, patient_file, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

CHUNK_BYTES = 1 << 18
_DAMAGED = "damaged or not an HDF5 file"


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
            with damage_told(path, _DAMAGED):
                self._find(self._file, "", set())
                self.fields = {name: _field(item) for name, item in self._found.items()}
        except UserError:
            self.close()
            raise

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        with damage_told(self.path, _DAMAGED):
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
            with damage_told(self.path, _DAMAGED):
                batch = {name: self._read(name, column, start, stop) for name, column in columns.items()}
            yield batch

    def close(self) -> None:
        with damage_told(self.path, _DAMAGED):
            self._file.close()

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
                self._find(item, f"{name}/", seen)
            elif not isinstance(item, h5py.Dataset):
                self._found[name] = "a named type"
            elif item.is_virtual or item.external:
                self._found[name] = "a dataset kept in other files"
            else:
                self._found[name] = item

    def _column(self, name: str) -> _Column:
        """The dataset of a field, once everything it says about itself is known to be true."""
        item = self._found[name]
        where = f"{self.path}: {name}"
        if isinstance(item, str):
            raise UserError(f"{where}: {item} found, expected a dataset of this file")
        if item.shape is None or item.ndim not in (1, 2):
            raise UserError(f"{where}: shape {item.shape} found, expected (steps,) or (steps, dim)")
        dtype = np.dtype(self.fields[name].dtype.str)
        self.require_number(name, dtype)
        if dtype.str[0] == ">" or not h5py.h5t.py_create(dtype, logical=True).equal(item.id.get_type()):
            raise UserError(f"{where}: an unusual number type found, expected little-endian integers or IEEE floats")
        size = self.path.stat().st_size
        return _Chunked(where, item, dtype, size) if item.chunks else _Plain(where, item, dtype, size)

    def _require_apart(self, columns: Mapping[str, _Column]) -> None:
        """Refuse numbers that lie on those of another field: then one of the two is not where it should be."""
        end, before = 0, ""
        places = [(*extent, name) for name, column in columns.items() for extent in column.extents]
        for begin, stop, name in sorted(places):
            if begin < end:
                raise UserError(f"{self.path}: {name}: damaged, its numbers lie on those of {before}")
            end, before = stop, name

    def _read(self, name: str, column: _Column, start: int, stop: int) -> NDArray[Any]:
        array = column.read(start, stop)
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise UserError(f"{self.path}: {name}: neither true nor false found in rows {start} to {stop - 1}")
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


class _Column(Protocol):
    """One dataset, ready to be read."""

    rows: int
    decoded: int  # bytes in memory when all of it is read
    extents: list[tuple[int, int]]  # where in the file its numbers are

    def read(self, start: int, stop: int) -> NDArray[Any]: ...


class _Plain:
    """A dataset whose numbers lie in the file one after the other."""

    def __init__(self, where: str, dataset: h5py.Dataset, dtype: np.dtype[Any], file_size: int) -> None:
        self._dataset, self.rows = dataset, dataset.shape[0]
        self.decoded = math.prod(dataset.shape) * dtype.itemsize
        stored = dataset.id.get_storage_size()
        if stored != self.decoded:
            raise UserError(f"{where}: {stored} bytes are stored, expected {self.decoded} for shape {dataset.shape}")
        begin = dataset.id.get_offset() or 0  # none where the numbers are part of the description
        if begin + stored > file_size:
            raise UserError(f"{where}: bytes up to {begin + stored} found, expected the file's {file_size}")
        self.extents = [(begin, begin + stored)] if begin else []

    def read(self, start: int, stop: int) -> NDArray[Any]:
        return np.asarray(self._dataset[start:stop])


class _Chunked:
    """A dataset in chunks, each of them packed by some filters."""

    def __init__(self, where: str, dataset: h5py.Dataset, dtype: np.dtype[Any], file_size: int) -> None:
        self._where, self._dataset, self._dtype = where, dataset, dtype
        self._shape: tuple[int, ...] = dataset.shape
        self._chunk: tuple[int, ...] = dataset.chunks
        self.rows = self._shape[0]
        for most, length in zip(dataset.maxshape, self._chunk, strict=True):
            if most is not None and length > most:
                raise UserError(f"{where}: chunks of {self._chunk} found, expected them within {dataset.maxshape}")
        # Recordings grow by rows, not by dimensions.
        if dataset.maxshape[1:] != (None,) and dataset.maxshape[1:] != self._shape[1:]:
            raise UserError(f"{where}: {self._shape[1]} dimensions found, expected the {dataset.maxshape[1]} announced")
        description = dataset.id.get_create_plist()
        self._filters = [description.get_filter(number)[0] for number in range(description.get_nfilters())]
        unknown = set(self._filters) - {*_UNPACK, h5py.h5z.FILTER_LZF}
        if unknown:
            raise UserError(f"{where}: packed with HDF5 filter {min(unknown)}, expected gzip, lzf or none")
        self._chunk_bytes = math.prod(self._chunk) * dtype.itemsize
        self._stored = self._checked_chunks(file_size)
        self.decoded = len(self._stored) * self._chunk_bytes
        self.extents = [(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in self._stored.values()]
        self._band: tuple[int, NDArray[Any]] | None = None

    def read(self, start: int, stop: int) -> NDArray[Any]:
        if h5py.h5z.FILTER_LZF in self._filters:  # only h5py can unpack it
            return np.asarray(self._dataset[start:stop])
        result = np.empty((stop - start, *self._shape[1:]), dtype=self._dtype)
        height = self._chunk[0]
        for first in range(start - start % height, stop, height):
            low, high = max(start, first), min(stop, first + height)
            result[low - start : high - start] = self._rows_of(first)[low - first : high - first]
        return result

    def _checked_chunks(self, file_size: int) -> dict[tuple[int, ...], Any]:
        """What is stored of each chunk, by its first row (and column), once all of them are known to be there."""
        grid = math.prod(-(-length // part) for length, part in zip(self._shape, self._chunk, strict=True))
        count = self._dataset.id.get_num_chunks()
        if count != grid:
            raise UserError(f"{self._where}: {count} chunks are stored, expected {grid} for shape {self._shape}")
        chunks: list[Any] = []
        if count:
            self._dataset.id.chunk_iter(chunks.append)
        end = 0
        for chunk in sorted(chunks, key=lambda chunk: chunk.byte_offset):
            if chunk.byte_offset < end or chunk.byte_offset + chunk.size > file_size:
                raise UserError(f"{self._where}: damaged, a chunk lies on another one or outside of the file")
            # The library reads that many bytes of an unpacked chunk, whatever room the chunk's own size made for them.
            if not self._filters and chunk.size != self._chunk_bytes:
                raise UserError(f"{self._where}: damaged, a chunk of {chunk.size} bytes, expected {self._chunk_bytes}")
            end = chunk.byte_offset + chunk.size
        offsets = {
            chunk.chunk_offset: chunk
            for chunk in chunks
            if all(
                at % part == 0 and at < length
                for at, part, length in zip(chunk.chunk_offset, self._chunk, self._shape, strict=True)
            )
        }
        if len(offsets) != grid:
            raise UserError(f"{self._where}: damaged, {len(offsets)} of {grid} chunks are in their places")
        return offsets

    def _rows_of(self, first: int) -> NDArray[Any]:
        """All columns of the chunks that begin with this row; the last ones are kept, the next batch may need them."""
        if self._band is None or self._band[0] != first:
            self._band = None
            if len(self._chunk) == 1 or self._chunk[1] >= self._shape[1]:
                band = self._unpack((first, 0)[: len(self._chunk)])
            else:
                places = range(0, self._shape[1], self._chunk[1])
                band = np.concatenate([self._unpack((first, column)) for column in places], axis=1)
            self._band = first, band[:, : self._shape[1]] if band.ndim == 2 else band
        return self._band[1]

    def _unpack(self, offset: tuple[int, ...]) -> NDArray[Any]:
        stored = self._stored[offset]
        content = self._dataset.id.read_direct_chunk(offset)[1]
        for number, code in reversed(list(enumerate(self._filters))):
            if not stored.filter_mask >> number & 1:  # a set bit: packing would have made the chunk larger
                content = _UNPACK[code](content, self._chunk_bytes, self._dtype.itemsize)
        if len(content) != self._chunk_bytes:
            raise UserError(f"{self._where}: damaged in the chunk at row {offset[0]}")
        return np.frombuffer(content, dtype=self._dtype).reshape(self._chunk)


def _inflate(packed: bytes, size: int, width: int) -> bytes:
    stream = zlib.decompressobj()
    content = stream.decompress(packed, size + _CHECKSUM_BYTES)
    if not stream.eof:
        raise ValueError("a chunk with more or fewer numbers than announced")
    return content


def _unshuffle(packed: bytes, size: int, width: int) -> bytes:
    """First bytes of all numbers, then second bytes and so on: back to number after number."""
    whole = len(packed) - len(packed) % width
    return np.frombuffer(packed[:whole], dtype=np.uint8).reshape(width, -1).T.tobytes() + packed[whole:]


def _check_sum(packed: bytes, size: int, width: int) -> bytes:
    """Fletcher's checksum over 16-bit words, whose two sums follow the content."""
    content, stored = packed[:-_CHECKSUM_BYTES], packed[-_CHECKSUM_BYTES:]
    words = np.frombuffer(content + b"\0" * (len(content) % 2), dtype=">u2").astype(np.uint64)
    weights = np.arange(len(words), 0, -1, dtype=np.uint64) % 65535
    sums = int(words.sum()) % 65535, int((words * weights).sum()) % 65535
    found = int.from_bytes(stored, "little")
    if sums != ((found & 0xFFFF) % 65535, (found >> 16) % 65535):
        raise ValueError("a chunk's checksum differs")
    return content


_CHECKSUM_BYTES = 4
_UNPACK = {
    h5py.h5z.FILTER_DEFLATE: _inflate,
    h5py.h5z.FILTER_SHUFFLE: _unshuffle,
    h5py.h5z.FILTER_FLETCHER32: _check_sum,
}


def _open(path: Path) -> h5py.File:
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
            raise UserError(f"{path}: not a file, expected an HDF5 file")
        with path.open("rb"):
            pass
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected an HDF5 file") from error
    with damage_told(path, _DAMAGED):
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
