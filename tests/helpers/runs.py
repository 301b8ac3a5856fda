"""Small real runs, trained in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from tailo_pl import run
from tailo_pl.experiment import read_experiment

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
    with initialize_config_module("tailo_pl.configs", version_base="1.3"):
        composed = compose("train", overrides=[*SMALL, f"runs={folder}", "name=small", *overrides])
        config: Any = OmegaConf.to_container(composed, resolve=True)
    run_dir = run.prepare(read_experiment(config))
    run.execute(run_dir)
    return run_dir
