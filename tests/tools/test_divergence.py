"""The figure of V where steps are missing: trained, drawn, and gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.runs import small

from tailo_pl.data.sources import locomotion
from tools import divergence


def test_values_are_trained_once_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locomotion, "EXPERT_EPISODES", 1)
    monkeypatch.setattr(locomotion, "RANDOM_STEPS", 300)
    monkeypatch.chdir(tmp_path)
    kept = [one for one in small(6) if not one.startswith("preset.baselines.steps=")]
    own = [*kept, f"runs={tmp_path / 'runs'}", "setting.experts=1", "trainer.log_every_n_steps=2"]
    arguments = ["--every", "3", "--batches", "8", "16", "--steps", "6", "--out", str(tmp_path / "figure.svg"), *own]
    divergence.main(arguments)
    figure = (tmp_path / "figure.svg").read_text()
    assert "batch 16" in figure and "one step in 3 missing" in figure
    for batch in (8, 16):
        run_dir = tmp_path / f"runs/walker2d/incomplete_ta/smodice/every3-batch{batch}"
        found = divergence.value_ranges(run_dir)
        assert found[:, 0].tolist() == [1, 3, 5] and (found[:, 1] < found[:, 2]).all()
    weights = divergence.tailo_weights(3, own)
    assert weights is not None and weights[0] == 1 and (np.diff(weights) <= 0).all()

    divergence.main([*arguments[: -len(own)], "--draw", *own])
    assert (tmp_path / "figure.svg").read_text() == figure
