"""robomimic's HDF5 files: a group for each demonstration, filter keys that name some of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.hdf5 import DAMAGED, Hdf5File
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.errors import UserError, one_line

USUAL = ("robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos", "object")
"""What robomimic itself trains low-dimensional policies on."""
_DEMO = re.compile(r"data/demo_(\d{1,9})/(.+)")


def is_robomimic(path: Path) -> bool:
    """Whether a file looks like robomimic's."""
    if path.suffix.lower() not in (".hdf5", ".h5"):
        return False
    try:
        with Hdf5File(path) as file:
            return any(_DEMO.fullmatch(name) for name in file.fields)
    except UserError:
        return False


class RobomimicFile(RecordFile):
    """An open file. Its fields are those of the demonstrations: `actions`, `obs/KEY`, `next_obs/KEY`, `states`, …

    `episode` is the number of the demonstration, in whose order they are read.

    Args:
        path: the file.
        filter_key: only the demonstrations that `mask/KEY` names; None: all.
        demos: their numbers; None: all.
    """

    def __init__(self, path: Path, filter_key: str | None = None, demos: Sequence[int] | None = None) -> None:
        self.path = path
        self._file = Hdf5File(path)
        try:
            with damage_told(path, DAMAGED):
                found = [_DEMO.fullmatch(name) for name in self._file.fields]
                self.demos = sorted({int(one[1]) for one in found if one})
                if not self.demos:
                    raise UserError(f"{path}: no group data/demo_0 found, expected robomimic's layout")
                self._within: dict[int, dict[str, str]] = {number: {} for number in self.demos}
                for one in found:
                    if one:
                        self._within[int(one[1])][one[2]] = one[0]
                self.chosen = self._chosen(filter_key, demos)
                self.fields = {**self._shared_fields(), "episode": Field(np.dtype(np.int64))}
                self._lengths = {number: self._announced(number) for number in self.chosen}
        except BaseException:
            self.close()
            raise
        self._place = 0, 0, 0

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        read = [name for name in names if name != "episode"]
        done = 0
        for number in self.chosen:
            fields = [self._within[number][name] for name in read]
            rows = 0
            for batch in self._file.batches(fields):
                count = len(batch[fields[0]])
                self._place = done, number, rows
                done, rows = done + count, rows + count
                arrays = {name: batch[field] for name, field in zip(read, fields, strict=True)}
                yield {name: arrays.get(name, np.full(count, number)) for name in names}
            announced = self._lengths[number]
            if announced is not None and announced != rows:
                raise UserError(
                    f"{self.path}: data/demo_{number}: {rows} rows found, expected {announced} as num_samples says"
                )

    def close(self) -> None:
        self._file.close()

    def place(self, row: int) -> str:
        begin, number, first = self._place
        return f"row {row - begin + first} (counted from 0) of demo_{number}"

    def action_range(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The range of actions that the file's `env_args` give a controller; None: they do not say."""
        with damage_told(self.path, DAMAGED):
            text = self._file.attribute("data", "env_args")
        try:
            arguments = json.loads(text) if isinstance(text, str) else {}
            found = arguments["env_kwargs"]["controller_configs"]
            ends = [np.atleast_1d(np.array(found[key], dtype=np.float64)) for key in ("input_min", "input_max")]
        except (KeyError, TypeError, ValueError, RecursionError):
            return None
        usable = all(one.ndim == 1 and np.isfinite(one).all() for one in ends) and (ends[0] < ends[1]).all()
        return (ends[0], ends[1]) if usable else None

    @property
    def images(self) -> list[str]:
        """Observations that are no vectors."""
        return [name for name, field in self.fields.items() if name.startswith("obs/") and field.dtype == np.uint8]

    def _chosen(self, filter_key: str | None, demos: Sequence[int] | None) -> list[int]:
        chosen = self.demos
        if filter_key is not None:
            name = f"mask/{filter_key}"
            if name not in self._file.fields:
                there = sorted(key.removeprefix("mask/") for key in self._file.fields if key.startswith("mask/"))
                raise UserError(
                    f"{self.path}: filter key {filter_key!r} asked for, expected one of {', '.join(there) or 'none'}"
                )
            named = [_demo_number(self.path, name, one) for one in self._file.texts(name)]
            missing = sorted(set(named) - set(chosen))
            if missing:
                raise UserError(f"{self.path}: {name}: demo_{missing[0]} named, but it is not in the file")
            chosen = sorted(set(named))
        if demos is not None:
            missing = sorted(set(demos) - set(chosen))
            if missing:
                raise UserError(
                    f"{self.path}: demo_{missing[0]} asked for, expected some of demo_{chosen[0]} to demo_{chosen[-1]} "
                    f"({len(chosen)})"
                )
            chosen = sorted(set(demos))
        if not chosen:
            raise UserError(f"{self.path}: no demonstration chosen, expected at least one")
        return chosen

    def _shared_fields(self) -> dict[str, Field]:
        """The fields of the first chosen demonstration, which the others must have as well."""
        first = {name: self._file.fields[full] for name, full in self._within[self.chosen[0]].items()}
        for number in self.chosen[1:]:
            here = self._within[number]
            for name, field in first.items():
                other = self._file.fields[here[name]] if name in here else None
                if other is None or (other.width, other.dtype.kind) != (field.width, field.dtype.kind):
                    found = "none" if other is None else f"{other.width or 1} times {other.dtype}"
                    raise UserError(
                        f"{self.path}: data/demo_{number}/{name}: {found} found, expected {field.width or 1} times "
                        f"{field.dtype} as in demo_{self.chosen[0]}"
                    )
        return first

    def _announced(self, number: int) -> int | None:
        found = self._file.attribute(f"data/demo_{number}", "num_samples")
        if found is None:
            return None
        if not isinstance(found, (int, np.integer)):
            raise UserError(
                f"{self.path}: data/demo_{number}: num_samples {one_line(repr(found))} found, expected a whole number"
            )
        return int(found)


def _demo_number(path: Path, where: str, name: str) -> int:
    found = re.fullmatch(r"demo_(\d{1,9})", name)
    if not found:
        raise UserError(f"{path}: {where}: {one_line(repr(name))} found, expected names such as demo_0")
    return int(found[1])
