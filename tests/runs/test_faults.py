"""What a machine does to a run: a full disk, a folder that may not be written, files that vanish, others at work."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.small_runs import RUN, SMALL, finish, start

TRAIN = (*SMALL, "preset.rollout.every_n_steps=0")


def mount(folder: Path, options: str) -> None:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "size=3m")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def one_line(out: str) -> str:
    """The complaint that ends the output; there is no traceback."""
    assert "Traceback" not in out, out
    return out.strip().splitlines()[-1]


def test_a_full_disk_and_then_a_read_only_one_keep_the_last_good_state(small_disk: Path) -> None:
    code, out = finish(start(small_disk, *TRAIN))
    assert code == 2
    line = one_line(out)
    assert line.startswith("tailo: ") and "No space left on device" in line, out
    stage = max((small_disk / RUN).glob("*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
    before = torch.load(stage, weights_only=True)["global_step"]
    assert before > 0
    assert not list((small_disk / RUN).rglob(".*.ckpt.*")), "half a checkpoint was left"

    mount(small_disk, "remount,ro")
    code, out = finish(start(small_disk, f"resume={RUN}"))
    assert code == 2
    assert "Read-only file system" in one_line(out)

    mount(small_disk, "remount,rw,size=64m")
    code, out = finish(start(small_disk, f"resume={RUN}"))
    assert code == 0, out
    assert (small_disk / RUN / "summary.json").exists()


def test_a_cache_without_room_is_one_line_and_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    mount(small_disk, "remount,size=1m")
    code, out = finish(start(tmp_path, *TRAIN, TAILO_HOME=str(small_disk)))
    assert code == 2
    assert "cannot write the data cache (No space left on device)" in one_line(out)
    assert list((small_disk / "data").iterdir()) == []
    assert not (tmp_path / "runs").exists()


def test_a_vanished_data_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(60, 3)), rng.uniform(-1, 1, size=(60, 2))
    np.savez(tmp_path / "ts.npz", observations=states[:20], episode=np.zeros(20))
    np.savez(tmp_path / "ta.npz", observations=states, actions=actions, episode=np.repeat(np.arange(6), 10))
    given = ("source=files", "source.ts=ts.npz", "source.ta=ta.npz", "method=bc", "name=a", "preset.policy_steps=5")
    code, out = finish(start(tmp_path, *given, "preset.held_out.trajectories=0"))
    assert code == 0, out
    (tmp_path / "ta.npz").unlink()
    more = ("resume=runs/none/given/bc/a", "method.stages.policy.max_steps=10")
    code, out = finish(start(tmp_path, *more))
    assert code == 2
    assert "ta.npz" in one_line(out)

    np.savez(tmp_path / "ta.npz", observations=states + 1, actions=actions, episode=np.repeat(np.arange(6), 10))
    code, out = finish(start(tmp_path, *more))
    assert code == 2
    assert "its data has changed" in one_line(out)


def test_two_processes_do_not_share_a_run(tmp_path: Path) -> None:
    first = start(tmp_path, *TRAIN, "preset.policy_steps=100000")
    checkpoint = tmp_path / RUN / "pretrain/checkpoints/last.ckpt"
    deadline = time.monotonic() + 240
    while not checkpoint.exists():
        assert first.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    code, out = finish(start(tmp_path, f"resume={RUN}"))
    assert (code, one_line(out)) == (2, f"tailo: {RUN}: another process is at work on it")
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)  # and the lock is free again
    finish(first)
    policy = tmp_path / RUN / "policy/checkpoints/last.ckpt"
    policy.unlink(missing_ok=True)
    second = start(tmp_path, f"resume={RUN}")
    while not policy.exists():
        assert second.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    second.send_signal(signal.SIGKILL)
    finish(second)
