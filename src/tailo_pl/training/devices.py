"""Whether the device that is asked for is there."""

from __future__ import annotations

import ctypes
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from tailo_pl.errors import UserError


def require_device(accelerator: str, *, quick: bool = False) -> None:
    """Raise `UserError` where a GPU is asked for and there is none. Training asks; what only reads a run does not.

    Args:
        accelerator: Lightning's name: `auto`, `cpu`, `gpu`, `cuda`, ...
        quick: only as far as it can be told without importing torch, which takes seconds.
    """
    if accelerator in ("gpu", "cuda") and (_rules_gpus_out() or not (quick or _finds_gpu(accelerator))):
        raise UserError(
            f"trainer.accelerator: {accelerator!r} given, but PyTorch finds no GPU here; "
            "trainer=default takes the CPU where there is none"
        )


def _finds_gpu(accelerator: str) -> bool:
    import torch

    return torch.cuda.is_available() or (accelerator == "gpu" and torch.backends.mps.is_available())


def _rules_gpus_out() -> bool:
    """Whether this build of torch can find no GPU here: it is one for CPUs, or NVIDIA's driver is not there."""
    torch = find_spec("torch")
    if sys.platform != "linux" or torch is None or torch.origin is None:  # Apple's GPUs need no build of their own
        return False
    build = runpy.run_path(str(Path(torch.origin).with_name("version.py")))
    if build.get("hip") is not None:  # AMD's have another driver
        return False
    try:
        return build.get("cuda") is None or not ctypes.CDLL("libcuda.so.1")
    except OSError:
        return True
