"""PyTorch files (`.pt`) as the method's authors write them: a list with one dict per step. No code in them is run."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.data.formats.writing import batches, patient_file, written_arrays
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, one_line

_DAMAGED = "damaged or not a PyTorch file of recorded steps"

# What the authors call things.
_KEYS = {
    "observations": "state",
    "actions": "action",
    "next_observations": "next_state",
    "rewards": "reward",
    "terminals": "terminal",
    "timeouts": "timeout",
    "episode": "episode",
}


class PtFile(RecordFile):
    """An open file: a list of dicts, one per step, or one dict of arrays with a row per step.

    The format says nothing about its content before all of it is in memory, so opening reads the whole file.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        content = _load(path)
        self._steps: Sequence[Any] | None = None
        self._arrays: Mapping[str, NDArray[Any] | None] = {}
        if isinstance(content, dict):
            self._arrays = {key: _array(value) for key, value in content.items() if isinstance(key, str)}
            self.fields = {name: _field(array, 1) for name, array in self._arrays.items()}
        elif isinstance(content, list) and content and isinstance(content[0], dict):
            self._steps = content
            self.fields = {key: _field(_array(value), 0) for key, value in content[0].items() if isinstance(key, str)}
        else:
            found = "an empty list" if content == [] else f"a {type(content).__name__}"
            raise UserError(f"{path}: {found} found, expected a list of dicts, one per step")
        for name in self.fields:
            if not name.isprintable():
                raise UserError(f"{path}: a key {one_line(repr(name))} found, expected printable names")

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        for name in names:
            self.require_number(name, self.fields[name].dtype)
        steps = len(self._steps) if self._steps is not None else self._rows(names)
        self.require_plausible(steps * sum(self.fields[name].row_bytes for name in names))
        rows = self.rows_per_batch(names)
        for start in range(0, steps, rows):
            stop = min(start + rows, steps)
            yield {name: self._read(name, start, stop) for name in names}

    def close(self) -> None:
        self._steps, self._arrays = None, {}

    def _rows(self, names: Sequence[str]) -> int:
        """The number of rows that all of these arrays have."""
        rows = {}
        for name in names:
            array = self._arrays[name]
            if array is None or array.ndim not in (1, 2):
                shape = None if array is None else array.shape
                raise UserError(f"{self.path}: {name}: shape {shape} found, expected (steps,) or (steps, dim)")
            rows[name] = len(array)
            if rows[name] != rows[names[0]]:
                raise UserError(
                    f"{self.path}: {name}: {rows[name]} rows found, expected {rows[names[0]]} as in {names[0]}"
                )
        return rows[names[0]]

    def _read(self, name: str, start: int, stop: int) -> NDArray[Any]:
        if self._steps is None:
            return np.asarray(self._arrays[name])[start:stop]
        dtype, width = self.fields[name].dtype, self.fields[name].width
        shape = () if width is None else (width,)
        result = np.empty((stop - start, *shape), dtype=dtype)
        for number in range(start, stop):
            result[number - start] = self._value(number, name, dtype, shape)
        return result

    def _value(self, number: int, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        assert self._steps is not None
        entry, where = self._steps[number], f"{self.path}: entry {number}"
        if not isinstance(entry, dict):
            raise UserError(f"{where}: a {type(entry).__name__} found, expected a dict")
        if name not in entry:
            raise UserError(f"{where}: no {name!r} found, expected the keys of entry 0")
        value = _array(entry[name])
        if value is None:
            raise UserError(f"{where}: {name}: a {type(entry[name]).__name__} found, expected numbers")
        if value.shape != shape or value.dtype != dtype:
            raise UserError(
                f"{where}: {name}: {value.dtype} of shape {value.shape} found, expected {dtype} of shape {shape}"
            )
        return value


def write_pt(path: Path, trajectories: Trajectories) -> None:
    """Write the kept steps as a list of dicts; `step` counts within an episode. All of it is in memory meanwhile."""
    steps: list[dict[str, Any]] = []
    for batch in batches(trajectories, list(written_arrays(trajectories))):
        positions = np.arange(len(steps), len(steps) + len(batch["episode"]))
        columns: dict[str, Any] = {_KEYS[name]: array for name, array in batch.items()}
        columns["step"] = positions - trajectories.offsets[batch["episode"]]
        for key in ("terminal", "timeout", "episode", "step"):
            if key in columns:
                columns[key] = columns[key].tolist()  # plain numbers take far less room in a pickle
        steps += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    with patient_file(path) as file:
        torch.save(steps, file)


def _load(path: Path) -> Any:
    """What the file holds, made of nothing but numbers, lists, dicts, tensors and the stand-ins below."""
    with damage_told(path, _DAMAGED):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise UserError(f"{path}: {info.filename!r} is compressed or encrypted, expected plain content")
            if archive.testzip() is not None:
                raise UserError(f"{path}: damaged, the checksum of {archive.testzip()!r} differs")
        try:
            # Mapped, a tensor that claims to be larger than its storage is refused rather than read from other memory.
            with torch.serialization.safe_globals(_STAND_INS):
                return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except UnpicklingError as error:
            # Torch's own message recommends to trust the file.
            name = re.search(r"GLOBAL (\S+)", str(error))
            found = f"{name.group(1)} is needed" if name else "more is needed"
            raise UserError(f"{path}: {found} to read its content, expected nothing but numbers") from error


class _Dtype:
    """Stands in for `numpy.dtype` while a file is read: numpy itself believes anything a pickle tells it."""

    def __init__(self, code: str, *_: object) -> None:
        self.numpy = np.dtype(code) if code in _NUMBERS else None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if self.numpy is not None and state[1] == ">":
            self.numpy = self.numpy.newbyteorder(">")


class _Array:
    """Stands in for `numpy.ndarray` and for what numpy calls to make one. None: of something other than numbers."""

    def __init__(self, *_: object) -> None:
        self.numpy: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, columns_first, content = state
        if dtype.numpy is None:
            return
        self.numpy = np.frombuffer(content, dtype.numpy).reshape(shape, order="F" if columns_first else "C")
        if self.numpy.shape != shape:
            raise ValueError(f"an array of shape {self.numpy.shape} found, expected {shape}")


def _scalar(dtype: _Dtype, content: bytes) -> NDArray[Any] | None:
    """Stands in for what numpy calls to make a single number."""
    return None if dtype.numpy is None else np.frombuffer(content, dtype.numpy).reshape(())


def _no_bytes() -> bytes:
    """Stands in for `bytes`, by which arrays without numbers are written."""
    return b""


_NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_STAND_INS: list[Any] = [
    (_Dtype, "numpy.dtype"),
    (_Array, "numpy.ndarray"),
    (_no_bytes, "builtins.bytes"),
    *[
        stand_in
        # The module's name before and since numpy 2.
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")
        for stand_in in ((_Array, f"{module}._reconstruct"), (_scalar, f"{module}.scalar"))
    ],
]


def _array(value: object) -> NDArray[Any] | None:
    """Numbers as an array in the machine's byte order; None where they are something else."""
    if isinstance(value, torch.Tensor):
        try:
            value = value.detach().numpy()
        except (TypeError, RuntimeError):  # sparse, quantised, a type numpy does not have
            return None
    elif isinstance(value, _Array):
        value = value.numpy
    if not isinstance(value, np.ndarray | bool | int | float):
        return None
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _field(array: NDArray[Any] | None, leading: int) -> Field:
    """What a field seems to hold; the first `leading` dimensions count steps."""
    if array is None:
        return Field(np.dtype(object))
    return Field(array.dtype, math.prod(array.shape[leading:]) if array.ndim > leading else None)
