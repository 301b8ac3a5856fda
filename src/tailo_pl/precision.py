"""Which arithmetic a device is good at."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

AUTO = "auto"
log = logging.getLogger(__name__)


def precision_for(accelerator: str) -> str:
    """Lightning's name of the fastest precision that this machine has in hardware.

    bf16-mixed where a GPU (capability 8 and above) or the CPU (AVX512-BF16 or AMX) multiplies bfloat16; 16-mixed on
    older GPUs, which the project has had no machine to test; 32-true otherwise.

    Args:
        accelerator: Lightning's name: `auto`, `cpu`, `gpu`, `cuda`, ...
    """
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        if torch.cuda.get_device_capability()[0] >= 8:
            return "bf16-mixed"
        log.warning("precision: 16-mixed chosen for this GPU, which is untested; trainer.precision=32-true is safe")
        return "16-mixed"
    if accelerator in ("auto", "cpu") and not torch.backends.mps.is_available():
        has: Mapping[str, Any] = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return "bf16-mixed" if has.get("avx512_bf16") or has.get("amx_bf16") else "32-true"
    return "32-true"
