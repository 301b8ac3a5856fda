"""MARWIL: cloning weighted by how much better a return was than expected."""

from __future__ import annotations

import torch
from torch import Tensor


def marwil_log_weights(advantages: Tensor, mean_square: Tensor, beta: float) -> Tensor:
    """beta * A / c, c the root of the running mean square of A: the logarithm of what a step counts."""
    return beta * advantages / torch.sqrt(mean_square).clamp_min(1e-8)
