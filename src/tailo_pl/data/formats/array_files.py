"""Arrays in `.npy` files that grow a batch at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


class ArrayWriter:
    """Appends batches to one `.npy` file per role, and leaves out roles that not every batch has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, ArrayFile] = {}
        self._dropped: set[str] = set()
        self.rows = 0
        self._written = 0

    def add(self, arrays: dict[str, NDArray[Any]]) -> None:
        count = len(next(iter(arrays.values())))
        for role in self._files.keys() - arrays.keys():
            self._files.pop(role).discard()
            self._dropped.add(role)
        for role, array in arrays.items():
            if role in self._dropped or (role not in self._files and self._written):
                continue
            if role not in self._files:
                self._files[role] = ArrayFile(self._folder / f"{role}.npy", array.dtype, array.shape[1:])
            self._files[role].append(array)
        self._written += count

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()


class ArrayFile:
    """A `.npy` file that grows. Its header leaves room for the number of rows, which is written at the end."""

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._dtype, self._shape, self._rows = dtype, shape, 0
        self._write_header()
        self._begin = self._file.tell()

    def append(self, array: NDArray[Any]) -> None:
        if array.dtype != self._dtype:
            raise ValueError(f"{array.dtype} appended to an array of {self._dtype}")
        self._file.write(np.ascontiguousarray(array).data)
        self._rows += len(array)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        assert self._file.tell() == self._begin
        self._file.close()

    def discard(self) -> None:
        self._file.close()
        self._path.unlink()

    def _write_header(self) -> None:
        header = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._rows, *self._shape)}
        npy.write_array_header_1_0(self._file, header)
