"""NumPy archives (`.npz`): a zip file with one `.npy` array per field, read in pieces and never unpickled."""

from __future__ import annotations

import io
import math
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.record_file import BATCH_BYTES, Field, RecordFile
from tailo_pl.data.formats.writing import batches, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

_LONGEST_HEADER = 10_000
_DAMAGED = "damaged or not a NumPy archive"


@dataclass(frozen=True)
class _Member:
    """One array of the archive, as its header describes it."""

    info: zipfile.ZipInfo
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    columns_first: bool  # "Fortran order"
    begin: int  # length of the header

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape[1:])


class NpzFile(RecordFile):
    """An open archive. Every array that is read is read to its end, where its checksum is compared.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with damage_told(path, _DAMAGED):
            self._zip = zipfile.ZipFile(path)
        self._members: dict[str, _Member] = {}
        try:
            for info in self._zip.infolist():
                self._add(info)
        except BaseException:
            self.close()
            raise
        if not self._members:
            self.close()
            raise UserError(f"{path}: no array found, expected one .npy member per field")
        self.fields = {
            name: Field(member.dtype.newbyteorder("="), math.prod(member.shape[1:]) if len(member.shape) > 1 else None)
            for name, member in self._members.items()
        }

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        members = {name: self._members[name] for name in names}
        steps = {name: self._checked(name, member) for name, member in members.items()}
        first = next(iter(members))
        for name, found in steps.items():
            if found != steps[first]:
                raise UserError(f"{self.path}: {name}: {found} rows found, expected {steps[first]} as in {first}")
        self.require_plausible(sum(member.info.file_size for member in members.values()))
        left, rows = steps[first], self.rows_per_batch(names)
        with ExitStack() as stack:
            with damage_told(self.path, _DAMAGED):
                columns = {name: self._column(member, stack) for name, member in members.items()}
            while left:
                count = min(left, rows)
                with damage_told(self.path, _DAMAGED):
                    batch = {name: _usable(column.read(count)) for name, column in columns.items()}
                yield batch
                left -= count

    def close(self) -> None:
        self._zip.close()

    def _add(self, info: zipfile.ZipInfo) -> None:
        """Note a member that is an array; other files in the archive are none of our business."""
        where = f"{self.path}: {info.filename!r}"
        if b"PK\1\2" in info.extra + info.comment:
            raise UserError(f"{where}: {_DAMAGED} (an entry of the directory has swallowed the next one)")
        if info.flag_bits & 1:
            raise UserError(f"{where}: encrypted, expected a plain array")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{where}: compressed with method {info.compress_type}, expected none or deflate")
        with damage_told(where, _DAMAGED), self._zip.open(info) as stream:
            member = _described(info, stream)
        if member is None:
            return
        name = info.filename.removesuffix(".npy")
        if name in self._members:
            raise UserError(f"{where}: found twice, expected each name once")
        self._members[name] = member

    def _checked(self, name: str, member: _Member) -> int:
        """The number of rows of an array, once its header is known to fit it."""
        self.require_number(name, member.dtype)
        if len(member.shape) not in (1, 2):
            raise UserError(f"{self.path}: {name}: shape {member.shape} found, expected (steps,) or (steps, dim)")
        announced = member.shape[0] * member.row_bytes
        stored = member.info.file_size - member.begin
        if stored != announced:
            raise UserError(
                f"{self.path}: {name}: {stored:,} bytes are stored, expected {announced:,} for shape {member.shape}"
            )
        return member.shape[0]

    def _column(self, member: _Member, stack: ExitStack) -> _Column:
        stream = stack.enter_context(self._zip.open(member.info))
        stream.read(member.begin)
        if member.columns_first and len(member.shape) == 2 and min(member.shape) > 1:
            return _ColumnsFirst(stream, member)
        return _RowsFirst(stream, member)


class _Column(Protocol):
    """One array, ready to be read from its first row to its last."""

    def read(self, rows: int) -> NDArray[Any]: ...


class _RowsFirst:
    def __init__(self, stream: IO[bytes], member: _Member) -> None:
        self._stream, self._member = stream, member

    def read(self, rows: int) -> NDArray[Any]:
        content = self._stream.read(rows * self._member.row_bytes)
        return np.frombuffer(content, dtype=self._member.dtype).reshape(rows, *self._member.shape[1:])


class _ColumnsFirst:
    """An array stored column after column: unpacked into a nameless file first, since each batch needs all of it."""

    def __init__(self, stream: IO[bytes], member: _Member) -> None:
        with tempfile.TemporaryFile() as scratch:
            while content := stream.read(BATCH_BYTES):
                scratch.write(content)
            scratch.flush()
            self._array = np.memmap(scratch, dtype=member.dtype, mode="r", shape=member.shape, order="F")
        self._row = 0

    def read(self, rows: int) -> NDArray[Any]:
        self._row += rows
        return np.ascontiguousarray(self._array[self._row - rows : self._row])


def write_npz(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps, an array at a time and each in pieces. Number types stay as they are."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, like in written_arrays(trajectories).items():
            # A member made from its name alone bears no date: equal data gives equal files.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                shape = (trajectories.steps, *like.shape[1:])
                header = {"descr": npy.dtype_to_descr(like.dtype), "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(member, header)
                for batch in batches(trajectories, [name]):
                    member.write(np.ascontiguousarray(batch[name]).data)


def _described(info: zipfile.ZipInfo, stream: IO[bytes]) -> _Member | None:
    """What the header of a member says; None where the member is not an array."""
    if stream.read(npy.MAGIC_LEN)[:-2] != npy.MAGIC_PREFIX:
        return None
    stream.seek(0)
    head = io.BytesIO(stream.read(npy.MAGIC_LEN + 4 + _LONGEST_HEADER))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers written by Python 2
        version = npy.read_magic(head)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"array format {version} found, expected 1.0 or 2.0")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, columns_first, dtype = read(head, _LONGEST_HEADER)
    if any(length < 0 for length in shape):
        raise ValueError(f"shape {shape} found, expected no negative lengths")
    return _Member(info, dtype, shape, columns_first, head.tell())


def _usable(array: NDArray[Any]) -> NDArray[Any]:
    """In the machine's byte order, and booleans that are either true or false."""
    if array.dtype == bool and (array.view(np.uint8) > 1).any():
        raise ValueError("neither true nor false found in an array of booleans")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
