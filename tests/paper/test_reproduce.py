"""`tailo reproduce` at test size: killed at work it goes on, and stages that cells share are trained once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from helpers.processes import left_after, processes_of
from helpers.runs import small
from helpers.small_runs import finish, start

LIST = """
- figure: mine
  place: nowhere
  title: Two strengths
  seeds: 1
  panels:
    - {env: pointmaze, setting: few}   # of the reader's own folder: workers must find it too
  lines:
    - {name: tailo, method: tailo}
    - {method: tailo, method.alpha: 2.0}
    - {method: nothing_yet}
  claims:
    - {says: It does not matter, rule: robust, to: tailo, share: 0.5}
"""
BUDGET = small(20, "preset.policy_steps=400", "preset.held_out.trajectories=0", "checkpoint_every=20")
COMMAND = ("--cells", "mine.yaml", "--config-dir", "conf", "--episodes", "2", *BUDGET)
RUNS = Path("runs/pointmaze/few/tailo")


def reproduce(folder: Path, *more: str) -> subprocess.Popen[str]:
    return start(folder, *COMMAND, *more, command="reproduce")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A folder with a list of cells, and with configurations of the reader's own that they need."""
    (tmp_path / "mine.yaml").write_text(LIST)
    (tmp_path / "conf/setting").mkdir(parents=True)
    (tmp_path / "conf/setting/few.yaml").write_text("# Few examples.\ndefaults: [examples]\nname: few\ncount: 50\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_killed_at_work_it_goes_on_and_trains_what_cells_share_once(listed: Path) -> None:
    tmp_path = listed
    process = reproduce(tmp_path, "--jobs", "1")
    deadline = time.monotonic() + 200
    while not list(tmp_path.glob(f"{RUNS}/*/policy/checkpoints/last.ckpt")):
        assert process.poll() is None and time.monotonic() < deadline, finish(process)
        time.sleep(0.02)
    worker = f"tailo_pl.paper.worker {process.pid}"
    assert len(processes_of(worker)) == 1
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    assert left_after(15, worker) == []  # nobody goes on with what nobody waits for
    (begun,) = tmp_path.glob(f"{RUNS}/*/pretrain/stage.json")
    stamp = begun.stat().st_mtime_ns

    code, out = finish(reproduce(tmp_path, "--jobs", "1"))
    assert code == 0, out
    assert begun.stat().st_mtime_ns == stamp  # what was trained before is not trained again
    lines = (tmp_path / "results/cells/mine.jsonl").read_text().splitlines()
    assert ["method.alpha=2.0" in line for line in lines] == [True, False]
    record = json.loads(lines[0])
    assert record["episodes"] == 2 and record["stages"]["policy"][0] == 400 and record["versions"]["torch"]
    summaries = [json.loads(path.read_text()) for path in tmp_path.glob(f"{RUNS}/*/summary.json")]
    reused = sorted(tuple(stage["reused_from"] is not None for stage in one["stages"]) for one in summaries)
    assert reused == [(False, False, False), (True, True, False)]
    assert "no method nothing_yet" in out and (tmp_path / "figures/mine.svg").exists()
    assert re.search(r"It does not matter: (holds|does not hold) \(pointmaze few tailo", " ".join(out.split()))
    assert max(map(len, out.splitlines())) <= 80 and "\x1b" not in out
    assert re.search(r"^2 of 3, \d+ s left: pointmaze few tailo, seed 0: -?[\d.]+ in \d+ s$", out, re.MULTILINE)

    code, out = finish(reproduce(tmp_path, "--list"))
    assert code == 0 and "2 left" not in out and re.search(r"mine +nowhere +3 +2 +1", out)


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "at_once"), [("joblib", "n_jobs"), ("submitit_local", "tasks_per_node")])
def test_cells_are_jobs_of_a_launcher(listed: Path, launcher: str, at_once: str) -> None:
    wrong = "    - {method: tailo, method.alpha: -1.0}\n"  # refused by its job, which must not stop the others
    (listed / "mine.yaml").write_text(LIST.replace("    - {method: nothing_yet}\n", wrong))
    asked = ("--launcher", launcher, f"hydra.launcher.{at_once}=1", "preset.policy_steps=20")
    code, out = finish(reproduce(listed, *asked))
    assert code == 2 and out.strip().splitlines()[-1].startswith("tailo: method.alpha: -1.0 given"), out
    lines = (listed / "results/cells/mine.jsonl").read_text().splitlines()
    assert ["method.alpha=2.0" in line for line in lines] == [True, False]
    assert (listed / "figures/mine.svg").exists()
    assert not list(listed.glob("runs/.tailo-*"))

    code, out = finish(reproduce(listed, *asked))  # what has a result is no job
    assert code == 2 and len((listed / "results/cells/mine.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_d4rls_files_are_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path))
    rng = np.random.default_rng(0)
    for name, mean in (("expert", 1.0), ("random", 0.0)):
        ends = np.arange(600) % 100 == 99
        with h5py.File(tmp_path / f"hopper_{name}-v2.hdf5", "w") as file:
            file["observations"] = (mean + rng.standard_normal((600, 11))).astype(np.float32)
            file["actions"] = rng.uniform(-1, 1, (600, 3)).astype(np.float32)
            file["rewards"] = np.ones(600, dtype=np.float32)
            file["terminals"], file["timeouts"] = ends, np.zeros(600, dtype=bool)
    asked = ("--source", "d4rl", "--seeds", "1", "--only", "env=hopper", "--only", "method=bc", "--episodes", "1")
    code, out = finish(start(tmp_path, "standard", *asked, "setting.experts=3", *small(3), command="reproduce"))
    assert code == 0, out
    (kept,) = (tmp_path / "results/cells").glob("*.jsonl")
    record = json.loads(kept.read_text())
    assert (record["source"], record["env"], record["episodes"]) == ("d4rl", "hopper", 1)
    assert record["data"]["ts"] == [1, 100] and record["data"]["ta"] == [9, 900]
    assert "source=d4rl" in record["cell"] and (tmp_path / "figures/standard.svg").exists()
    assert record["numbers"]["effective_trajectories"] == 9  # cloned alike: lines say what runs said of themselves


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exmples"], "reproduce: 'exmples' given, expected one of standard"),
        (["standard", "method=bc"], "reproduce: 'method=bc' given, expected a figure, an option"),
        (["standard", "--only", "env=mars"], "--only: env=mars given, expected an override that a cell has"),
        (["standard", "--preset", "quick"], "preset: 'quick' given, expected one of fast, paper"),
        (["standard", "colour=red"], "colour: unknown key"),
        (["standard", "hydra.launcher.n_jobs=2"], "reproduce: 'hydra.launcher.n_jobs=2' given, expected it together"),
        (["standard", "--launcher", "joblib", "--hours", "1"], "reproduce: --launcher joblib given with --hours"),
        (["standard", "--launcher", "rocket"], "hydra/launcher: 'rocket' given, expected one of basic"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tailo_pl.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tailo: {said}")
    assert not list(tmp_path.iterdir())
