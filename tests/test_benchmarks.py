"""What the benchmarks compare trains the same stage both ways, and all of them find what they import. How long it takes
is not tested here."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py")))
def test_a_benchmark_finds_what_it_imports(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(f"{ROOT / 'benchmarks'}")
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("method", ["tailo", "lobsdice", "oril", "otr", "recoil", "mopo"])
def test_a_plain_loop_of_a_method_ends_where_lightning_does(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(f"{ROOT / 'benchmarks'}")
    import method_steps  # not before its folder is on the path

    experiment = method_steps.experiment_of(method)
    ends = []
    for fit in (method_steps.fitted, method_steps.looped):
        built = method_steps.stage(experiment, tmp_path, 3)
        fit(built, 3)
        ends.append([parameter.detach().clone() for parameter in built.model.parameters()])
    for fitted, looped in zip(*ends, strict=True):
        torch.testing.assert_close(looped, fitted, rtol=1e-5, atol=1e-7)
