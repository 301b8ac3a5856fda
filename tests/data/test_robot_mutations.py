"""Harmed and hostile data sets of robot people's layouts: one line, or equal but for what was harmed.

No path outside a data set's folder is followed, nothing in it runs, and memory stays small.
"""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.robot_sets import Logs, write_lerobot, write_robomimic, write_zarr

from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.imports import import_files
from tailo_pl.data.formats.lerobot import LeRobotSet
from tailo_pl.data.formats.record_file import RecordFile
from tailo_pl.data.formats.robomimic import RobomimicFile
from tailo_pl.data.formats.zarr_buffer import ZarrBuffer
from tailo_pl.errors import UserError

LOGS = Logs(lengths=(6, 9, 7))
ALLOWANCE = 48 << 20
OF_ROWS = Columns(["observation.state"], "action", None, None, None, None, "episode_index", None)
OF_DEMOS = Columns(["obs/joints", "obs/object"], "actions", None, "rewards", None, None, "episode", None)
OF_BUFFER = Columns("state", "action", None, None, None, None, "episode", None)

Writer = Callable[[Path], Path]
KINDS: dict[str, tuple[str, Writer, Callable[[Path], RecordFile], Columns]] = {
    "lerobot v3": ("set", lambda at: write_lerobot(at, LOGS, files=(0, 0, 1)), LeRobotSet, OF_ROWS),
    "lerobot v2": ("set", lambda at: write_lerobot(at, LOGS, "v2.1"), LeRobotSet, OF_ROWS),
    "robomimic": ("x.hdf5", lambda at: write_robomimic(at, LOGS), RobomimicFile, OF_DEMOS),
    "zarr": ("x.zarr", lambda at: write_zarr(at, LOGS), ZarrBuffer, OF_BUFFER),
    "zarr zip": ("x.zarr.zip", lambda at: write_zarr(at, LOGS, 3), ZarrBuffer, OF_BUFFER),
}


def load(kind: str, path: Path, scratch: Path) -> dict[str, np.ndarray]:
    _, _, opened, columns = KINDS[kind]
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    import_files([path], opened, scratch, columns)
    return {file.stem: np.load(file, allow_pickle=False) for file in scratch.iterdir()}


def cells(array: dict[str, np.ndarray]) -> int:
    """How many numbers differ from what was recorded."""
    assert array["observations"].shape == LOGS.states.shape and array["actions"].shape == LOGS.actions.shape
    assert array["starts"].tolist() == LOGS.starts.tolist()
    return int((array["observations"] != LOGS.states).sum() + (array["actions"] != LOGS.actions).sum())


def harmed(content: bytes, number: int, random: np.random.Generator) -> bytes:
    """One of: a bit flipped, cut, bytes removed, bytes inserted."""
    place = int(random.integers(max(1, len(content))))
    if number % 4 == 0:
        return content[:place]
    if number % 4 == 1:
        return content[:place] + content[place + int(random.integers(1, 9)) :]
    if number % 4 == 2:
        return content[:place] + bytes(random.integers(256, size=3, dtype=np.uint8)) + content[place:]
    flipped = bytearray(content or b"\0")
    flipped[place] ^= 1 << int(random.integers(8))
    return bytes(flipped)


@pytest.mark.parametrize("kind", KINDS)
def test_any_harm_is_one_line_or_none(kind: str, tmp_path: Path) -> None:
    """120 harmed copies of each: some file of it, chosen at random, is not what it was."""
    name, write, _, _ = KINDS[kind]
    original = write(tmp_path / name)
    files = sorted(path for path in original.rglob("*") if path.is_file() and "img" not in str(path)) or [original]
    contents = {path: path.read_bytes() for path in files}
    random = np.random.default_rng([7, len(kind)])
    # The file format itself has no checksums here: in such a file a harmed cell may be anything.
    unchecked = {"robomimic": 64, "zarr": 64}.get(kind, 0)
    refused = 0
    for number in range(120):
        path = files[int(random.integers(len(files)))]
        path.write_bytes(harmed(contents[path], number, random))
        tracemalloc.start()
        try:
            differ = cells(load(kind, original, tmp_path / "scratch"))
            assert differ <= unchecked, (number, path)
        except UserError as error:
            refused += 1
            assert str(error).startswith(f"{original}") and str(error).isprintable(), (number, error)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < ALLOWANCE, (number, path, peak)
        path.write_bytes(contents[path])
    assert refused > 40
    assert cells(load(kind, original, tmp_path / "scratch")) == 0


def refusal(kind: str, path: Path, tmp_path: Path) -> str:
    with pytest.raises(UserError) as caught:
        load(kind, path, tmp_path / "scratch")
    message = str(caught.value)
    assert message.startswith(str(path)) and message.isprintable()
    return message.removeprefix(f"{path}: ")


def changed_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def changed_table(path: Path, **columns: Any) -> None:
    table = pq.read_table(path)
    for name, values in columns.items():
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    pq.write_table(table, path)


INDEX, DATA = "meta/episodes/chunk-000/file-000.parquet", "data/chunk-000/file-000.parquet"


def lerobot_lies() -> Iterator[tuple[str, str, Callable[[Path], None], str]]:
    yield "length", "v3", lambda at: changed_table(at / INDEX, length=[6, 8, 7]), \
        "episode 2 of length 7: dataset_from_index 15 found, expected 14"  # fmt: skip
    yield "moved", "v3", lambda at: changed_table(
        at / INDEX, length=[5, 10, 7], dataset_from_index=[0, 5, 15], dataset_to_index=[5, 15, 22]
    ), f"{DATA}: episode_index 0 found in row 5 (counted from 0), expected 1"  # fmt: skip
    yield "order", "v3", lambda at: changed_table(at / INDEX, episode_index=[0, 2, 1]), "episode 1 found behind 2"
    yield "order of rows", "v3", lambda at: changed_table(at / DATA, episode_index=[1] * 6 + [0] * 9), \
        "episode_index 1 found in row 0"  # fmt: skip
    yield "frames", "v3", lambda at: changed_table(at / DATA, frame_index=[*range(6), *range(1, 10)]), \
        "frame_index 1 found in row 6 (counted from 0), expected 0"  # fmt: skip
    yield "no chunk", "v3", lambda at: shutil.rmtree(at / "data/chunk-000"), f"{DATA} cannot be read"
    yield "no file", "v3", lambda at: (at / "data/chunk-000/file-001.parquet").unlink(), "file-001.parquet cannot be"
    yield "one more file", "v3", lambda at: shutil.copy(at / DATA, at / "data/chunk-000/file-002.parquet"), \
        "file-002.parquet found, but no episode"  # fmt: skip
    yield "task", "v3", lambda at: changed_table(at / DATA, task_index=[0] * 14 + [7]), \
        "task_index 7 found in row 14 (counted from 0), expected one of the 2"  # fmt: skip
    yield "episodes", "v3", lambda at: changed_json(at / "meta/info.json", total_episodes=4), \
        "total_episodes: 4 found, but the index lists 3"  # fmt: skip
    yield "frames told", "v2", lambda at: changed_json(at / "meta/info.json", total_frames=1), \
        "total_frames: 1 found, but the episodes have 22"  # fmt: skip
    yield "version", "v2", lambda at: changed_json(at / "meta/info.json", codebase_version="v1.6"), \
        "codebase_version: 'v1.6' found, expected one of v3.0, v2.1, v2.0"  # fmt: skip
    for pattern in ("../{episode_index}.parquet", "/etc/{episode_index}", "data/../../x/{episode_index}"):
        yield pattern, "v2", lambda at, pattern=pattern: changed_json(at / "meta/info.json", data_path=pattern), \
            "found as a file's name, expected a path inside"  # fmt: skip
    for pattern in ("{episode_index.__class__}", "{0}", "{chunk_index:999999999d}", "{"):
        yield pattern, "v2", lambda at, pattern=pattern: changed_json(at / "meta/info.json", data_path=pattern), \
            "data_path: "  # fmt: skip


@pytest.mark.parametrize(("version", "lie", "said"), [pytest.param(*one[1:], id=one[0]) for one in lerobot_lies()])
def test_an_index_that_lies(version: str, lie: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    kind = f"lerobot {version}"
    path = KINDS[kind][1](tmp_path / "set")
    lie(path)
    assert said in refusal(kind, path, tmp_path)


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        ("lerobot v3", DATA),
        ("lerobot v3", "data/chunk-000"),
        ("lerobot v3", "meta/info.json"),
        ("lerobot v2", "meta/episodes.jsonl"),
        ("zarr", "data/state/0.0"),
        ("zarr", "data/state"),
        ("zarr", "data/state/.zarray"),
    ],
)
def test_links_are_not_followed(kind: str, inside: str, tmp_path: Path) -> None:
    """Even to the very content that belongs there: a data set of someone else's must not read my files."""
    path = KINDS[kind][1](tmp_path / KINDS[kind][0])
    shutil.move(path / inside, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path / inside)
    assert "link" in refusal(kind, path, tmp_path)


def test_a_demonstration_kept_in_another_file(tmp_path: Path) -> None:
    path, other = write_robomimic(tmp_path / "x.hdf5", LOGS), write_robomimic(tmp_path / "y.hdf5", LOGS)
    with h5py.File(path, "a") as file:
        del file["data/demo_1/actions"]
        file["data/demo_1/actions"] = h5py.ExternalLink(str(other), "data/demo_1/actions")
    assert "data/demo_1/actions" in refusal("robomimic", path, tmp_path)
    with h5py.File(path, "a") as file:
        del file["data/demo_1"]
        file["data/demo_1"] = h5py.ExternalLink(str(other), "data/demo_1")
    load("robomimic", path, tmp_path / "scratch")  # no demonstration of this file
    assert np.load(tmp_path / "scratch/starts.npy").tolist() == [0, 6]


def test_samples_that_are_missing(tmp_path: Path) -> None:
    path = write_robomimic(tmp_path / "x.hdf5", LOGS)
    with h5py.File(path, "a") as file:
        file["data/demo_2"].attrs["num_samples"] = 8
    assert refusal("robomimic", path, tmp_path) == "data/demo_2: 7 rows found, expected 8 as num_samples says"


def test_zip_entries_lead_nowhere(tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "x.zarr.zip", LOGS, 3)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../outside", b"x")
        archive.writestr("/etc/outside", b"x")
    assert cells(load("zarr zip", path, tmp_path / "scratch")) == 0
    assert not (tmp_path.parent / "outside").exists()


def test_a_chunk_that_is_not_there_is_not_zeros(tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "x.zarr", LOGS)
    (path / "data/action/1.0").unlink()
    assert "data/action/1.0 cannot be read" in refusal("zarr", path, tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dtype": "|O", "filters": [{"id": "pickle"}]}, "filters"),
        ({"dtype": "|O"}, "type '|O' found, expected numbers"),
        ({"compressor": {"id": "pickle"}}, "compressor 'pickle' found"),
        ({"compressor": {"id": "../blosc"}}, "compressor '../blosc' found"),
        ({"chunks": [1 << 38, 3]}, "chunks of"),
        ({"shape": [1 << 38, 3]}, "rows found, expected 22"),
        ({"chunks": [0, 3]}, "chunks"),
        ({"shape": [22]}, "as many lengths"),
    ],
)
def test_descriptions_that_ask_for_more(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "x.zarr", LOGS)
    changed_json(path / "data/state/.zarray", **changes)
    assert said in refusal("zarr", path, tmp_path)


def test_a_chunk_that_claims_gigabytes(tmp_path: Path) -> None:
    path = write_zarr(tmp_path / "x.zarr", LOGS)
    for compressor, content in (
        ("zlib", b"x\x9c" + bytes(100)),
        ("blosc", b"\x02\x01\x21\x04" + (1 << 31).to_bytes(4, "little") + bytes(8)),
        ("lz4", (1 << 31).to_bytes(4, "little") + bytes(50)),
        ("zstd", b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + bytes(8)),
    ):
        changed_json(path / "data/state/.zarray", compressor={"id": compressor})
        (path / "data/state/0.0").write_bytes(content)
        assert "chunk data/state/0.0 is damaged" in refusal("zarr", path, tmp_path), compressor
