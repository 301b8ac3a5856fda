"""A GPU that is asked for and cannot be there is refused before torch is imported, and only then."""

from __future__ import annotations

import ctypes
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from tailo_pl.errors import UserError
from tailo_pl.training import devices


def machine(monkeypatch: pytest.MonkeyPatch, folder: Path, build: str, driver: bool) -> None:
    """A build of torch, as its version.py describes it, on a Linux machine with or without NVIDIA's driver."""

    def load(name: str) -> Any:
        assert name == "libcuda.so.1"
        if not driver:
            raise OSError("cannot open shared object file")
        return ctypes.CDLL(None)

    (folder / "version.py").write_text(build)
    spec = ModuleSpec("torch", None, origin=str(folder / "__init__.py"))
    monkeypatch.setattr(devices, "find_spec", lambda name: spec)
    monkeypatch.setattr(devices, "ctypes", type("Libraries", (), {"CDLL": staticmethod(load)}))
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.mark.parametrize(
    ("build", "driver", "refused"),
    [
        ("cuda = None\nhip = None\n", True, True),
        ("cuda = '12.8'\nhip = None\n", False, True),
        ("cuda = '12.8'\nhip = None\n", True, False),
        ("cuda = None\nhip = '6.4'\n", False, False),
    ],
    ids=["for CPUs", "no driver", "NVIDIA", "AMD"],
)
def test_what_can_be_told_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, build: str, driver: bool, refused: bool
) -> None:
    machine(monkeypatch, tmp_path, build, driver)
    if refused:
        with pytest.raises(UserError, match=r"^trainer\.accelerator: 'gpu' given, but PyTorch finds no GPU here"):
            devices.require_device("gpu", quick=True)
    else:
        devices.require_device("gpu", quick=True)
    devices.require_device("auto", quick=True)


def test_torch_itself_is_asked_in_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, tmp_path, "cuda = '12.8'\nhip = None\n", driver=True)
    monkeypatch.setattr(devices, "_finds_gpu", lambda accelerator: False)  # a driver without a device
    with pytest.raises(UserError, match="finds no GPU"):
        devices.require_device("cuda")
