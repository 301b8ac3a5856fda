"""A run that was stopped at any moment ends as if it had not been: weights, optimiser, metrics."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.small_runs import RUN, SMALL, STAGES, finish, start


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    code, out = finish(start(folder, *SMALL))
    assert code == 0, out
    return folder


def same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)


def assert_same_run(whole: Path, other: Path) -> None:
    for stage in STAGES:
        one, two = (
            torch.load(folder / RUN / stage / "checkpoints/last.ckpt", weights_only=True) for folder in (whole, other)
        )
        for key in ("state_dict", "optimizer_states", "lr_schedulers", "global_step"):
            assert same(one[key], two[key]), (stage, key)
        assert (whole / RUN / stage / "metrics.csv").read_text() == (other / RUN / stage / "metrics.csv").read_text()
    timeless = [json.loads((folder / RUN / "summary.json").read_text()) for folder in (whole, other)]
    for summary in timeless:
        for stage in summary["stages"]:
            del stage["seconds"], stage["cpu_seconds"]
    assert timeless[0] == timeless[1]


# What a killed process leaves at the named moments, each made from an undisturbed run.
def _cut(stage: str, *names: str) -> Any:
    def damage(run: Path) -> None:
        for later in STAGES[STAGES.index(stage) + 1 :]:
            shutil.rmtree(run / later)
        for name in ("summary.json", *(f"{stage}/{name}" for name in names)):
            (run / name).unlink()

    return damage  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_cut("formal", "stage.json", "scores.npy", "checkpoints/last.ckpt"), id="before-first-checkpoint"),
        pytest.param(_cut("formal", "stage.json", "scores.npy"), id="trained-but-not-scored"),
        pytest.param(_cut("formal", "stage.json"), id="scored-but-not-recorded"),
        pytest.param(_cut("formal"), id="between-stages"),
        pytest.param(_cut("policy", "stage.json"), id="last-stage-not-recorded"),
        pytest.param(_cut("policy"), id="summary-missing"),
    ],
)
def test_resumes_from_what_each_moment_leaves(whole: Path, tmp_path: Path, damage: Any) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "runs/.stages")  # or the finished stages would simply be reused
    damage(tmp_path / RUN)
    (tmp_path / RUN / "policy").mkdir(exist_ok=True)
    (tmp_path / RUN / "policy/.last.ckpt.123").write_bytes(b"half a checkpoint")  # written but not renamed
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert code == 0, out
    assert_same_run(whole, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_moments(whole: Path, tmp_path: Path, seed: int) -> None:
    """Five kills each, from start-up and data reading to the last rollout."""
    rng = random.Random(seed)
    process = start(tmp_path, *SMALL)
    for _ in range(5):
        try:
            process.wait(rng.uniform(2.0, 10.0))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        if (tmp_path / RUN / "summary.json").exists():  # killed when it had nothing left to do but end
            break
        process = start(tmp_path, *([f"resume={RUN}"] if (tmp_path / RUN / "config.yaml").exists() else SMALL))
    else:
        code, out = finish(process)
        assert code == 0, out
    assert_same_run(whole, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves(whole: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, *SMALL, "preset.policy_steps=100000", "preset.rollout.every_n_steps=0")
    first = tmp_path / RUN / "policy/checkpoints/last.ckpt"
    deadline = time.monotonic() + 120
    while not first.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    before = torch.load(first, weights_only=True)["global_step"]
    asked = time.monotonic()
    process.send_signal(number)
    code, out = finish(process)
    assert time.monotonic() - asked < 10
    assert code == 130
    assert out.strip().splitlines()[-1] == f"tailo: interrupted; `tailo train resume={RUN}` goes on"
    assert torch.load(first, weights_only=True)["global_step"] > before


def test_more_steps(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert code == 2
    assert "this run is finished" in out and "method.stages.policy.max_steps=250" in out
    code, out = finish(start(tmp_path, f"resume={RUN}", "method.stages.policy.max_steps=300"))
    assert code == 0, out
    summary = json.loads((tmp_path / RUN / "summary.json").read_text())
    assert [stage["steps"] for stage in summary["stages"]] == [40, 40, 300]
    assert [evaluation["step"] for evaluation in summary["evaluations"]] == [100, 200, 250, 300]
    for override, message in (
        ("method.stages.policy.max_steps=10", "expected at least 300"),
        ("method.alpha=2", "expected method.stages.STAGE.max_steps=N"),
    ):
        code, out = finish(start(tmp_path, f"resume={RUN}", override))
        assert code == 2 and message in out and "Traceback" not in out


def test_a_stage_that_stopped_early_stays_stopped(tmp_path: Path) -> None:
    """Killed between its last checkpoint and its record, it must not train on."""
    early = (*SMALL, "preset.held_out.patience=1", "preset.held_out.min_delta=0.9", "preset.rollout.every_n_steps=0")
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    code, out = finish(start(one, *early))
    assert code == 0, out
    assert json.loads((one / RUN / "summary.json").read_text())["stages"][-1]["steps"] < 250
    shutil.copytree(one, two)
    shutil.rmtree(two / "runs/.stages")
    _cut("policy", "stage.json")(two / RUN)
    code, out = finish(start(two, f"resume={RUN}"))
    assert code == 0, out
    assert_same_run(one, two)


def test_what_cannot_be_resumed(whole: Path, tmp_path: Path) -> None:
    code, out = finish(start(tmp_path, "resume=nothing"))
    assert (code, out) == (2, "tailo: nothing/config.yaml: cannot be read (No such file or directory), expected the folder of a run\n")  # fmt: skip  # noqa: E501

    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "runs/.stages")
    _cut("policy", "stage.json")(tmp_path / RUN)
    checkpoint = tmp_path / RUN / "policy/checkpoints/last.ckpt"
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: len(content) // 2])
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert code == 2
    assert "last.ckpt: cannot be read" in out and "Traceback" not in out
    assert checkpoint.read_bytes() == content[: len(content) // 2]

    data = json.loads((tmp_path / RUN / "data.json").read_text())
    (tmp_path / RUN / "data.json").write_text(json.dumps({**data, "fingerprint": "0123456789abcdef"}))
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert code == 2
    assert f"{RUN}: its data has changed" in out

    checkpoint.write_bytes(content)
    torch.save({**torch.load(checkpoint, weights_only=True), "tailo_schema": 99}, checkpoint)
    (tmp_path / RUN / "data.json").write_text(json.dumps(data))
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert code == 2
    assert out.strip().splitlines()[-1].endswith("checkpoint: schema 99 found, this version reads 2")
