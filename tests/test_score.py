"""One real training: a policy that scores, and behaviour cloning that cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from tailo_pl import run
from tailo_pl.experiment import read_experiment

SHORT = [
    "env=pointmaze",
    "preset.pretrain_steps=300",
    "preset.formal_steps=1000",
    "preset.policy_steps=2500",
    "preset.rollout.every_n_steps=0",
    "preset.rollout.episodes=5",
    "trainer=cpu",
]


@pytest.mark.slow
def test_tailo_goes_left_and_behaviour_cloning_does_not_know_where_to_go(tmp_path: Path) -> None:
    scores = {}
    for method in ("tailo", "bc"):
        overrides = [*SHORT, f"method={method}", f"runs={tmp_path}", "name=short"]
        with initialize_config_module("tailo_pl.configs", version_base="1.3"):
            config: Any = OmegaConf.to_container(compose("train", overrides=overrides), resolve=True)
        run_dir = run.prepare(read_experiment(config))
        run.execute(run_dir)
        _, evaluation = run.evaluate(run_dir, 20)
        scores[method] = evaluation.score
    assert scores["tailo"] >= 90
    assert scores["bc"] <= 45
