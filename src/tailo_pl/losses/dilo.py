"""DILO: the value of a pair of states, from which pair the expert would be in next (Sikchi et al. 2024)."""

from __future__ import annotations

import torch
from torch import Tensor


def bounded_chi2_conjugate(y: Tensor) -> Tensor:
    """f*(y) = w*y - (w - 1)^2 with w = max(y/2 + 1, 0): of f = (x - 1)^2 on x >= 0. Constant -1 below y = -2."""
    weights = torch.relu(y / 2 + 1)
    return weights * y - (weights - 1).square()


def residual(next_values: Tensor, values: Tensor, discount: float) -> Tensor:
    """y = g*V(s', s'') - V(s, s').

    No mask: a step that ends its episode leads to no further one, so no triple begins with it. With a mask for a step
    from s' that does, a fall would be worth 0, more than any pair that is not the expert's.
    """
    return discount * next_values - values


def mixture_terms(expert_y: Tensor, y: Tensor, share: float) -> Tensor:
    """b*f*(y_TS) + (1 - b)*f*(y_TA) - (1 - b)*y_TA of each row, b the expert's share of the mixture."""
    return share * bounded_chi2_conjugate(expert_y) + (1 - share) * (bounded_chi2_conjugate(y) - y)


def orthogonal_sum(forward: list[Tensor], backward: list[Tensor], strength: float) -> list[Tensor]:
    """forward + strength*(backward - its projection on forward), taken over all tensors as one vector.

    Args:
        forward: gradient through V(s, s').
        backward: gradient through V(s', s'').
        strength: of what is left of the second.
    """
    product = sum(((one * other).sum() for one, other in zip(forward, backward, strict=True)), torch.zeros(()))
    square = sum((one.square().sum() for one in forward), torch.zeros(()))
    along = product / square.clamp(min=1e-10)
    return [one + strength * (other - along * one) for one, other in zip(forward, backward, strict=True)]
