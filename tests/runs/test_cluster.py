"""Several processes and several jobs: signals, sweeps with other launchers, SLURM's variables and its requeueing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers.processes import processes_of
from helpers.small_runs import RUN, SMALL, finish, start

BRIEF = (
    *SMALL,
    "method=bc",
    "preset.policy_steps=20",
    "preset.rollout.every_n_steps=0",
    "preset.held_out.trajectories=0",
)
TWO = ("trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu")


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not path.exists():
        assert process.poll() is None, finish(process)[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_a_signal_ends_all_processes_of_a_run_and_the_checkpoint_stands(tmp_path: Path) -> None:
    long = (*SMALL, *TWO, f"runs={tmp_path}/runs", "preset.policy_steps=1000000", "preset.rollout.every_n_steps=0")
    process = start(tmp_path, *long)
    checkpoint = tmp_path / RUN / "policy/checkpoints/last.ckpt"
    wait_for(checkpoint, process)
    assert len(processes_of(f"run {tmp_path}/{RUN}")) >= 2
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code, out = finish(process)
    assert time.monotonic() - asked < 60
    assert code == 130
    assert out.strip().splitlines()[-1] == f"tailo: interrupted; `tailo train resume={tmp_path}/{RUN}` goes on"
    assert processes_of(f"run {tmp_path}/{RUN}") == []
    assert checkpoint.exists()


@pytest.mark.slow
def test_a_sweep_of_runs_with_two_processes(tmp_path: Path) -> None:
    code, out = finish(start(tmp_path, "-m", *BRIEF, *TWO, "name=null", "seed=0,1"))
    assert code == 0, out
    summaries = sorted((tmp_path / "runs/pointmaze/examples/bc").glob("*/summary.json"))
    assert [json.loads(path.read_text())["seed"] for path in summaries] == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_one_failed_job_does_not_stop_the_others(tmp_path: Path, launcher: str) -> None:
    jobs = ("-m", *BRIEF, "name=null", "seed=0,-1,1", f"hydra/launcher={launcher}")
    code, out = finish(start(tmp_path, *jobs, *(["hydra.launcher.n_jobs=2"] if launcher == "joblib" else [])))
    assert code == 2
    last = out.strip().splitlines()[-1]
    assert last.startswith("tailo: job 1 (") and "seed=-1" in last and "seed: -1 given" in last
    summaries = sorted((tmp_path / "runs/pointmaze/examples/bc").glob("*/summary.json"))
    assert sorted(json.loads(path.read_text())["seed"] for path in summaries) == [0, 1]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def slurm(task: int, tasks: int, job: int) -> dict[str, str]:
    """The variables srun sets for a process."""
    return {
        "SLURM_JOB_ID": str(job),
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS": str(tasks),
        "SLURM_NTASKS_PER_NODE": str(tasks),
        "SLURM_NNODES": "1",
        "SLURM_NODELIST": "127.0.0.1",
        "SLURM_PROCID": str(task),
        "SLURM_LOCALID": str(task),
        "SLURM_NODEID": "0",
    }


@pytest.mark.slow
def test_processes_of_srun_find_each_other(tmp_path: Path) -> None:
    code, out = finish(start(tmp_path, *BRIEF, *TWO, command="prepare"))
    assert code == 0, out
    run = "runs/pointmaze/examples/bc/a"
    job = 1000 + os.getpid() % 9000  # decides the port
    tasks = [start(tmp_path, run, command="run", **slurm(task, 2, job)) for task in range(2)]
    ended = [finish(task) for task in tasks]
    assert [code for code, _ in ended] == [0, 0], ended
    assert json.loads((tmp_path / run / "summary.json").read_text())["stages"][0]["steps"] == 20


@pytest.mark.slow
def test_slurms_signal_requeues_the_job_and_the_next_one_goes_on(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "scontrol").write_text(f'#!/bin/sh\necho "$@" > {tools}/said\n')
    (tools / "scontrol").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    long = (*SMALL, "preset.policy_steps=2000", "preset.rollout.every_n_steps=0")
    code, out = finish(start(tmp_path, *long, command="prepare"))
    assert code == 0, out
    task = start(tmp_path, str(RUN), command="run", **slurm(0, 1, 4711), PATH=path)
    wait_for(tmp_path / RUN / "policy/checkpoints/last.ckpt", task)
    task.send_signal(signal.SIGUSR1)
    wait_for(tools / "said", task)
    task.send_signal(signal.SIGTERM)  # what SLURM does to a requeued job
    code, out = finish(task)
    assert code != 0 and "Traceback" not in out
    assert (tools / "said").read_text() == "requeue 4711\n"
    code, out = finish(start(tmp_path, str(RUN), command="run", **slurm(0, 1, 4711), PATH=path))
    assert code == 0, out
    assert json.loads((tmp_path / RUN / "summary.json").read_text())["stages"][-1]["steps"] == 2000
