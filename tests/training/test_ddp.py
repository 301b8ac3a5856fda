"""Two processes do what one does: the same batches, the same weights after the first updates of every stage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.runs import small

SMALL = small(
    50, "preset.discriminator_batch=65", "preset.policy_batch=65", "preset.rollout.episodes=3"
)  # shares of 33 and 32


def train(folder: Path, *overrides: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "tailo_pl.cli", "train", "name=run", f"runs={folder}", *SMALL, *overrides],
        cwd=folder.parent,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "pointmaze/examples/tailo/run"


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 2])
def test_two_processes_end_where_one_does(tmp_path: Path, members: int) -> None:
    network = f"preset.network.members={members}"
    one = train(tmp_path / "one", network)
    two = train(tmp_path / "two", network, "trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu")
    for stage in ("pretrain", "formal", "policy"):
        ours, theirs = (
            torch.load(run / stage / "checkpoints/last.ckpt", weights_only=True)["state_dict"] for run in (one, two)
        )
        for name, value in ours.items():
            assert torch.allclose(value, theirs[name], atol=1e-5), (stage, name, (value - theirs[name]).abs().max())
    rows = (two / "policy" / "metrics.csv").read_text().splitlines()
    assert sum("rollout/score" in row for row in rows) == 1  # one header: one process writes
