"""The datasets of an HDF5 file: their storage checked, their chunks unpacked."""

from __future__ import annotations

import math
import zlib
from typing import Any, Protocol

import h5py  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError


class Column(Protocol):
    """One dataset, ready to be read."""

    rows: int
    decoded: int  # bytes in memory when all of it is read
    extents: list[tuple[int, int]]  # where in the file its numbers are

    def read(self, start: int, stop: int) -> NDArray[Any]: ...


class Plain:
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


class Chunked:
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
