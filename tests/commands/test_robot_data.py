"""Robot people's data at the command line: looked at by its own names, and read again as a run has read it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.robot_sets import JOINTS, Logs, write_lerobot, write_robomimic, write_zarr
from helpers.runs import small, small_run

from tailo_pl import cli
from tailo_pl.data.formats import write_file
from tailo_pl.data.trajectories import Recording, Trajectories


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def tailo(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


class TestInspect:
    def test_its_own_names_and_every_hole(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        logs = Logs()
        logs.states[[3, 20], 1] = np.nan
        logs.states[30, 1] = np.inf
        logs.states[:, 2] = logs.states[:, 0]
        write_lerobot(folder / "set", logs)
        code, out, err = tailo(capsys, "data", "inspect", "set")
        assert code == 0, err
        for said in (*JOINTS, "the same as shoulder_pan.pos", "2 NaN, 1 infinite, first in row 3 (counted from 0)"):
            assert said in out
        assert "shoulder_lift.pos: 3 without a finite number (row 3 (counted from 0) of data/chunk-000/file" in out
        assert "source.drop_nan=true leaves out 3 steps with one" in out
        numbers = json.loads(tailo(capsys, "data", "inspect", "set", "--json")[1])
        assert numbers["state_names"] == JOINTS and numbers["same_states"] == [[0, 2]]

    def test_gaps_and_rates(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "a.csv").write_text("time;q0;stage\n0,0;1,5;up\n0,1;;up\n0,5;1,25;down\n0,6;1;down\n0,7;2;down\n")
        (folder / "b.csv").write_text("time;q0;stage\n0;1;up\n1;2;up\n2;3;up\n")
        code, out, err = tailo(capsys, "data", "inspect", "a.csv", "b.csv", "--column", "observations=*")
        assert code == 0, err
        assert "a.csv and 1 more: left out: time, stage (no numbers)" in err
        assert "a.csv: q0: 1 without a finite number (line 3)" in out
        assert "a.csv: time: 1 gaps or steps back, the first from 0.1 to 0.5, where 0.1 apart is usual" in out
        assert "sampling rates differ: b has 1 steps per unit of time, a 10" in out
        assert "as TS: 2 trajectories of 8 states of 1 number" in out and "as TA: refused, no actions" in out

    def test_other_layouts(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_robomimic(folder / "r.hdf5", Logs())
        write_zarr(folder / "z.zarr", Logs())
        code, out, err = tailo(capsys, "data", "inspect", "r.hdf5", "--feature", "joints")
        assert code == 0 and "obs/joints[1]" in out and "as TA: 3 trajectories of 37 steps" in out, err
        assert "state[2]" in tailo(capsys, "data", "inspect", "z.zarr")[1]
        code, _, err = tailo(capsys, "data", "inspect", "r.hdf5")
        assert code == 2 and "choose with --feature NAME among agentview_image, joints, object" in err

    def test_mistakes_name_options_that_there_are(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "a.csv").write_text("q0,q1\n1,2\n")
        code, _, err = tailo(capsys, "data", "inspect", "a.csv")
        assert code == 2 and "or --column observations=NAME" in err and "source." not in err
        code, _, err = tailo(capsys, "data", "inspect", "a.pkl")
        assert code == 2 and ".pkl is not read" in err


def test_a_run_remembers_how_its_data_was_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns of files that nobody would guess, and features of a data set: named once, in training."""
    logs = Logs(lengths=[20, 30, 25, 25])

    def table(path: Path, states: np.ndarray, actions: np.ndarray | None, episode: np.ndarray | None) -> None:
        columns = {f"joint_{n}": states[:, n] for n in range(3)}
        columns |= {} if actions is None else {f"torque_{n}": actions[:, n] for n in range(2)}
        columns |= {} if episode is None else {"trial": episode}
        lines = [";".join(columns)] + [";".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join(lines) + "\n")

    table(folder / "expert.csv", logs.states[:20], None, None)
    table(folder / "logs.csv", logs.states, logs.actions, logs.episode)
    table(folder / "new.csv", logs.states[:7], None, None)
    named = ["source.columns.observations=joint_*", "source.columns.actions=torque_*", "source.columns.episode=trial"]
    where = ["source=files", f"source.ts={folder}/expert.csv", f"source.ta={folder}/logs.csv"]
    ts = ["source.ts_columns.episode=null", "source.ts_columns.actions=null", "preset.held_out.trajectories=1"]
    run = small_run(folder / "runs", *where, *named, *ts)
    code, _, err = tailo(capsys, "score", "logs.csv", "--run", str(run), "--out", "scores.npz")
    assert code == 0, err
    with np.load("scores.npz") as scores:
        assert scores["episode"].tolist() == logs.episode.tolist() and np.isfinite(scores["score"]).all()
    code, _, err = tailo(capsys, "score", "new.csv", "--run", str(run), "--out", "new.npz", "--column", "episode=null")
    assert code == 0, err
    with np.load("new.npz") as scores:
        assert len(scores["score"]) == 7


def test_plain_files_as_the_readme_prints_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`source.ts=expert.csv source.ta='logs/*.parquet'`: a table with times and notes, no episodes; logs beside it."""
    logs = Logs(lengths=[20, 30, 25, 25])
    lines = [f"{step / 10},{','.join(map(str, state))},ok" for step, state in enumerate(logs.states[:20].tolist())]
    (folder / "expert.csv").write_text("timestamp,obs_0,obs_1,obs_2,note\n" + "\n".join(lines) + "\n")
    (folder / "logs").mkdir()
    for number in range(2):
        rows = logs.episode // 2 == number
        starts = np.flatnonzero(np.diff(logs.episode[rows], prepend=-1))
        part = Recording(logs.states[rows], starts, logs.actions[rows])
        write_file(folder / f"logs/{number}.parquet", Trajectories.of(part))
    overrides = small(20, f"runs={folder}/runs", "name=a", "preset.held_out.trajectories=1")
    code, _, err = tailo(
        capsys, "train", "source=files", "source.ts=expert.csv", "source.ta=logs/*.parquet", *overrides
    )
    assert code == 0, err
    assert "expert.csv: left out: timestamp, note (no numbers)" in err
    assert "TS 20 states in 1" in err and "TA 100 steps in 4" in err
