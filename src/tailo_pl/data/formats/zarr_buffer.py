"""Zarr replay buffers, as a folder or a zip file: `data/KEY` with a row per step, `meta/episode_ends`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.members import member
from tailo_pl.data.formats.record_file import Field, RecordFile
from tailo_pl.data.formats.zarr_arrays import Store, ZarrArray, described
from tailo_pl.errors import UserError, one_line
from tailo_pl.files import is_plain

_DAMAGED = "damaged or not a Zarr store"
_LARGEST_DESCRIPTION = 1 << 20
_MOST_EPISODES_BYTES = 1 << 24
_LARGEST_CHUNK = 1 << 28
_DESCRIPTIONS = ("/.zarray", "/zarr.json")


def is_zarr(path: Path) -> bool:
    """Whether a path looks like a Zarr store."""
    if path.is_dir():
        return any((path / name).is_file() for name in (".zgroup", "zarr.json", "data/.zgroup"))
    return path.name.lower().endswith(".zarr.zip")


class FolderStore:
    """Pieces as files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str, most: int) -> bytes:
        # Descriptions begin with a dot, which no other name of a data set may.
        last = name.rpartition("/")[2]
        plain = name.removesuffix(last) + last.lstrip(".")
        path = member(self._folder, name, "a part of a Zarr array") if plain == name else self._hidden(name)
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise UserError(f"{self._folder}: {name} has more than {most:,} bytes, expected fewer")
        return content

    def _hidden(self, name: str) -> Path:
        above, _, last = name.rpartition("/")
        path = self._folder / name
        folders = [self._folder / part for part in _ways(above)]
        if not is_plain(above) or path.is_symlink() or any(one.is_symlink() for one in folders) or not path.is_file():
            raise UserError(f"{self._folder}: {name} is not there or a link, expected {last}")
        return path

    def names(self) -> list[str]:
        found = [path.relative_to(self._folder).as_posix() for top in ("data", "meta")
                 for end in _DESCRIPTIONS for path in (self._folder / top).glob(f"*{end}")]  # fmt: skip
        return sorted(found)


def _ways(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


class ZipStore:
    """Pieces as entries of a zip file; names that lead anywhere are just names here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with damage_told(path, _DAMAGED):
            self._zip = zipfile.ZipFile(path)
            self._entries: dict[str, zipfile.ZipInfo] = {}
            for info in self._zip.infolist():
                if info.filename in self._entries:
                    raise UserError(f"{path}: {one_line(repr(info.filename))} found twice, expected each name once")
                self._entries[info.filename] = info

    def read(self, name: str, most: int) -> bytes:
        info = self._entries.get(name)
        if info is None:
            raise UserError(f"{self._path}: {name} is missing, expected a part of a Zarr array")
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{self._path}: {name}: encrypted or oddly compressed, expected a plain entry")
        with damage_told(f"{self._path}: {name}", _DAMAGED), self._zip.open(info) as stream:
            content = stream.read(most + 1)
            if len(content) > most or stream.read(1):
                raise UserError(f"{self._path}: {name} has more than {most:,} bytes, expected fewer")
        return content

    def names(self) -> list[str]:
        return sorted(name for name in self._entries if name.count("/") == 2 and name.endswith(_DESCRIPTIONS)
                      and name.startswith(("data/", "meta/")))  # fmt: skip

    def close(self) -> None:
        self._zip.close()


class ZarrBuffer(RecordFile):
    """An open buffer. Its fields are the arrays below `data`; `episode` numbers the parts that `episode_ends` marks.

    Args:
        path: a folder or a `.zarr.zip`.
        episodes: numbers of the chosen ones; None: all.

    Attributes:
        ends: row behind the last one of each episode.
        images: arrays with more than one number per dimension of a step, which are no fields.
    """

    def __init__(self, path: Path, episodes: Sequence[int] | None = None) -> None:
        self.path = path
        self._store: Store = FolderStore(path) if path.is_dir() else ZipStore(path)
        try:
            with damage_told(path, _DAMAGED):
                self._arrays = dict(self._described())
                self.ends = self._episode_ends()
                self.chosen = self._chosen(episodes)
        except BaseException:
            self.close()
            raise
        self.images = [name for name, array in self._arrays.items() if len(array.shape) > 2]
        self.fields = {
            name: Field(array.dtype.newbyteorder("="), array.shape[1] if len(array.shape) == 2 else None)
            for name, array in self._arrays.items()
            if len(array.shape) <= 2
        } | {"episode": Field(np.dtype(np.int64))}
        self._last: tuple[int, NDArray[np.int64]] = 0, np.empty(0, dtype=np.int64)

    def batches(self, names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        steps = int(self.ends[-1])
        arrays = {name: self._arrays[name] for name in names if name != "episode"}
        for name, array in arrays.items():
            self.require_number(name, array.dtype)
            if array.shape[0] != steps:
                raise UserError(
                    f"{self.path}: data/{name}: {array.shape[0]} rows found, expected {steps}, where the last "
                    "episode ends"
                )
        self._require_few_bytes(arrays)
        rows = self.rows_per_batch(names)
        handed_on = 0
        for start in range(0, steps, rows):
            stop = min(start + rows, steps)
            episode = np.searchsorted(self.ends, np.arange(start, stop), side="right")
            keep = np.flatnonzero(self.chosen[episode])
            if not len(keep):
                continue
            self._last = handed_on, keep + start
            handed_on += len(keep)
            batch = {name: self._checked(name, array.read(start, stop), start)[keep] for name, array in arrays.items()}
            yield {name: batch[name] if name in batch else episode[keep] for name in names}

    @property
    def label(self) -> str:
        return self.path.name.partition(".zarr")[0]

    def close(self) -> None:
        if isinstance(self._store, ZipStore):
            self._store.close()

    def place(self, row: int) -> str:
        begin, rows = self._last
        return f"row {rows[row - begin]} (counted from 0)" if 0 <= row - begin < len(rows) else super().place(row)

    def _described(self) -> Iterator[tuple[str, ZarrArray]]:
        for name in self._store.names():
            above = name.rpartition("/")[0]
            text = self._store.read(name, _LARGEST_DESCRIPTION)
            where = f"{self.path}: {above}"
            try:
                found = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{where}: its description is not valid JSON ({one_line(error)})") from error
            if isinstance(found, dict) and found.get("node_type") == "group":
                continue
            key = above.removeprefix("data/") if above.startswith("data/") else above
            if not key.isprintable():
                raise UserError(f"{self.path}: a field called {key!a} found, expected printable names")
            try:
                yield key, described(where, self._store, f"{above}/", found)
            except UserError:
                if key in ("action", "state", "obs") or key == "meta/episode_ends":
                    raise  # others may be anything, as long as nobody asks for them

    def _episode_ends(self) -> NDArray[np.int64]:
        array = self._arrays.pop("meta/episode_ends", None)
        for name in [name for name in self._arrays if name.startswith("meta/")]:
            del self._arrays[name]
        if array is None:
            raise UserError(f"{self.path}: no meta/episode_ends found, expected a replay buffer")
        if len(array.shape) != 1 or array.dtype.kind not in "iu" or not array.shape[0]:
            raise UserError(
                f"{self.path}: meta/episode_ends: shape {array.shape} of {array.dtype} found, expected whole numbers"
            )
        if max(array.chunk_bytes, array.shape[0] * array.dtype.itemsize) > _MOST_EPISODES_BYTES:
            raise UserError(f"{self.path}: meta/episode_ends: {array.shape[0]:,} episodes found, expected fewer")
        ends = array.read(0, array.shape[0]).astype(np.int64)
        wrong = np.flatnonzero(np.diff(ends, prepend=0) <= 0)
        if len(wrong):
            raise UserError(
                f"{self.path}: meta/episode_ends: {ends[wrong[0]]} found for episode {wrong[0]}, expected "
                "rows that rise"
            )
        return ends

    def _chosen(self, episodes: Sequence[int] | None) -> NDArray[np.bool_]:
        count = len(self.ends)
        if episodes is None:
            return np.ones(count, dtype=bool)
        missing = [number for number in episodes if not 0 <= number < count]
        if missing or not episodes:
            found = f"episode {missing[0]}" if missing else "no episode"
            raise UserError(f"{self.path}: {found} asked for, expected some of 0 to {count - 1}")
        return np.isin(np.arange(count), list(episodes))

    def _require_few_bytes(self, arrays: dict[str, ZarrArray]) -> None:
        """Refuse chunks that would fill memory: one of each array is unpacked at a time."""
        for name, array in arrays.items():
            if array.chunk_bytes > _LARGEST_CHUNK:
                raise UserError(
                    f"{self.path}: data/{name}: chunks of {array.chunk_bytes:,} bytes found, expected at most "
                    f"{_LARGEST_CHUNK:,}"
                )

    def _checked(self, name: str, array: NDArray[Any], row: int) -> NDArray[Any]:
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise UserError(f"{self.path}: data/{name}: neither true nor false found behind row {row}")
        return array
