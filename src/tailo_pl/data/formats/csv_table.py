"""CSV tables: a line of column names, then a line of numbers per step.

Separator and decimal point are found by themselves; `.gz` is unpacked on the way.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as arrow_csv  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tailo_pl.data.formats.columns import ALIASES
from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.data.formats.writing import batches, numbered_columns, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, one_line

_BLOCK_BYTES = 1 << 20
_MOST_COLUMNS = 10_000
_DAMAGED = "not a CSV table"
_EXACT = 2**53
"""From here on not every integer is a float64."""


class Dialect(NamedTuple):
    """How a table is written."""

    separator: str
    point: str


class CsvFile(RecordFile):
    """An open CSV table. Its numbers are read as float64, exactly as they are written.

    A column holds numbers where its first row does; the names of episodes are always text, so that none is rounded.

    Args:
        path: the file.
        holes: let numbers be missing: they are NaN then.
    """

    def __init__(self, path: Path, holes: bool = False) -> None:
        self.path, self._holes = path, holes
        with damage_told(path, _DAMAGED):
            head = self._head()
            self._dialect = dialect_of(head)
            self._require_few_columns(head)
            reader = self._open(arrow_csv.ConvertOptions(decimal_point=self._dialect.point))
            names, types = reader.schema.names, reader.schema.types
            first = next(reader, None)
            cells = [column[0].as_py() for column in first.columns] if first else [None] * len(names)
            reader.close()
        for name in names:
            if not name.isprintable():
                raise UserError(f"{path}: a column called {one_line(repr(name))} found, expected a line of names")
        # Names as people write them, each with the name as it stands in the file.
        self._names = {name.strip(): name for name in names}
        if len(self._names) < len(names):
            stripped = [name.strip() for name in names]
            twice = next(name for name in stripped if stripped.count(name) > 1)
            raise UserError(f"{path}: column {twice!r} found twice, expected each name once")
        self._whole = {name for name, kind in zip(self._names, types, strict=True) if pa.types.is_integer(kind)}
        self.fields = {
            name: Field(np.dtype(_type(name, kind, cell)))
            for name, kind, cell in zip(self._names, types, cells, strict=True)
        }

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        # All columns are read: a quote that is never closed, in any of them, would silently swallow rows.
        types = {
            self._names[name]: pa.from_numpy_dtype(field.dtype)
            if name in names and field.dtype.kind != "O"
            else pa.binary()
            for name, field in self.fields.items()
        }
        with self._told():
            # Where there is one column, an empty line is an empty cell.
            several = len(self._names) > 1
            convert = arrow_csv.ConvertOptions(column_types=types, null_values=[""], decimal_point=self._dialect.point)
            reader = self._open(convert, ignore_empty_lines=several)
        row = 0
        with reader:
            while True:
                with self._told():
                    table = next(reader, None)
                if table is None:
                    break
                yield self._checked(table, names, row)
                row += len(table)

    def close(self) -> None:
        """Nothing to do: the file is open only while it is read."""

    def place(self, row: int) -> str:
        return f"line {self._line(row)}"

    def _line(self, row: int) -> int:
        """The line of a row, counted from 1 as editors do. (The reader leaves out empty lines when it counts rows.)"""
        several, left = len(self._names) > 1, row + 1  # names come first
        with self._unpacked() as file:
            for number, line in enumerate(file, 1):
                if not several or line.strip(b"\r\n"):
                    left -= 1
                if left < 0:
                    return number
        return row + 2

    def _unpacked(self) -> Any:
        return gzip.open(self.path, "rb") if self.path.suffix.lower() == ".gz" else self.path.open("rb")

    def _head(self) -> bytes:
        with self._unpacked() as file:
            return bytes(file.read(_BLOCK_BYTES))

    def _require_few_columns(self, head: bytes) -> None:
        """Arrow needs kilobytes for each of them."""
        lines = head.lstrip().splitlines()
        count = lines[0].count(self._dialect.separator.encode()) + 1 if lines else 0
        if count > _MOST_COLUMNS:
            raise UserError(f"{self.path}: {count:,} columns found, expected at most {_MOST_COLUMNS:,}")

    def _open(self, convert: arrow_csv.ConvertOptions, *, ignore_empty_lines: bool = True) -> Any:
        return arrow_csv.open_csv(
            self.path,
            # One thread: only then do messages name the line.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._dialect.separator, ignore_empty_lines=ignore_empty_lines
            ),
            convert_options=convert,
        )

    def _checked(self, table: pa.RecordBatch, names: Sequence[str], row: int) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for name, column in zip(self._names, table.columns, strict=True):
            where = f"{self.path}: {name}"
            if pa.types.is_binary(column.type):
                broken = pc.or_(pc.match_substring(column, "\n"), pc.match_substring(column, "\r"))
                self._refuse(broken, f"{where}: a line break within quotes", row, "one line per step")
            if name not in names:
                continue
            if pa.types.is_binary(column.type):
                self._refuse(pc.equal(column, b""), f"{where}: an empty cell", row, "text")
                with damage_told(where, "not UTF-8 text"):
                    column = column.cast(pa.string())
            elif not (self._holes and pa.types.is_floating(column.type)):
                self._refuse(column.is_null(), f"{where}: an empty cell", row, "a number")
            arrays[name] = np.asarray(column.to_numpy(zero_copy_only=False))
            if name in self._whole and arrays[name].dtype == np.float64:
                large = pa.array(np.abs(arrays[name]) >= _EXACT)
                self._refuse(large, f"{where}: an integer of more than 53 bits", row, "numbers that float64 can hold")
        return {name: arrays[name] for name in names}

    def _refuse(self, marks: pa.Array, what: str, row: int, expected: str) -> None:
        """Raise an error about the first marked row, if there is one."""
        at = pc.index(marks, True).as_py()
        if at >= 0:
            raise UserError(f"{what} found in {self.place(row + at)}, expected {expected}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say which column of which line is not a number; everything else as it comes."""
        try:
            with damage_told(self.path, _DAMAGED):
                yield
        except UserError as error:
            found = _CELL.search(str(error))
            if not found:
                raise
            column, row, cell = found.groups()
            name, place = list(self._names)[int(column)], self.place(int(row) - 2)  # the reader counts the names too
            raise UserError(f"{self.path}: {name}: {cell} found in {place}, expected a number") from error


_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: invalid value (.*)\)$")


def dialect_of(head: bytes) -> Dialect:
    """Separator and decimal point of a table, from its first lines.

    The separator is the one that parts the names, and the lines below into as many cells; a comma before anything else
    where it does, since it is what the ending says.
    """
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:_LOOKED_AT] if line.strip()]
    if len(lines) > 1 and len(head) >= _BLOCK_BYTES:
        lines = lines[:-1]  # perhaps cut
    counts = {one: [line.count(one) for line in lines] for one in _SEPARATORS}
    separator = next(
        (one for one in _SEPARATORS if lines and counts[one][0] and len(set(counts[one])) == 1),
        max(_SEPARATORS, key=lambda one: counts[one][0]) if lines else ",",
    )
    cells = [cell.strip().strip('"') for line in lines[1:] for cell in line.split(separator)]
    commas = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return Dialect(separator, "," if commas else ".")


_SEPARATORS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_LOOKED_AT = 100


def write_csv(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps. Every number has the digits that make it the same float64 again; flags are 0 or 1."""
    likes = written_arrays(trajectories)
    with path.open("wb") as file:
        names = list(numbered_columns(likes))
        file.write((",".join(names) + "\n").encode())
        for batch in batches(trajectories, list(likes)):
            columns = [_written(column) for column in numbered_columns(batch).values()]
            options = arrow_csv.WriteOptions(include_header=False)
            arrow_csv.write_csv(pa.record_batch(columns, names=names), file, options)


def _written(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind == "f":
        return column.astype(np.float64)
    return column.astype(np.int8) if column.dtype == bool else column


def _type(name: str, kind: pa.DataType, cell: object) -> type:
    """The type of a column's numbers, from its first rows and its first cell; object for text.

    One odd cell does not make a text of a column that begins with a number: it is to be found and named.
    """
    if name in ALIASES["episode"]:
        return object
    if pa.types.is_boolean(kind):
        return np.bool_
    # No rows, or nothing in them: empty cells are refused where they are used.
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    return np.float64 if is_number or _is_number(cell) else object


def _is_number(cell: object) -> bool:
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
