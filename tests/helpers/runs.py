"""Small real runs, trained in this process."""

from __future__ import annotations

from pathlib import Path

from tailo_pl import run
from tailo_pl.comparison import composed

SMALL = (
    "preset.pretrain_steps=20",
    "preset.formal_steps=20",
    "preset.policy_steps=20",
    "preset.rollout.episodes=1",
    "preset.rollout.every_n_steps=0",
    "trainer=cpu",
)


def small_run(folder: Path, *overrides: str) -> Path:
    """A finished run of a few steps per stage; `folder` is where runs are written."""
    run_dir = run.prepare(composed([*SMALL, f"runs={folder}", "name=small", *overrides]))
    run.execute(run_dir)
    return run_dir
