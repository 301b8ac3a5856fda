"""Which arithmetic a device is good at."""

from __future__ import annotations

import logging

import torch

AUTO = "auto"
log = logging.getLogger(__name__)


def precision_for(accelerator: str) -> str:
    """Lightning's name of the precision that suits a device.

    bf16-mixed where a GPU (capability 8 and above) multiplies bfloat16; 16-mixed on older GPUs, which the project has
    had no machine to test; 32-true on everything else. That holds for CPUs with bfloat16 too: networks of this size
    gain little from it there, and what runs on different CPUs stays comparable.

    Args:
        accelerator: Lightning's name: `auto`, `cpu`, `gpu`, `cuda`, ...
    """
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        if torch.cuda.get_device_capability()[0] >= 8:
            return "bf16-mixed"
        log.warning("precision: 16-mixed chosen for this GPU, which is untested; trainer.precision=32-true is safe")
        return "16-mixed"
    return "32-true"
