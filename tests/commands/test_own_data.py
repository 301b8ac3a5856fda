"""People's own recordings, from file to policy: no environment, any format, and mistakes found before training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.runs import small

from tailo_pl import cli
from tailo_pl.data.formats import write_file
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.inputs.weights import trajectory_weights
from tailo_pl.models import PUDiscriminator
from tailo_pl.training.checkpoints import load_checkpoint

SMALL = small(20, "preset.held_out.every_n_steps=10", "preset.held_out.trajectories=2")
FORMATS = ("npz", "hdf5", "parquet", "csv", "pt")


def walks(seed: int, trajectories: int, drift: float) -> Trajectories:
    """Walks in four dimensions (as pointmaze has) with two actions in [-0.8, 0.8]."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(15, 25, trajectories)
    rows = int(lengths.sum())
    starts = np.append(0, np.cumsum(lengths)[:-1])
    states = rng.normal(0, 1, (rows, 4)).astype(np.float32) + drift
    actions = rng.uniform(-0.8, 0.8, (rows, 2)).astype(np.float32)
    timeouts = np.zeros(rows, dtype=bool)
    timeouts[np.cumsum(lengths) - 1] = True
    return Trajectories.of(
        Recording(states, starts, actions, rewards=states[:, 0], terminals=np.zeros(rows, bool), timeouts=timeouts)
    )


EXPERT, LOGS, MORE = walks(0, 1, 0.5), walks(1, 12, 0.0), walks(2, 8, 0.2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recordings in every format, made the working directory."""
    for suffix in FORMATS:
        write_file(tmp_path / f"expert.{suffix}", EXPERT)
        write_file(tmp_path / f"logs-1.{suffix}", LOGS)
        write_file(tmp_path / f"logs-2.{suffix}", MORE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def tailo(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def train(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return tailo(capsys, "train", "source=files", *SMALL, *arguments)


def summary(name: str, env: str = "none") -> dict:
    return json.loads(Path(f"runs/{env}/given/tailo/{name}/summary.json").read_text())


def test_every_format_gives_the_same_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for suffix in FORMATS:
        code, out, err = train(
            capsys, f"source.ts=expert.{suffix}", f"source.ta=logs-*.{suffix}", f"name={suffix}", f"runs=runs/{suffix}",
            "source.action_low=-1", "source.action_high=1",
        )  # fmt: skip
        assert code == 0, err
        assert " logs" in out and "held-out 0." in out and "\nverdict " in out
        runs.append(json.loads((folder / f"runs/{suffix}/none/given/tailo/{suffix}/summary.json").read_text()))
    first = runs[0]
    assert first["score"] is None and first["episodes"] == 0 and first["reference"] is None
    assert first["data"]["ts"] == {"trajectories": 1, "states": EXPERT.steps}
    assert first["data"]["ta"]["trajectories"] == 20
    assert first["data"]["ta"]["origins"]["logs-2"]["trajectories"] == 8
    for stage in first["stages"][:2]:
        assert stage["quality"]["auroc"] == pytest.approx(0.5, abs=0.5) and stage["quality"]["ts_score"] is not None
    assert first["stages"][2]["quality"].keys() >= {"held_out_loss", "held_out_error", "held_out_mean", "held_out_bc"}
    for run in runs[1:]:
        assert run["data"]["ta"] == first["data"]["ta"]
        for stage, same in zip(run["stages"], first["stages"], strict=True):
            assert (stage["loss"], stage["quality"]) == (same["loss"], same["quality"])


def test_in_an_environment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = train(capsys, "env=pointmaze", "source.ts=expert.csv", "source.ta=logs-*.csv", "name=a")
    assert code == 0, err
    assert summary("a", "pointmaze")["score"] is not None
    code, _, err = train(capsys, "env=hopper", "source.ts=expert.csv", "source.ta=logs-*.csv")
    assert code == 2
    assert err.strip().splitlines()[-1] == (
        "tailo: env hopper: 11 numbers in a state and 3 in an action, but the data has 4 and 2"
    )
    assert not Path("runs/hopper").exists()


def test_bounds_from_the_data_with_a_warning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = train(capsys, "source.ts=expert.npz", "source.ta=logs-*.npz", "name=a")
    assert code == 0, err
    assert err.count("action bounds: none given") == 1
    config = (folder / "runs/none/given/tailo/a/policy/config.yaml").read_text()
    checkpoint = torch.load(folder / "runs/none/given/tailo/a/policy/checkpoints/last.ckpt", weights_only=True)
    everything = np.concatenate([LOGS.actions, MORE.actions])
    np.testing.assert_array_equal(checkpoint["state_dict"]["bounds.low"], everything.min(0))
    np.testing.assert_array_equal(checkpoint["state_dict"]["bounds.high"], everything.max(0))
    assert "RolloutScore" not in config
    code, _, err = tailo(capsys, "evaluate", "runs/none/given/tailo/a")
    assert (code, err) == (2, "tailo: runs/none/given/tailo/a: this run has no environment to play in (env=none)\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["source.ts=expert.csv"], "source.ta: not given, expected source.ta=..."),
        (["source.ts=nothing.csv", "source.ta=logs-1.csv"], "nothing.csv: cannot be read (No such file or directory)"),
        (["source.ts=expert.csv", "source.ta='*.tsv'"], "source.ta: '*.tsv' given, but no file is there"),
        (["source.ts=expert.csv", "source.ta=logs-1.csv", "setting=standard"], "source files: no part 'expert'"),
        (
            ["source.ts=expert.csv", "source.ta=logs-1.csv", "source.action_low=-0.5", "source.action_high=0.5"],
            "TA: actions",
        ),
        (["source.ts=expert.csv", "source.ta=logs-1.csv", "source.action_low=-1"], "only one of them given"),
        (
            ["source.ts=expert.csv", "source.ta=logs-1.csv", "source.action_low=[-1]", "source.action_high=[1]"],
            "source.action_low: [-1.0] given, expected 2 finite numbers",
        ),
        (
            ["source.ts=expert.csv", "source.ta=logs-1.csv", "source.columns.observations=nothing_*"],
            "expert.csv: observations: no field 'nothing_*' found",
        ),
        (["source.ts=expert.csv", "source.ta=logs-1.csv", "source.ts_columns.observations=[observations_0]"], "TS"),
        (["source.ts=expert.csv", "source.ta=logs-1.csv", "setting.ts_trajectories=2"], "setting.ts_trajectories: 2"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, _, err = train(capsys, *arguments)
    assert code == 2
    line = err.strip().splitlines()[-1]
    assert line.startswith("tailo: ") and message in line
    assert "Traceback" not in err
    assert not Path("runs").exists()


def test_nan_names_file_row_and_dimension(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("logs-1.csv").read_text().splitlines()
    cells = lines[8].split(",")
    cells[2] = "nan"
    Path("logs-1.csv").write_text("\n".join([*lines[:8], ",".join(cells), *lines[9:]]) + "\n")
    code, _, err = train(capsys, "source.ts=expert.csv", "source.ta=logs-1.csv")
    assert (code, err) == (
        2,
        "tailo: logs-1.csv: observations: nan found in line 9, dimension 2, expected finite numbers\n",
    )


def test_score_new_logs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ("source.action_low=-1", "source.action_high=1")
    code, _, err = train(capsys, "source.ts=expert.npz", "source.ta=logs-1.npz", "name=a", "method.gamma=0.9", *bounds)
    assert code == 0, err
    run = "runs/none/given/tailo/a"
    code, out, err = tailo(capsys, "score", "logs-2.csv", "--run", run, "--out", "scores.npz")
    assert code == 0, err
    assert "scores scores.npz" in out
    with np.load("scores.npz") as file:
        scores = dict(file)
    model = load_checkpoint(Path(f"{run}/formal/checkpoints/last.ckpt"), PUDiscriminator)
    with torch.no_grad():
        expected = model(torch.from_numpy(MORE.observations)).numpy()
    np.testing.assert_allclose(scores["score"], expected, atol=1e-5)
    weights = trajectory_weights(scores["score"], MORE.offsets, alpha=1.25, gamma=0.9)
    np.testing.assert_allclose(scores["weight"], weights, rtol=1e-5)
    np.testing.assert_array_equal(scores["episode"], MORE.trajectory_of_step)
    assert scores["step"][:3].tolist() == [0, 1, 2] and (scores["step"] == 0).sum() == 8

    for suffix in ("csv", "parquet"):
        assert tailo(capsys, "score", "logs-2.pt", "--run", run, "--out", f"scores.{suffix}")[0] == 0
        assert Path(f"scores.{suffix}").exists()
    for arguments, message in (
        (["logs-2.csv", "--run", run, "--out", "scores.csv"], "scores.csv: this file exists"),
        (["logs-2.csv", "--run", run, "--out", "scores.txt"], "scores.txt: cannot write .txt"),
        (["logs-2.csv", "--run", "runs", "--out", "new.csv"], "runs/config.yaml: cannot be read"),
        (
            ["logs-2.csv", "--run", run, "--out", "new.csv", "--column", "observations=observations_0"],
            f"data: 1 dimensions in a state found, expected 4 as in {run}",
        ),
        (["logs-2.csv", "--run", run, "--column", "nothing=x"], "--column: 'nothing=x' given"),
    ):
        code, _, err = tailo(capsys, "score", *arguments)
        assert code == 2 and message in err and "Traceback" not in err
    assert not Path("new.csv").exists()


def test_convert_there_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tailo(capsys, "data", "convert", "logs-1.npz", "out.csv")
    assert code == 0, err
    assert f"{LOGS.steps:,} steps in 12 trajectories" in out
    assert tailo(capsys, "data", "convert", "out.csv", "out.hdf5")[0] == 0
    assert tailo(capsys, "data", "convert", "out.hdf5", "back.npz")[0] == 0
    with np.load("logs-1.npz") as one, np.load("back.npz") as two:
        assert set(one.files) == set(two.files)
        for name in one.files:
            np.testing.assert_array_equal(one[name], two[name])
            assert one[name].dtype == two[name].dtype
    code, _, err = tailo(capsys, "data", "convert", "logs-1.npz", "out.csv")
    assert (code, err) == (2, "tailo: out.csv: this file exists; choose another name, or delete it\n")
    code, _, err = tailo(capsys, "data", "convert", "logs-1.npz", "out.xls")
    assert code == 2 and "out.xls: unknown format" in err


def test_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tailo(capsys, "data", "inspect", "logs-1.parquet")
    assert code == 0, err
    assert f"{LOGS.steps:,}" in out and "12" in out
    code, out, _ = tailo(capsys, "data", "inspect", "logs-1.parquet", "--json")
    assert code == 0
    numbers = json.loads(out)
    assert (numbers["steps"], numbers["trajectories"]) == (LOGS.steps, 12)
    code, _, err = tailo(capsys, "data", "inspect", "hoper-expert-v2")
    assert code == 2 and "(did you mean hopper-expert-v2?)" in err
    with np.load("logs-1.npz") as file:
        arrays = dict(file)
    arrays["observations"][5, 2] = np.nan
    np.savez("holes.npz", **arrays)
    code, out, err = tailo(capsys, "data", "inspect", "holes.npz")
    assert code == 0, err
    assert "1 NaN, first in row 5 (counted from 0)" in out
    assert tailo(capsys, "data", "convert", "holes.npz", "holes.csv")[0] == 2


def test_list_and_make(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, _, err = tailo(capsys, "data", "make", "pointmaze")
    assert code == 0, err
    code, out, _ = tailo(capsys, "data", "list")
    assert code == 0
    assert "pointmaze/directions" in out and "walker2d/medium-replay" in out
    code, out, _ = tailo(capsys, "data", "list", "--json")
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert entries["pointmaze/directions"]["size"] > 1e6
    code, out, _ = tailo(capsys, "data", "list", "d4rl", "--json")
    assert "kitchen-mixed-v0" in {entry["name"] for entry in json.loads(out)}
    code, _, err = tailo(capsys, "data", "make", "hoper")
    assert code == 2 and "data make: 'hoper' given" in err
