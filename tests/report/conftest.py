"""Real small runs to report on: three seeds of TAILO and one of behaviour cloning."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.runs import small

from tailo_pl.config.compose import composed
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare

SMALL = small(
    20,
    "env=pointmaze",
    "discriminator_seed=0",  # the seeds share their discriminators
    "preset.formal_steps=40",
    "preset.policy_steps=60",
    "preset.rollout.every_n_steps=20",
    "preset.rollout.episodes=2",
    "preset.held_out.every_n_steps=20",
    "preset.discriminator_batch=64",
    "preset.policy_batch=64",
    "trainer.log_every_n_steps=5",
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, tailo_home: Path) -> list[Path]:
    """Folders of finished runs; nobody may change what is in them."""
    root = tmp_path_factory.mktemp("report") / "runs"
    made = []
    for method, seed in (("tailo", 0), ("tailo", 1), ("tailo", 2), ("bc", 0)):
        overrides = [*SMALL, f"method={method}", f"seed={seed}", f"runs={root}", f"name=s{seed}"]
        folder = prepare(composed(overrides))
        execute(folder)
        made.append(folder)
    return made
