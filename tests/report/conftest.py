"""Real small runs to report on: three seeds of TAILO and one of behaviour cloning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from tailo_pl import run
from tailo_pl.experiment import read_experiment

SMALL = [
    "env=pointmaze",
    "discriminator_seed=0",  # the seeds share their discriminators
    "preset.pretrain_steps=20",
    "preset.formal_steps=40",
    "preset.policy_steps=60",
    "preset.rollout.every_n_steps=20",
    "preset.rollout.episodes=2",
    "preset.hold_out.every_n_steps=20",
    "preset.discriminator_batch=64",
    "preset.policy_batch=64",
    "trainer=cpu",
    "trainer.log_every_n_steps=5",
]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, tailo_home: Path) -> list[Path]:
    """Folders of finished runs; nobody may change what is in them."""
    root = tmp_path_factory.mktemp("report") / "runs"
    made = []
    for method, seed in (("tailo", 0), ("tailo", 1), ("tailo", 2), ("bc", 0)):
        overrides = [*SMALL, f"method={method}", f"seed={seed}", f"runs={root}", f"name=s{seed}"]
        with initialize_config_module("tailo_pl.configs", version_base="1.3"):
            config: Any = OmegaConf.to_container(compose("train", overrides=overrides), resolve=True)
        folder = run.prepare(read_experiment(config))
        run.execute(folder)
        made.append(folder)
    return made
