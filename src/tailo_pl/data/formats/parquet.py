"""Parquet files: columns of numbers, or of lists of numbers as vectors, read some rows at a time."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.record_file import BATCH_BYTES, Field, RecordFile
from tailo_pl.data.formats.writing import batches, numbered_columns, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, one_line

_DAMAGED = "damaged or not a Parquet file"
_READ_WHOLE_ALLOWED = 64 << 20  # bytes of lists and texts, which are not read in parts, in a file however small
_LONGEST_NAME = 1000  # letters in the name of an episode


class ParquetFile(RecordFile):
    """An open Parquet file. Text is allowed as well, for the names of episodes.

    Pages are compared with their checksums where the writer left any. The description at the file's end has none:
    what it says twice is compared.

    Args:
        path: the file.
        holes: let numbers be missing: they are NaN then.
    """

    def __init__(self, path: Path, holes: bool = False) -> None:
        self.path, self._holes = path, holes
        with damage_told(path, _DAMAGED):
            self._file = _opened(path)
            # Text is read as numbers and what they stand for: a long name may be repeated in a million rows.
            if text := [field.name for field in self._file.schema_arrow if _is_text(field.type)]:
                self._file.close()
                self._file = _opened(path, text)
        try:
            with damage_told(path, _DAMAGED):
                self._schema: pa.Schema = self._file.schema_arrow
                self._leaves = self._first_leaves()
                self.fields = {field.name: self._field(field) for field in self._schema}
        except BaseException:
            self.close()
            raise

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        with damage_told(self.path, _DAMAGED):
            for name in names:
                self._require_usable(name)
            self.require_plausible(sum(self.fields[name].row_bytes for name in names) * self._file.metadata.num_rows)
            tables = self._file.iter_batches(self.rows_per_batch(names), columns=list(names), use_threads=False)
        row = 0
        while True:
            with damage_told(self.path, _DAMAGED):
                table = next(tables, None)
                if table is None:
                    break
                table.validate(full=True)
                batch = {name: self._array(name, table.column(name), row) for name in names}
            yield batch
            row += len(table)
        with damage_told(self.path, _DAMAGED):
            self._require_consistent(names, row)

    @property
    def rows(self) -> int:
        """How many the file announces."""
        return int(self._file.metadata.num_rows)

    def close(self) -> None:
        self._file.close()

    def _first_leaves(self) -> dict[str, int]:
        """The number of each column among the columns that are stored, of which a nested one has several."""
        leaves: dict[str, int] = {}
        count = 0
        for field in self._schema:
            if field.name in leaves:
                raise UserError(f"{self.path}: column {field.name!r} found twice, expected each name once")
            leaves[field.name] = count
            count += _leaf_count(field.type)
        # Arrow, and so pandas, leaves its own description of the columns in the file.
        other = (self._file.metadata.metadata or {}).get(b"ARROW:schema")
        if other and pa.ipc.read_schema(pa.py_buffer(base64.b64decode(other))).names != list(leaves):
            raise UserError(f"{self.path}: damaged, columns {one_line(list(leaves))} have other names as well")
        if count != self._file.metadata.num_columns:
            raise UserError(f"{self.path}: damaged, {self._file.metadata.num_columns} columns found, expected {count}")
        return leaves

    def _require_consistent(self, names: Sequence[str], rows: int) -> None:
        """Compare what the file's description says twice, and the rows that were there.

        Only after reading: pyarrow ends the process when asked about a column that it cannot read.
        """
        metadata, stored = self._file.metadata, self._file.schema
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        if not rows == metadata.num_rows == sum(group.num_rows for group in groups):
            raise UserError(f"{self.path}: damaged, {rows} rows found, {metadata.num_rows} announced")
        for name in names:
            column = stored.column(self._leaves[name])
            for group in groups:
                chunk = group.column(self._leaves[name])
                same = chunk.path_in_schema == column.path and chunk.physical_type == column.physical_type
                if not same or (column.max_repetition_level == 0 and chunk.num_values != group.num_rows):
                    raise UserError(f"{self.path}: {name}: damaged, its description contradicts itself")

    def _field(self, field: pa.Field) -> Field:
        """What a column seems to hold. Whether it can be used is checked when it is."""
        kind = _values(field.type)
        if _is_list(field.type) and not _is_number(kind):
            return Field(np.dtype(object))
        dtype = np.dtype(kind.to_pandas_dtype()) if _is_number(kind) else np.dtype(object)
        if pa.types.is_fixed_size_list(field.type):
            return Field(dtype, field.type.list_size)
        if not _is_list(field.type):
            return Field(dtype)
        self._require_bounded(field.name, dtype)
        # The length of lists is announced nowhere; that of the first one is expected of all.
        first = next(self._file.iter_batches(1, columns=[field.name], use_threads=False), None)
        return Field(dtype, len(first.column(0)[0]) if first else 0)

    def _require_bounded(self, name: str, dtype: np.dtype[Any]) -> None:
        """Refuse lists and text that would fill memory by what the file says of them, before any of it is read."""
        chunks, rows = self._chunks(name), self._file.metadata.num_rows
        if _is_text(self._schema.field(name).type):
            self.require_plausible(sum(chunk.total_uncompressed_size for chunk in chunks), _READ_WHOLE_ALLOWED)
            return
        numbers = sum(chunk.num_values for chunk in chunks)
        self.require_plausible(numbers * dtype.itemsize, _READ_WHOLE_ALLOWED)
        width = numbers // max(1, rows)
        if width * dtype.itemsize > BATCH_BYTES:
            raise UserError(f"{self.path}: {name}: {width:,} numbers in a row found, expected a vector")

    def _chunks(self, name: str) -> list[Any]:
        """What the file says of a column, for each group of rows.

        pyarrow ends the process when asked about a column that it cannot read. So it is first told to read it from a
        file that has the same description and nothing else, which it refuses in a way that can be caught.
        """
        metadata = self._file.metadata
        nothing = pa.PythonFile(_Unreadable(self.path.stat().st_size), mode="r")
        chunks = []
        with pq.ParquetFile(nothing, metadata=metadata) as file:
            for group in range(metadata.num_row_groups):
                with suppress(_NotRead):
                    file.read_row_group(group, columns=[name], use_threads=False)
                chunks.append(metadata.row_group(group).column(self._leaves[name]))
        return chunks

    def _require_usable(self, name: str) -> None:
        kind = self._schema.field(name).type
        if not _is_number(_values(kind)) and not _is_text(kind):
            raise UserError(f"{self.path}: {name}: type {kind} found, expected numbers")
        if _is_text(kind):
            self._require_bounded(name, self.fields[name].dtype)

    def _array(self, name: str, column: pa.Array, row: int) -> NDArray[Any]:
        where = f"{self.path}: {name}"
        if self._holes and not pa.types.is_dictionary(column.type) and _is_number(_values(column.type)):
            return self._with_holes(name, column)
        if column.null_count:
            missing = row + pc.index(column.is_null(), True).as_py()
            raise UserError(f"{where}: nothing found in {self.place(missing)}, expected a value in every row")
        if pa.types.is_dictionary(column.type):
            return self._names(where, column)
        if not _is_list(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        width = self.fields[name].width
        if not pa.types.is_fixed_size_list(column.type):
            lengths = column.value_lengths().to_numpy()
            if (lengths != width).any():
                odd = int(np.flatnonzero(lengths != width)[0])
                raise UserError(
                    f"{where}: {lengths[odd]} numbers found in {self.place(row + odd)}, expected the same in every row"
                )
        values = column.flatten()
        if values.null_count:
            missing = row + pc.index(values.is_null(), True).as_py() // max(1, width or 1)
            raise UserError(f"{where}: a number is missing in {self.place(missing)}, expected {width}")
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)

    def _with_holes(self, name: str, column: pa.Array) -> NDArray[Any]:
        """What is there, and NaN where nothing is."""
        if not _is_list(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False))
        there = column.is_valid().to_numpy(zero_copy_only=False)
        values, width = column.drop_null().flatten(), self.fields[name].width or 0
        if len(values) != width * int(there.sum()):
            raise UserError(f"{self.path}: {name}: lists of different lengths found, expected {width} numbers in each")
        numbers = np.asarray(values.to_numpy(zero_copy_only=False)).reshape(-1, width)
        if there.all():
            return numbers
        result = np.full((len(column), width), np.nan, dtype=np.result_type(numbers.dtype, np.float32))
        result[there] = numbers
        return result

    def _names(self, where: str, column: pa.Array) -> NDArray[Any]:
        """What numbers stand for in a column, once for all rows that share it."""
        names = column.dictionary
        if _is_text(names.type) and len(names) and pc.max(pc.binary_length(names)).as_py() > _LONGEST_NAME:
            raise UserError(f"{where}: text of more than {_LONGEST_NAME:,} letters found, expected names of episodes")
        return np.asarray(names.to_numpy(zero_copy_only=False)[column.indices.to_numpy()])


class _NotRead(Exception):
    """Something of a file was asked for that is not there on purpose."""


class _Unreadable(io.RawIOBase):
    """A file that has a length and nothing to read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self._place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        raise _NotRead


def _opened(path: Path, text: Sequence[str] = ()) -> pq.ParquetFile:
    # Small buffers, nothing read ahead: a row group may be larger than memory.
    return pq.ParquetFile(
        path,
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=1 << 16,
        memory_map=False,
        read_dictionary=list(text),
    )


def write_parquet(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps with a checksum on every page. Number types stay as they are."""
    likes = written_arrays(trajectories)
    schema = pa.schema([(name, pa.from_numpy_dtype(column.dtype)) for name, column in numbered_columns(likes).items()])
    with pq.ParquetWriter(path, schema, write_page_checksum=True, use_dictionary=False) as writer:
        for batch in batches(trajectories, list(likes)):
            writer.write_batch(pa.record_batch(list(numbered_columns(batch).values()), schema=schema))


def _leaf_count(kind: pa.DataType) -> int:
    return sum(_leaf_count(kind.field(number).type) for number in range(kind.num_fields)) if kind.num_fields else 1


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of the single values in a column."""
    return kind.value_type if _is_list(kind) or pa.types.is_dictionary(kind) else kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
