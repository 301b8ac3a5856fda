"""Which arithmetic a run takes by default, and that it stays with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml

from tailo_pl import run
from tailo_pl.comparison import composed
from tailo_pl.models import PUDiscriminator
from tailo_pl.precision import precision_for


def machine(monkeypatch: pytest.MonkeyPatch, *, cpu: tuple[str, ...] = (), gpu: int | None = None) -> None:
    """A machine whose CPU has these features and whose GPU, if any, this capability."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(cpu, True))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (gpu, 0))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.parametrize(
    ("cpu", "gpu", "accelerator", "expected"),
    [
        (("avx2",), None, "auto", "32-true"),
        (("avx2", "avx512_bf16"), None, "auto", "bf16-mixed"),
        (("amx_bf16",), None, "cpu", "bf16-mixed"),
        ((), 9, "auto", "bf16-mixed"),
        ((), 8, "gpu", "bf16-mixed"),
        ((), 7, "cuda", "16-mixed"),
        (("avx2",), 9, "cpu", "32-true"),
    ],
)
def test_what_the_hardware_has(
    monkeypatch: pytest.MonkeyPatch, cpu: tuple[str, ...], gpu: int | None, accelerator: str, expected: str
) -> None:
    machine(monkeypatch, cpu=cpu, gpu=gpu)
    assert precision_for(accelerator) == expected


def test_the_choice_is_written_down_and_kept_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, cpu=("avx2",))
    folder = run.prepare(composed(["method=bc", "name=a", f"runs={tmp_path}"]))
    assert yaml.safe_load((folder / "config.yaml").read_text())["trainer"]["precision"] == "32-true"
    machine(monkeypatch, cpu=("avx512_bf16",))  # resumed on another machine
    assert run.load_run(folder).config["trainer"]["precision"] == "32-true"
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
