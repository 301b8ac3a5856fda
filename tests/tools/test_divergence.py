"""The figure of V where steps are missing: trained, drawn, and gone on with."""

from __future__ import annotations

import json
import shutil
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
    arguments = ["--every", "3", "--batches", "8", "16", "--steps", "6", "--out", str(tmp_path / "figure.svg")]
    arguments += ["--results", str(tmp_path / "known.json"), *own]
    divergence.main(arguments)
    figure = (tmp_path / "figure.svg").read_text()
    assert "batch 16" in figure and "one step in 3 missing" in figure
    for batch in (8, 16):
        run_dir = tmp_path / f"runs/walker2d/incomplete_ta/smodice/every3-batch{batch}"
        found = divergence.value_ranges(run_dir)
        assert found[:, 0].tolist() == [1, 3, 5] and (found[:, 1] < found[:, 2]).all()
    weights = divergence.tailo_weights(3, own)
    assert weights is not None and weights[0] == 1 and (np.diff(weights) <= 0).all()

    known = json.loads((tmp_path / "known.json").read_text())
    assert known["V, one step in 3 missing, batch 16"]["steps"] == [1, 3, 5]
    shutil.rmtree(tmp_path / "runs")  # what was measured is known without its runs
    divergence.main([*arguments[: -len(own)], "--draw", *own])
    assert (tmp_path / "figure.svg").read_text() == figure
    assert json.loads((tmp_path / "known.json").read_text()) == known


def test_a_thinned_curve_keeps_its_peaks() -> None:
    steps = np.arange(5000.0)
    values = np.where(steps == 1234, 99.0, 1.0)
    kept = divergence.thinned(np.stack([steps, -values, values], axis=1))
    assert len(kept) == divergence.POINTS and kept[-1, 0] == 4999
    assert kept[:, 1].min() == -99 and kept[:, 2].max() == 99
