"""Implicit Q-learning: values that look at recorded actions alone."""

from __future__ import annotations

import torch
from torch import Tensor


def expectile_terms(differences: Tensor, expectile: float) -> Tensor:
    """|tau - 1(u < 0)| * u^2 with u = Q'(s, a) - V(s), of each row."""
    return torch.where(differences < 0, 1 - expectile, expectile) * differences.square()


def advantage_weights(advantages: Tensor, temperature: float, limit: float) -> Tensor:
    """exp(temperature * A), at most `limit`."""
    return torch.exp(temperature * advantages).clamp(max=limit)
