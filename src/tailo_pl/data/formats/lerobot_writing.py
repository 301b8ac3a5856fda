"""Some episodes of a LeRobot data set as a new one, in layout v3.0, checked by reading it back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tailo_pl.data.formats import lerobot_meta as meta
from tailo_pl.data.formats.damage import damage_told
from tailo_pl.data.formats.lerobot import LeRobotSet
from tailo_pl.data.formats.members import member, read_member_json
from tailo_pl.errors import UserError
from tailo_pl.files import whole_folder

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_FILE_MEGABYTES, _CHUNK_FILES = 100, 1000
# What pandas reads the text of tasks from: they are the table's index.
_PANDAS = {
    "index_columns": ["__index_level_0__"],
    "column_indexes": [],
    "columns": [
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64",
         "metadata": None},
        {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object",
         "metadata": None},
    ],
    "pandas_version": "2.2.3",
}  # fmt: skip


def write_episodes(source: Path, kept: NDArray[np.bool_], out: Path) -> list[str]:
    """Write the kept episodes, numbered anew from 0, whole or not at all.

    Args:
        source: the data set's folder.
        kept: for each of its episodes, in order.
        out: the new data set's folder.

    Returns:
        Features that were left out because they are videos, whose files would have to be cut.
    """
    if out.exists():
        raise UserError(f"{out}: already there, expected the name of a new folder")
    data = LeRobotSet(source)
    with whole_folder(out) as scratch:
        left_out = _write_meta(data, kept, _write_rows(data, kept, scratch), scratch)
        _check(data, kept, scratch)
    return left_out


def _write_rows(data: LeRobotSet, kept: NDArray[np.bool_], out: Path) -> NDArray[np.int64]:
    """Copy the rows of the kept episodes; the number of the data file of each."""
    numbers = np.full(int(data.episodes.number.max()) + 1, -1, dtype=np.int64)
    numbers[data.episodes.number[kept]] = np.arange(int(kept.sum()))
    places = np.zeros(int(kept.sum()), dtype=np.int64)
    writer: pq.ParquetWriter | None = None
    file = index = 0
    try:
        for table in _tables(data, kept):
            episode = numbers[table.column("episode_index").to_numpy()]
            path = out / _data_file(file)
            if writer is not None and path.stat().st_size > _FILE_MEGABYTES << 20:
                writer.close()
                writer, file = None, file + 1
                path = out / _data_file(file)
            table = _set(table, "episode_index", episode)
            table = _set(table, "index", np.arange(index, index + len(table)))
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(path, table.schema, write_page_checksum=True)
            writer.write_table(table.select(writer.schema.names).cast(writer.schema))
            places[np.unique(episode)] = file
            index += len(table)
    finally:
        if writer is not None:
            writer.close()
    return places


def _tables(data: LeRobotSet, kept: NDArray[np.bool_]) -> Iterator[pa.Table]:
    """The rows of the kept episodes, an episode at a time."""
    chosen = data.episodes.number[kept]
    for number, relative in enumerate(data.episodes.paths):
        here = data.episodes.number[data.episodes.file == number]
        wanted = here[np.isin(here, chosen)]
        if not len(wanted):
            continue
        path = member(data.path, relative, "recorded frames")
        with damage_told(path, "damaged or not a Parquet file"):
            table = pq.read_table(path, page_checksum_verification=True, memory_map=False, partitioning=None)
            episodes = table.column("episode_index").to_numpy()
            for one in wanted.tolist():
                rows = np.flatnonzero(episodes == one)
                yield table.slice(int(rows[0]), len(rows))


def _set(table: pa.Table, name: str, values: NDArray[np.int64]) -> pa.Table:
    at = table.schema.get_field_index(name)
    field = pa.field(name, pa.int64())
    return table.append_column(field, pa.array(values)) if at < 0 else table.set_column(at, field, pa.array(values))


def _data_file(number: int) -> str:
    return f"data/chunk-{number // _CHUNK_FILES:03d}/file-{number % _CHUNK_FILES:03d}.parquet"


def _write_meta(data: LeRobotSet, kept: NDArray[np.bool_], places: NDArray[np.int64], out: Path) -> list[str]:
    info = read_member_json(data.path, meta.INFO, "a LeRobot data set's description")
    lengths = data.episodes.length[kept]
    ends = np.cumsum(lengths)
    left_out = [name for name, one in info["features"].items() if one["dtype"] == "video"]
    features = {name: one for name, one in info["features"].items() if name not in left_out}
    features.setdefault("index", {"dtype": "int64", "shape": [1], "names": None})
    new = {
        **{key: value for key, value in info.items() if not key.startswith(("total_", "video"))},
        "codebase_version": "v3.0",
        "total_episodes": len(lengths),
        "total_frames": int(ends[-1]),
        "total_tasks": len(data.tasks),
        "chunks_size": _CHUNK_FILES,
        "data_files_size_in_mb": _FILE_MEGABYTES,
        "video_files_size_in_mb": 500,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": DATA_PATH,
        "video_path": None,
        "features": features,
    }
    (out / "meta/episodes/chunk-000").mkdir(parents=True)
    (out / meta.INFO).write_text(json.dumps(new, indent=4))
    names, numbers = data.tasks, list(meta.read_tasks(data.path, data.info).values())
    tasks = pa.table({"task_index": pa.array(numbers, pa.int64()), "__index_level_0__": pa.array(names, pa.string())})
    tasks = tasks.replace_schema_metadata({"pandas": json.dumps(_PANDAS)})
    pq.write_table(tasks, out / "meta/tasks.parquet", write_page_checksum=True)
    stats, used = _statistics(out, features, len(lengths))
    (out / "meta/stats.json").write_text(json.dumps(stats, indent=4))
    text = dict(zip(numbers, names, strict=True))
    zeros = np.zeros(len(lengths), dtype=np.int64)
    episodes = pa.table({
        "episode_index": np.arange(len(lengths)), "tasks": [[text[one] for one in some] for some in used],
        "length": lengths, "data/chunk_index": places // _CHUNK_FILES, "data/file_index": places % _CHUNK_FILES,
        "dataset_from_index": ends - lengths, "dataset_to_index": ends,
        "meta/episodes/chunk_index": zeros, "meta/episodes/file_index": zeros,
    })  # fmt: skip
    pq.write_table(episodes, out / "meta/episodes/chunk-000/file-000.parquet", write_page_checksum=True)
    return left_out


def _statistics(out: Path, features: dict[str, Any], episodes: int) -> tuple[dict[str, Any], list[list[int]]]:
    """Range, mean and deviation of every feature of numbers, and the tasks of each episode, from the written files."""
    numeric = [name for name, one in features.items() if one["dtype"] in meta.NUMBERS and len(one["shape"]) < 2]
    sums: dict[str, list[Any]] = {}
    used: list[set[int]] = [set() for _ in range(episodes)]
    for path in sorted((out / "data").rglob("*.parquet")):
        table = pq.read_table(path, columns=numeric, partitioning=None)
        for name in numeric:
            column = table.column(name).combine_chunks()
            flat = column.flatten() if pa.types.is_nested(column.type) else column
            values = flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(len(table), -1)
            found = [values.min(0), values.max(0), values.sum(0), np.square(values).sum(0), len(values)]
            before = sums.get(name)
            sums[name] = found if before is None else [
                np.minimum(before[0], found[0]), np.maximum(before[1], found[1]), *(a + b for a, b in
                zip(before[2:], found[2:], strict=True)),
            ]  # fmt: skip
        pairs = np.stack([table.column(name).to_numpy() for name in ("episode_index", "task_index")], axis=1)
        for episode, task in np.unique(pairs, axis=0).tolist():
            used[episode].add(task)
    stats = {}
    for name, (low, high, total, squares, count) in sums.items():
        mean = total / count
        std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
        ends = {"min": low, "max": high, "mean": mean, "std": std}
        stats[name] = {**{key: value.tolist() for key, value in ends.items()}, "count": [count]}
    return stats, [sorted(some) for some in used]


def _check(data: LeRobotSet, kept: NDArray[np.bool_], out: Path) -> None:
    """Read the new data set back, and hold its rows against those they were copied from."""
    again = LeRobotSet(out)
    names = [name for name in again.fields if name in data.fields and name not in ("episode_index", "index")]
    original = LeRobotSet(data.path, data.episodes.number[kept].tolist())
    ours, theirs = (_whole(one, names) for one in (again, original))
    for name in names:
        if not np.array_equal(ours[name], theirs[name], equal_nan=ours[name].dtype.kind == "f"):
            raise UserError(f"{out}: {name}: written otherwise than it was read, nothing is kept")


def _whole(data: LeRobotSet, names: list[str]) -> dict[str, NDArray[Any]]:
    batches = list(data.batches(names))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in names}
