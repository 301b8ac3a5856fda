"""What a LeRobot data set says of itself: its features, episodes, tasks and the range of its actions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.members import member, read_member_json, read_member_lines
from tailo_pl.data.formats.parquet import ParquetFile
from tailo_pl.errors import UserError, one_line

INFO = "meta/info.json"
VERSIONS = ("v3.0", "v2.1", "v2.0")
SKIPPED = ("image", "video")
NUMBERS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")
_PLACE = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")
_MOST_FRAMES = 1 << 40


@dataclass(frozen=True)
class Feature:
    """What `info.json` says of a column.

    Args:
        dtype: of its numbers, or image or video.
        width: numbers per frame; None where there are several dimensions.
        names: of its numbers; None: not given.
    """

    dtype: str
    width: int | None
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class Info:
    """The part of `info.json` that is used."""

    version: str
    fps: float
    features: Mapping[str, Feature]
    data_path: str
    chunks_size: int
    episodes: int
    frames: int

    @property
    def is_v3(self) -> bool:
        return self.version.startswith("v3")

    @property
    def skipped(self) -> dict[str, str]:
        """Features without numbers to train on, and what they are."""
        return {name: one.dtype for name, one in self.features.items() if one.dtype in SKIPPED}


@dataclass(frozen=True)
class Episodes:
    """Where each episode lies, in the order of the data.

    Args:
        number: the episode's own.
        length: frames.
        file: number of its data file among `paths`.
        paths: of the data files, relative to the data set.
    """

    number: NDArray[np.int64]
    length: NDArray[np.int64]
    file: NDArray[np.int64]
    paths: tuple[str, ...]


def is_lerobot(folder: Path) -> bool:
    """Whether a folder looks like a LeRobot data set."""
    return (folder / INFO).is_file()


def read_info(folder: Path) -> Info:
    """Read and check `meta/info.json`."""
    found = read_member_json(folder, INFO, "a LeRobot data set's description")
    if not isinstance(found, dict):
        raise _wrong(folder, "", found, "keys and values")
    version = found.get("codebase_version")
    if version not in VERSIONS:
        raise _wrong(folder, "codebase_version", version, f"one of {', '.join(VERSIONS)}")
    features = found.get("features")
    if not isinstance(features, dict) or not features:
        raise _wrong(folder, "features", features, "a description of each column")
    fps: Any = found.get("fps")
    if type(fps) not in (int, float) or not 0 < fps < math.inf:
        raise _wrong(folder, "fps", fps, "a positive number")
    data_path = found.get("data_path")
    if not isinstance(data_path, str):
        raise _wrong(folder, "data_path", data_path, "a pattern of file names")
    chunks = found.get("chunks_size", 1000)
    counts = [_count(folder, key, found.get(key)) for key in ("total_episodes", "total_frames")]
    if not _count(folder, "chunks_size", chunks):
        raise _wrong(folder, "chunks_size", chunks, "a positive number")
    described = {one_line(name): _feature(folder, name, one) for name, one in features.items()}
    return Info(version, float(fps), described, data_path, chunks, *counts)


def _feature(folder: Path, name: str, found: Any) -> Feature:
    dtype = found.get("dtype") if isinstance(found, dict) else None
    if not isinstance(dtype, str):
        raise _wrong(folder, f"features.{one_line(name)}", found, "dtype and shape")
    if dtype not in NUMBERS:
        return Feature(dtype, None, None)
    shape = found.get("shape")
    if not isinstance(shape, list) or not all(type(length) is int and 0 < length < 1 << 20 for length in shape):
        raise _wrong(folder, f"features.{one_line(name)}.shape", shape, "lengths")
    width = None if len(shape) > 1 else (shape[0] if shape else 1)
    names = tuple(_flat(found.get("names")))
    return Feature(dtype, width, names if len(names) == width else None)


def _flat(names: Any) -> Iterator[str]:
    """Names come as a list, or as a list below a word such as `motors`."""
    if isinstance(names, dict) and not all(isinstance(value, (list, dict)) for value in names.values()):
        yield from (one_line(name) for name in names)  # each name with its place
    elif isinstance(names, dict):
        for value in names.values():
            yield from _flat(value)
    elif isinstance(names, list):
        for value in names:
            yield from [one_line(value)] if isinstance(value, str) else _flat(value)


def _count(folder: Path, key: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST_FRAMES:
        raise _wrong(folder, key, value, "a whole number")
    return value


def _wrong(folder: Path, key: str, found: Any, expected: str) -> UserError:
    return UserError(f"{folder}: {INFO}: {key}: {one_line(repr(found))} found, expected {expected}")


def file_name(folder: Path, pattern: str, **numbers: int) -> str:
    """A name of `info.json` with its places filled in. (`str.format` would let a file ask for more than numbers.)"""
    unknown = [place for place, _ in _PLACE.findall(pattern) if place not in numbers]
    left = _PLACE.sub("", pattern)
    if unknown or "{" in left or "}" in left:
        raise _wrong(folder, "data_path", pattern, f"places {', '.join(numbers)}")
    return _PLACE.sub(lambda place: f"{numbers[place[1]]:0{place[2] or 1}d}", pattern)


def read_episodes(folder: Path, info: Info) -> Episodes:
    """The episodes as the data set's index has them, once it is known to agree with itself."""
    episodes = _episodes_v3(folder, info) if info.is_v3 else _episodes_v2(folder, info)
    if len(episodes.number) != info.episodes:
        raise UserError(
            f"{folder}: {INFO}: total_episodes: {info.episodes} found, but the index lists {len(episodes.number)}"
        )
    if (frames := int(episodes.length.sum())) != info.frames:
        raise UserError(f"{folder}: {INFO}: total_frames: {info.frames} found, but the episodes have {frames}")
    if not len(episodes.number):
        raise UserError(f"{folder}: no episodes found, expected at least one")
    return episodes


def _episodes_v3(folder: Path, info: Info) -> Episodes:
    keys = ("episode_index", "length", "data/chunk_index", "data/file_index")
    ends = ("dataset_from_index", "dataset_to_index")
    columns = _whole_columns(folder, _numbered(folder, "meta/episodes"), (*keys, *ends))
    number, length, chunk, file = (columns[key] for key in keys)
    _require_order(folder, "meta/episodes", number)
    last = np.cumsum(length)
    for key, expected in zip(ends, (last - length, last), strict=True):
        wrong = np.flatnonzero(columns[key] != expected)
        if len(wrong) or (length <= 0).any():
            at = int(wrong[0]) if len(wrong) else int(np.argmin(length))
            raise UserError(
                f"{folder}: meta/episodes: episode {number[at]} of length {length[at]}: {key} {columns[key][at]} "
                f"found, expected {expected[at]} behind the episodes before it"
            )
    places, inverse = np.unique(np.stack([chunk, file], axis=1), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    if (np.diff(inverse) < 0).any():
        at = int(np.flatnonzero(np.diff(inverse) < 0)[0]) + 1
        raise UserError(
            f"{folder}: meta/episodes: episode {number[at]} lies in file {file[at]} of chunk {chunk[at]}, expected it "
            f"not before that of episode {number[at - 1]}"
        )
    names = tuple(
        file_name(folder, info.data_path, chunk_index=int(one), file_index=int(two)) for one, two in places.tolist()
    )
    extra = sorted(set(_numbered(folder, "data")) - set(names))
    if extra:
        raise UserError(f"{folder}: {extra[0]} found, but no episode of meta/episodes lies in it")
    return Episodes(number, length, inverse.astype(np.int64), names)


def _episodes_v2(folder: Path, info: Info) -> Episodes:
    name = "meta/episodes.jsonl"
    number: list[int] = []
    length: list[int] = []
    for line, one in enumerate(read_member_lines(folder, name, "a line per episode"), 1):
        pair: list[Any] = [one.get(key) for key in ("episode_index", "length")] if isinstance(one, dict) else [one]
        if len(pair) != 2 or not all(type(value) is int and 0 <= value < _MOST_FRAMES for value in pair) or not pair[1]:
            found = one_line(repr(pair))
            raise UserError(f"{folder}: {name}, line {line}: {found} found, expected episode_index and length")
        number.append(pair[0])
        length.append(pair[1])
    numbers = np.array(number, dtype=np.int64)
    _require_order(folder, name, numbers)
    names = tuple(
        file_name(folder, info.data_path, episode_chunk=at // info.chunks_size, episode_index=at) for at in number
    )
    return Episodes(numbers, np.array(length, dtype=np.int64), np.arange(len(names)), names)


def _require_order(folder: Path, where: str, number: NDArray[np.int64]) -> None:
    wrong = np.flatnonzero(np.diff(number) <= 0)
    if len(wrong):
        at = int(wrong[0])
        raise UserError(
            f"{folder}: {where}: episode {number[at + 1]} found behind {number[at]}, expected them in order"
        )


def _numbered(folder: Path, below: str) -> list[str]:
    """The names `chunk-*/file-*.parquet` below a folder, in the order of their numbers."""
    found = []
    for path in (folder / below).glob("chunk-*/file-*.parquet"):
        numbers = re.fullmatch(r"chunk-(\d{1,9})/file-(\d{1,9})\.parquet", path.relative_to(folder / below).as_posix())
        if numbers:
            found.append((int(numbers[1]), int(numbers[2]), path.relative_to(folder).as_posix()))
    return [name for _, _, name in sorted(found)]


def _whole_columns(folder: Path, names: list[str], columns: tuple[str, ...]) -> dict[str, NDArray[np.int64]]:
    """Columns of whole numbers from small Parquet files, put together."""
    if not names:
        raise UserError(f"{folder}: meta/episodes: no chunk-000/file-000.parquet found, expected the index of episodes")
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in columns}
    for name in names:
        with ParquetFile(member(folder, name, "the index of episodes")) as file:
            for column in columns:
                if column not in file.fields or file.fields[column].dtype.kind not in "iu":
                    raise UserError(f"{folder}: {name}: no column {column!r} of whole numbers found, expected one")
            for batch in file.batches(columns):
                for column in columns:
                    parts[column].append(batch[column].astype(np.int64))
    return {column: np.concatenate(part or [np.empty(0, dtype=np.int64)]) for column, part in parts.items()}


def read_tasks(folder: Path, info: Info) -> dict[str, int]:
    """The number of each task, by its text."""
    name = "meta/tasks.parquet" if info.is_v3 else "meta/tasks.jsonl"
    if info.is_v3:
        with ParquetFile(member(folder, name, "the tasks")) as file:
            texts = [key for key, field in file.fields.items() if field.dtype.kind == "O"]
            if len(texts) != 1 or "task_index" not in file.fields:
                raise UserError(f"{folder}: {name}: columns {', '.join(file.fields)} found, expected task, task_index")
            batches = list(file.batches((texts[0], "task_index")))
        pairs = [pair for batch in batches for pair in zip(*(batch[k].tolist() for k in batch), strict=True)]
    else:
        lines = read_member_lines(folder, name, "a line per task")
        pairs = [(one.get("task"), one.get("task_index")) if isinstance(one, dict) else (None, None) for one in lines]
    for text, number in pairs:
        if not isinstance(text, str) or type(number) is not int or number < 0:
            raise UserError(f"{folder}: {name}: {one_line(repr((text, number)))} found, expected a text and its number")
    return {one_line(text): number for text, number in pairs}
