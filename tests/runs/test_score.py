"""One real training: a policy that scores, and behaviour cloning that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.runs import small

from tailo_pl.config.compose import composed
from tailo_pl.runs.evaluate import evaluate
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare

SHORT = small(300, "env=pointmaze", "preset.formal_steps=1000", "preset.policy_steps=2500", "preset.rollout.episodes=5")


@pytest.mark.slow
def test_tailo_goes_left_and_behaviour_cloning_does_not_know_where_to_go(tmp_path: Path) -> None:
    scores = {}
    for method in ("tailo", "bc"):
        overrides = [*SHORT, f"method={method}", f"runs={tmp_path}", "name=short"]
        run_dir = prepare(composed(overrides))
        execute(run_dir)
        _, evaluation = evaluate(run_dir, 20)
        scores[method] = evaluation.score
    assert scores["tailo"] >= 90
    assert scores["bc"] <= 45
