"""Which arithmetic a run takes by default, and that it stays with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from tailo_pl.config.compose import composed
from tailo_pl.models import PUDiscriminator
from tailo_pl.runs.folder import load_run, prepare
from tailo_pl.training.precision import precision_for


def machine(monkeypatch: pytest.MonkeyPatch, *, gpu: int | None = None) -> None:
    """A machine with a GPU of this capability, or none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (gpu, 0))


@pytest.mark.parametrize(
    ("gpu", "accelerator", "expected"),
    [
        (None, "auto", "32-true"),
        (None, "cpu", "32-true"),
        (9, "auto", "bf16-mixed"),
        (8, "gpu", "bf16-mixed"),
        (7, "cuda", "16-mixed"),
        (9, "cpu", "32-true"),
    ],
)
def test_what_the_hardware_has(
    monkeypatch: pytest.MonkeyPatch, gpu: int | None, accelerator: str, expected: str
) -> None:
    machine(monkeypatch, gpu=gpu)
    assert precision_for(accelerator) == expected


def test_the_choice_is_written_down_and_kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    folder = prepare(composed(["method=bc", "name=a", f"runs={tmp_path}"]))
    assert yaml.safe_load((folder / "config.yaml").read_text())["trainer"]["precision"] == "32-true"
    machine(monkeypatch, gpu=8)  # resumed on another machine
    assert load_run(folder).config["trainer"]["precision"] == "32-true"
    assert composed(["method=bc"]).config["trainer"]["precision"] == "bf16-mixed"
    assert composed(["method=oril"]).config["trainer"]["precision"] == "32-true"  # learns values
    assert composed(["method=bc", "trainer.precision=32-true"]).config["trainer"]["precision"] == "32-true"


def test_rows_are_mixed_and_the_penalty_is_not() -> None:
    """Under autocast states go through bfloat16; interpolates and the penalty's gradient stay float32."""
    torch.manual_seed(0)
    model = PUDiscriminator(3, hidden=(8, 6))
    points = torch.randn(20, 3)
    exact = model._input_gradients(points)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.network(points).dtype == torch.bfloat16
        mixed = model._input_gradients(points)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, exact)
