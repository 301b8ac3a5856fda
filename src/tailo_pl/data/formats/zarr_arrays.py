"""The arrays of a Zarr store, format 2 and 3: their description checked, their chunks unpacked.

Chunks are unpacked here, with their announced size as the limit: a chunk from elsewhere may claim any size, and the
library takes a chunk that is not there for one full of zeros.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError, one_line


class Store(Protocol):
    """Where the pieces of a Zarr data set lie: a folder or a zip file."""

    def read(self, name: str, most: int) -> bytes:
        """A piece of at most so many bytes. Raises `UserError` where it is not there."""

    def names(self) -> list[str]:
        """All pieces."""


@dataclass(frozen=True)
class ZarrArray:
    """One array, described.

    Args:
        where: its store and name, for messages.
        store: with its chunks.
        shape: rows first.
        chunks: shape of a chunk.
        dtype: of its numbers.
        key: name of the chunk at a place of the grid.
        unpack: a chunk's bytes, at most so many.
        columns_first: "Fortran order" within chunks.
    """

    where: str
    store: Store
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    key: Callable[[tuple[int, ...]], str]
    unpack: Callable[[bytes, int], bytes]
    columns_first: bool = False

    @property
    def chunk_bytes(self) -> int:
        return math.prod(self.chunks) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Some rows, (rows,) or (rows, width)."""
        result = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype.newbyteorder("="))
        height = self.chunks[0]
        columns = [-(-length // part) for length, part in zip(self.shape[1:], self.chunks[1:], strict=True)]
        for first in range(start - start % height, stop, height):
            low, high = max(start, first), min(stop, first + height)
            for place in np.ndindex(*columns):
                chunk = self._chunk((first // height, *place))
                inside = [slice(at * part, min((at + 1) * part, length)) for at, part, length in
                          zip(place, self.chunks[1:], self.shape[1:], strict=True)]  # fmt: skip
                rest = [slice(0, one.stop - one.start) for one in inside]
                result[(slice(low - start, high - start), *inside)] = chunk[(slice(low - first, high - first), *rest)]
        return result

    def _chunk(self, place: tuple[int, ...]) -> NDArray[Any]:
        name = self.key(place)
        try:
            # Packing may make a chunk a little larger.
            packed = self.store.read(name, self.chunk_bytes + self.chunk_bytes // 8 + (1 << 16))
            content = self.unpack(packed, self.chunk_bytes)
        except UserError:
            raise
        except Exception as error:  # whatever a damaged chunk makes a codec raise
            raise UserError(f"{self.where}: chunk {name} is damaged ({one_line(error)})") from error
        if len(content) != self.chunk_bytes:
            raise UserError(
                f"{self.where}: chunk {name} unpacks to {len(content)} bytes, expected {self.chunk_bytes} for "
                f"{self.chunks} times {self.dtype}"
            )
        return np.frombuffer(content, dtype=self.dtype).reshape(self.chunks, order="F" if self.columns_first else "C")


def described(where: str, store: Store, prefix: str, found: Any) -> ZarrArray:
    """An array from its description, the content of `.zarray` or of an array's `zarr.json`."""
    if not isinstance(found, dict):
        raise UserError(f"{where}: {one_line(repr(found))} found, expected an array's description")
    return (
        _format_2(where, store, prefix, found)
        if found.get("zarr_format") == 2
        else _format_3(where, store, prefix, found)
    )


def _format_2(where: str, store: Store, prefix: str, found: dict[str, Any]) -> ZarrArray:
    shape, chunks = _lengths(where, "shape", found.get("shape"), 0), _lengths(where, "chunks", found.get("chunks"), 1)
    if found.get("filters"):
        raise UserError(f"{where}: filters {one_line(repr(found['filters']))} found, expected none")
    separator = found.get("dimension_separator", ".")
    if separator not in (".", "/") or found.get("order") not in ("C", "F"):
        raise UserError(f"{where}: an unknown order of chunks or numbers found, expected order C or F")
    compressor = found.get("compressor")
    name = compressor.get("id") if isinstance(compressor, dict) else compressor
    return ZarrArray(
        where, store, shape, _same(where, shape, chunks), _number_type(where, found.get("dtype")),
        lambda place: prefix + separator.join(map(str, place)), _unpacker(where, name), found["order"] == "F",
    )  # fmt: skip


def _format_3(where: str, store: Store, prefix: str, found: dict[str, Any]) -> ZarrArray:
    def of(value: Any, key: str) -> Any:
        inner = value.get("configuration", {}) if isinstance(value, dict) else {}
        return inner.get(key) if isinstance(inner, dict) else None

    def named(value: Any) -> Any:
        return value.get("name") if isinstance(value, dict) else value

    codecs: Any
    grid, keys, codecs = found.get("chunk_grid"), found.get("chunk_key_encoding"), found.get("codecs")
    if found.get("zarr_format") != 3 or found.get("node_type") != "array" or named(grid) != "regular":
        raise UserError(f"{where}: not described as an array in regular chunks, expected Zarr format 2 or 3")
    shape = _lengths(where, "shape", found.get("shape"), 0)
    chunks = _lengths(where, "chunk_grid", of(grid, "chunk_shape"), 1)
    names = [named(codec) for codec in codecs] if isinstance(codecs, list) else []
    little = bool(names) and names[0] == "bytes" and of(codecs[0], "endian") in ("little", None)
    if not little or len(names) > 2 or named(keys) != "default" or of(keys, "separator") not in ("/", ".", None):
        raise UserError(f"{where}: codecs {one_line(repr(names))} found, expected bytes and at most one compressor")
    separator = of(keys, "separator") or "/"
    return ZarrArray(
        where, store, shape, _same(where, shape, chunks), _number_type(where, found.get("data_type")),
        lambda place: prefix + separator.join(["c", *map(str, place)]),
        _unpacker(where, names[1] if len(names) == 2 else None),
    )  # fmt: skip


def _lengths(where: str, key: str, found: Any, least: int) -> tuple[int, ...]:
    plain = isinstance(found, list) and all(type(length) is int and least <= length < 1 << 40 for length in found)
    if not plain or not found or len(found) > 8:
        raise UserError(f"{where}: {key}: {one_line(repr(found))} found, expected lengths of at least {least}")
    return tuple(found)


def _same(where: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != len(chunks):
        raise UserError(f"{where}: chunks {chunks} found, expected as many lengths as in shape {shape}")
    return chunks


def _number_type(where: str, found: Any) -> np.dtype[Any]:
    names = {"bool": "|b1", **{f"{kind}{8 * size}": f"<{kind[0]}{size}" for kind in ("int", "uint", "float")
             for size in (1, 2, 4, 8) if kind != "float" or size > 1}}  # fmt: skip
    text = names.get(found, found) if isinstance(found, str) else ""
    allowed = {np.dtype(one).str for one in names.values()} | {one.replace("<", ">") for one in names.values()}
    if text not in allowed and text.replace("<", "|") not in allowed:
        raise UserError(f"{where}: type {one_line(repr(found))} found, expected numbers")
    return np.dtype(text)


def _unpacker(where: str, name: Any) -> Callable[[bytes, int], bytes]:
    if name is None:
        return lambda packed, most: packed
    if name not in _CODECS:
        raise UserError(
            f"{where}: compressor {one_line(repr(name))} found, expected one of {', '.join(_CODECS)} or none"
        )
    return _CODECS[name]


def _inflated(packed: bytes, most: int) -> bytes:
    stream = zlib.decompressobj(wbits=47)  # zlib's or gzip's header
    content = stream.decompress(packed, most + 1)
    if not stream.eof:
        raise ValueError("more or fewer bytes than announced")
    return content


def _blosc(packed: bytes, most: int) -> bytes:
    # The header says how large the content is and how large the chunk itself: both are believed only when true.
    size, stored = (int.from_bytes(packed[at : at + 4], "little") for at in (4, 12))
    if len(packed) < 16 or size != most or stored != len(packed):
        raise ValueError(f"a header of {stored} packed and {size} unpacked bytes, {len(packed)} and {most} expected")
    return bytes(_codecs("blosc").decompress(packed))


def _lz4(packed: bytes, most: int) -> bytes:
    if int.from_bytes(packed[:4], "little") != most:
        raise ValueError("more or fewer bytes than announced")
    return bytes(_codecs("lz4").decompress(packed))


def _zstd(packed: bytes, most: int) -> bytes:
    if _zstd_size(packed) != most:
        raise ValueError("more or fewer bytes than announced")
    return bytes(_codecs("zstd").decompress(packed))


def _zstd_size(packed: bytes) -> int | None:
    """The content's size by the header of a Zstandard frame (RFC 8878, 3.1.1.1)."""
    if packed[:4] != b"\x28\xb5\x2f\xfd" or len(packed) < 6:
        return None
    flags = packed[4]
    single, begin = flags >> 5 & 1, 5 + (0 if flags >> 5 & 1 else 1) + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[flags >> 6]
    return int.from_bytes(packed[begin : begin + width], "little") + (256 if width == 2 else 0) if width else None


def _codecs(name: str) -> Any:
    try:
        from importlib import import_module

        return import_module(f"numcodecs.{name}")
    except ImportError as error:
        raise UserError("source zarr: needs the package numcodecs (pip install 'tailo_pl[robots]')") from error


_CODECS: dict[str, Callable[[bytes, int], bytes]] = {
    "blosc": _blosc, "zlib": _inflated, "gzip": _inflated, "lz4": _lz4, "zstd": _zstd,
}  # fmt: skip
