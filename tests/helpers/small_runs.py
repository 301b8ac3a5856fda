"""Small runs of the command in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from helpers.runs import small

SMALL = small(
    40,
    "env=pointmaze",
    "name=a",
    "preset.policy_steps=250",
    "preset.held_out.every_n_steps=30",
    "preset.rollout.episodes=2",
    "preset.rollout.every_n_steps=100",
    "trainer.log_every_n_steps=10",
    "checkpoint_every=20",
)
RUN = Path("runs/pointmaze/examples/tailo/a")
STAGES = ("pretrain", "formal", "policy")


def start(folder: Path, *arguments: str, command: str = "train", **environment: str) -> subprocess.Popen[str]:
    """`tailo train ...` in a folder; output and errors come as one text."""
    return subprocess.Popen(
        [sys.executable, "-m", "tailo_pl.cli", command, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and what was said."""
    out, _ = process.communicate(timeout=300)
    return process.returncode, out
