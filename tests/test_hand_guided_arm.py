"""The walk-through of the documentation, from recording to an exported policy, with little data."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tailo_pl import load_policy
from tailo_pl.data.formats.lerobot import LeRobotSet

EXAMPLE = Path(__file__).parents[1] / "examples/hand_guided_arm.py"


@pytest.mark.slow
def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("hand_guided_arm", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    bc, tailo = example.main(tmp_path / "arm", small=True)
    out = capsys.readouterr().out
    assert tailo >= bc
    assert f"success of cloning all logs: {bc:.0%}" in out and "q2.pos" in out
    assert f"success with the hand-guided states (TAILO): {tailo:.0%}" in out
    run = tmp_path / "arm/runs/none/given/tailo/tailo"
    assert load_policy(run / "export/policy.onnx").action_dim == 3
    kept = LeRobotSet(tmp_path / "arm/kept")
    assert len(kept.episodes.number) == 4 and set(kept.tasks) == {"reach"}
