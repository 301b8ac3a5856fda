"""Data sets as robot people have them, written from the layouts alone (LeRobot) or by the libraries' own writers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

JOINTS = ["shoulder_pan.pos", "shoulder_lift.pos", "elbow.pos"]
ENDS = ["shoulder_pan.vel", "elbow.vel"]


@dataclass
class Logs:
    """Episodes of unequal length: states of 3 numbers, actions of 2, rewards."""

    lengths: Sequence[int] = (10, 15, 12)
    seed: int = 0
    tasks: Sequence[int] = ()
    states: np.ndarray = field(init=False)
    actions: np.ndarray = field(init=False)
    rewards: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        random, steps = np.random.default_rng(self.seed), sum(self.lengths)
        self.states = random.standard_normal((steps, 3)).astype(np.float32)
        self.actions = random.uniform(-0.9, 0.9, (steps, 2)).astype(np.float32)
        self.rewards = random.standard_normal(steps).astype(np.float32)

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum([0, *self.lengths[:-1]])

    @property
    def episode(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def task(self) -> np.ndarray:
        return np.repeat(list(self.tasks) or [0] * len(self.lengths), self.lengths)


def _column(array: np.ndarray, as_pandas: bool) -> pa.Array:
    if array.ndim == 1:
        return pa.array(array)
    if as_pandas:
        return pa.array(array.tolist(), type=pa.list_(pa.from_numpy_dtype(array.dtype)))
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])


def lerobot_info(logs: Logs, version: str, *, fps: int = 30, actions: bool = True) -> dict[str, Any]:
    scalar = {name: {"dtype": "int64", "shape": [1], "names": None} for name in
              ("frame_index", "episode_index", "index", "task_index")}  # fmt: skip
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": {"motors": JOINTS}},
        "observation.images.top": {"dtype": "video", "shape": [4, 4, 3], "names": ["height", "width", "channels"]},
        "next.reward": {"dtype": "float32", "shape": [1], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **scalar,
    }
    if actions:
        features["action"] = {"dtype": "float32", "shape": [2], "names": ENDS}
    v3 = version.startswith("v3")
    path = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet" if v3 else \
        "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"  # fmt: skip
    return {
        "codebase_version": version, "robot_type": "so100", "fps": fps, "features": features, "data_path": path,
        "chunks_size": 1000, "total_episodes": len(logs.lengths), "total_frames": sum(logs.lengths), "total_tasks": 2,
        "splits": {"train": f"0:{len(logs.lengths)}"},
    }  # fmt: skip


def write_lerobot(
    folder: Path,
    logs: Logs,
    version: str = "v3.0",
    *,
    files: Sequence[int] = (),
    fps: int = 30,
    actions: bool = True,
    stats: bool = True,
    as_pandas: bool = False,
) -> Path:
    """A data set; `files` says in which data file of v3 each episode lies."""
    v3 = version.startswith("v3")
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(lerobot_info(logs, version, fps=fps, actions=actions)))
    steps = sum(logs.lengths)
    frame = np.arange(steps) - np.repeat(logs.starts, logs.lengths)
    columns: dict[str, np.ndarray] = {
        "observation.state": logs.states,
        "next.reward": logs.rewards,
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": logs.episode,
        "index": np.arange(steps),
        "task_index": logs.task,
    }
    if actions:
        columns["action"] = logs.actions
    places = list(files) or [0] * len(logs.lengths)
    names = ["push the block", "lift the block"]
    if v3:
        groups = {place: [number for number, one in enumerate(places) if one == place] for place in places}
        paths = {place: f"data/chunk-000/file-{place:03d}.parquet" for place in groups}
    else:
        groups = {number: [number] for number in range(len(places))}
        paths = {number: f"data/chunk-000/episode_{number:06d}.parquet" for number in groups}
    for place, episodes in groups.items():
        rows = np.isin(logs.episode, episodes)
        path = folder / paths[place]
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({name: _column(array[rows], as_pandas) for name, array in columns.items()})
        pq.write_table(table, path, write_page_checksum=True)
    ends = np.cumsum(logs.lengths)
    if v3:
        (folder / "meta/episodes/chunk-000").mkdir(parents=True)
        table = pa.table({
            "episode_index": np.arange(len(places)), "tasks": [[names[0]]] * len(places),
            "length": np.array(logs.lengths), "data/chunk_index": np.zeros(len(places), dtype=np.int64),
            "data/file_index": np.array(places), "dataset_from_index": logs.starts, "dataset_to_index": ends,
        })  # fmt: skip
        pq.write_table(table, folder / "meta/episodes/chunk-000/file-000.parquet", write_page_checksum=True)
        tasks = pa.table({"task_index": np.arange(2), "__index_level_0__": names})
        pq.write_table(tasks, folder / "meta/tasks.parquet", write_page_checksum=True)
    else:
        lines = [{"episode_index": n, "tasks": [names[0]], "length": int(k)} for n, k in enumerate(logs.lengths)]
        (folder / "meta/episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        lines = [{"task_index": number, "task": text} for number, text in enumerate(names)]
        (folder / "meta/tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if stats and actions and v3:
        (folder / "meta/stats.json").write_text(json.dumps({"action": _range(logs.actions)}))
    elif stats and actions:
        lines = [{"episode_index": n, "stats": {"action": _range(logs.actions[logs.episode == n])}}
                 for n in range(len(places))]  # fmt: skip
        (folder / "meta/episodes_stats.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _range(actions: np.ndarray) -> dict[str, Any]:
    return {"min": actions.min(0).tolist(), "max": actions.max(0).tolist()}


def write_robomimic(path: Path, logs: Logs, *, env_args: dict[str, Any] | None = None) -> Path:
    """As robomimic's scripts do: a group per demonstration, filter keys as byte strings."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(logs.lengths)
        data.attrs["env_args"] = json.dumps(env_args or {"env_name": "Lift", "type": 1, "env_kwargs": {}})
        for number, (start, length) in enumerate(zip(logs.starts, logs.lengths, strict=True)):
            rows, demo = slice(start, start + length), data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = int(length)
            demo.create_dataset("actions", data=logs.actions[rows].astype(np.float64))
            demo.create_dataset("rewards", data=logs.rewards[rows])
            demo.create_dataset("dones", data=np.arange(length) == length - 1)
            demo.create_dataset("states", data=np.hstack([logs.states[rows]] * 2).astype(np.float64))
            for group, states in (("obs", logs.states[rows]), ("next_obs", logs.states[rows] + 1)):
                demo.create_dataset(f"{group}/joints", data=states[:, :2].astype(np.float64), compression="gzip")
                demo.create_dataset(f"{group}/object", data=states[:, 2:].astype(np.float64))
                demo.create_dataset(f"{group}/agentview_image", data=np.zeros((length, 4, 4, 3), dtype=np.uint8))
        names = [f"demo_{number}" for number in range(len(logs.lengths))]
        file.create_dataset("mask/train", data=np.array(names[1:], dtype="S"))
        file.create_dataset("mask/valid", data=np.array(names[:1], dtype="S"))
    return path


def write_zarr(path: Path, logs: Logs, zarr_format: int = 2, **options: Any) -> Path:
    """By zarr's own writer, as a folder or, where the name ends so, a zip file."""
    store: Any = zarr.storage.ZipStore(path, mode="w") if path.suffix == ".zip" else str(path)
    root = zarr.create_group(store, zarr_format=zarr_format)  # type: ignore[arg-type]
    data, meta = root.create_group("data"), root.create_group("meta")
    for name, array in {"state": logs.states, "action": logs.actions}.items():
        data.create_array(name, data=array, chunks=(7, array.shape[1]), **options)
    data.create_array("img", data=np.zeros((sum(logs.lengths), 4, 4, 3), dtype=np.uint8), chunks=(7, 4, 4, 3))
    meta.create_array("episode_ends", data=np.cumsum(logs.lengths), chunks=(2,), **options)
    if not isinstance(store, str):
        store.close()
    return path
