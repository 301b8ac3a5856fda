"""Curation: verdicts from the expert's own scores, and data sets that are as good as those they were taken from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers.robot_sets import Logs, write_lerobot
from helpers.runs import small_run
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl import cli
from tailo_pl.data.formats.lerobot_writing import write_episodes
from tailo_pl.errors import UserError
from tailo_pl.runs.curation import best_segments


@given(st.lists(st.lists(st.integers(-5, 5), min_size=1, max_size=12), min_size=1, max_size=4))
def test_best_segments(trajectories: list[list[int]]) -> None:
    """No other segment has a larger sum."""
    offsets = np.cumsum([0, *map(len, trajectories)])
    begins, ends = best_segments(np.concatenate(trajectories).astype(float), offsets)
    for values, begin, end in zip(trajectories, begins.tolist(), ends.tolist(), strict=True):
        best = max(sum(values[i:j]) for i in range(len(values)) for j in range(i, len(values) + 1))
        assert sum(values[begin:end]) == best and (end > begin) == (best > 0)


def read_v3(folder: Path) -> dict[str, np.ndarray]:
    """A data set read from the layout alone: what LeRobot's own reader relies on, key by key."""
    info = json.loads((folder / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    needed = {"fps", "features", "total_episodes", "total_frames", "total_tasks", "chunks_size", "splits", "data_path"}
    assert needed | {"data_files_size_in_mb", "video_files_size_in_mb", "robot_type", "video_path"} <= info.keys()
    index = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pydict()
    assert {"episode_index", "tasks", "length", "meta/episodes/chunk_index", "meta/episodes/file_index"} <= index.keys()
    assert index["episode_index"] == list(range(info["total_episodes"])) and info["total_frames"] == sum(
        index["length"]
    )
    tasks = pq.read_table(folder / "meta/tasks.parquet")
    pandas = json.loads(tasks.schema.metadata[b"pandas"])
    assert pandas["index_columns"] == ["__index_level_0__"] and len(tasks) == info["total_tasks"]
    texts = tasks.column("__index_level_0__").to_pylist()
    columns: dict[str, list[np.ndarray]] = {name: [] for name in info["features"]}
    for number, length in enumerate(index["length"]):
        path = info["data_path"].format(
            chunk_index=index["data/chunk_index"][number], file_index=index["data/file_index"][number]
        )
        rows = pq.read_table(folder / path, partitioning=None).filter(pq_equal("episode_index", number))
        assert len(rows) == length == index["dataset_to_index"][number] - index["dataset_from_index"][number]
        assert rows.column("index").to_pylist() == list(
            range(index["dataset_from_index"][number], index["dataset_to_index"][number])
        )
        assert rows.column("frame_index").to_pylist() == list(range(length))
        assert {texts[task] for task in rows.column("task_index").to_pylist()} == set(index["tasks"][number])
        assert set(rows.column_names) == set(info["features"])
        for name in columns:
            columns[name].append(np.array(rows.column(name).to_pylist()))
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    stats = json.loads((folder / "meta/stats.json").read_text())
    for name in ("action", "observation.state"):
        for key in ("min", "max", "mean", "std"):
            np.testing.assert_allclose(stats[name][key], getattr(np, key)(whole[name], axis=0), rtol=1e-4, atol=1e-6)
        assert stats[name]["count"] == [len(whole[name])]
    return whole


def pq_equal(name: str, value: int) -> object:
    import pyarrow.compute as pc

    return pc.field(name) == value


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_a_smaller_data_set(tmp_path: Path, version: str) -> None:
    logs = Logs(lengths=(6, 9, 7, 5), tasks=(0, 1, 0, 1))
    source = write_lerobot(tmp_path / "logs", logs, version, files=(0, 0, 1, 1))
    left_out = write_episodes(source, np.array([False, True, True, False]), tmp_path / "kept")
    assert left_out == ["observation.images.top"]
    got, rows = read_v3(tmp_path / "kept"), np.isin(logs.episode, [1, 2])
    np.testing.assert_array_equal(got["observation.state"].astype(np.float32), logs.states[rows])
    np.testing.assert_array_equal(got["action"].astype(np.float32), logs.actions[rows])
    assert got["episode_index"].tolist() == [0] * 9 + [1] * 7
    with pytest.raises(UserError, match="already there"):
        write_episodes(source, np.array([True] * 4), tmp_path / "kept")
    (source / "meta/tasks.parquet").unlink(missing_ok=True)
    (source / "meta/tasks.jsonl").unlink(missing_ok=True)
    with pytest.raises(UserError):
        write_episodes(source, np.array([True] * 4), tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "logs"]


def pile() -> Logs:
    """Nine episodes: three go where the expert goes, three only in their second half, three elsewhere."""
    logs = Logs(lengths=[30] * 9)
    kind = np.repeat(np.arange(9) % 3, 30)
    away = (kind == 2) | ((kind == 1) & (np.arange(270) % 30 < 15))
    logs.states = (0.3 * logs.states + np.where(away, -2.0, 2.0)[:, None]).astype(np.float32)
    return logs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tailo_home: Path) -> Path:
    """A run that has learnt to tell the two places apart, on a LeRobot set in its folder."""
    folder = tmp_path_factory.mktemp("curation")
    logs = pile()
    write_lerobot(folder / "logs", logs)
    demos = Logs(lengths=[30], seed=1)
    demos.states = (0.3 * demos.states + 2.0).astype(np.float32)
    write_lerobot(folder / "demos", demos, actions=False)
    overrides = [f"source.ts={folder}/demos", f"source.ta={folder}/logs", "preset.held_out.trajectories=1"]
    steps = ["preset.pretrain_steps=150", "preset.formal_steps=150", "env.hints.gamma=0.9"]
    return small_run(folder, "source=lerobot", *overrides, *steps)


def test_curate(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    data = next(one for one in run.parents if (one / "logs").is_dir()) / "logs"
    arguments = ["--out", "table.parquet", "--keep", "0.34", "--write", "kept", "--weights", "w.parquet"]
    assert cli.main(["curate", str(data), "--run", str(run), *arguments, "--figures", "figures"]) == 0
    said = capsys.readouterr().out
    assert "kept 3 of 9 episodes" in said and "which 90 % of the expert's own states reach" in said
    table = pq.read_table("table.parquet").to_pydict()
    verdicts = dict(zip(table["episode"], table["verdict"], strict=True))
    assert {verdicts[number] for number in (0, 3, 6)} == {"expert-like"}
    assert {verdicts[number] for number in (2, 5, 8)} == {"harmful or unrelated"}
    segments = {n: (b, e) for n, b, e in zip(table["episode"], table["best_begin"], table["best_end"], strict=True)}
    for number in (1, 4, 7):  # half of it reaches the level of nine in ten, and with them half: either side of the line
        assert (
            verdicts[number] in ("useful parts", "expert-like")
            and segments[number][0] >= 14
            and segments[number][1] > 25
        )
    assert sorted(table["episode"][:6]) == [0, 1, 3, 4, 6, 7]
    kept = [number for number, one in zip(table["episode"], table["kept"], strict=True) if one]
    got, rows = read_v3(tmp_path / "kept"), np.isin(pile().episode, kept)
    np.testing.assert_array_equal(got["observation.state"].astype(np.float32), pile().states[rows])
    deleted = json.loads((tmp_path / "kept-logs-episodes_to_delete.json").read_text())
    assert sorted([*kept, *deleted]) == list(range(9))
    weights = pq.read_table("w.parquet").to_pydict()
    assert list(weights)[:3] == ["index", "episode_index", "frame_index"]
    assert weights["index"] == list(range(270)) and weights["episode_index"] == pile().episode.tolist()
    assert np.mean(weights["weight"]) == pytest.approx(1.0, rel=1e-4)
    assert {path.name for path in Path("figures").iterdir()} >= {"curation_share.png", "curation_scores.png"}


def test_curate_other_layouts_and_mistakes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = str(next(one for one in run.parents if (one / "logs").is_dir()) / "logs")
    for arguments, message in (
        (["--write", "kept"], "--write: given without --keep or --min-share"),
        (["--keep", "0"], "--keep: 0.0 given, expected a number in (0, 1]"),
        (["--keep", "1", "--min-share", "0.1"], "--keep, --min-share: both given"),
        (["--min-share", "0.9"], "--min-share: 0.9 given, but the largest share is"),
        (["--out", "x.txt"], "x.txt: unknown format, expected .csv or .parquet"),
    ):
        assert cli.main(["curate", data, "--run", str(run), *arguments]) == 2
        assert message in capsys.readouterr().err
        assert not list(tmp_path.iterdir())
