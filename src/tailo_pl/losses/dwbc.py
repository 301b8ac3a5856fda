"""DWBC: a discriminator that also sees how likely the policy finds an action, and cloning weighted by it."""

from __future__ import annotations

import torch
from torch import Tensor


def scaled_log_densities(log_densities: Tensor) -> Tensor:
    """log pi clipped to [-20, 10] and scaled to [0, 1]; no gradient passes."""
    return (log_densities.detach().clamp(-20, 10) + 20) / 30


def discriminator_terms(expert: Tensor, others: Tensor, eta: float) -> Tensor:
    """-log d_e - log(1 - d_o)/eta + log(1 - d_e) of each pair of rows."""
    return -torch.log(expert) - torch.log(1 - others) / eta + torch.log(1 - expert)


def policy_terms(
    expert_losses: Tensor, other_losses: Tensor, expert: Tensor, others: Tensor, *, alpha: float, eta: float
) -> Tensor:
    """alpha*l_e - l_e*(eta/(d_e(1-d_e)) + 1) + l_o*(1/(1-d_o) - 1) of each pair of rows, l = -log pi.

    Args:
        expert_losses: l_e.
        other_losses: l_o.
        expert: d_e, in (0, 1).
        others: d_o; below 0.5 it counts as 0.
        alpha: weight of plain cloning of the expert.
        eta: assumed share of expert steps among the others.
    """
    believed = torch.where(others < 0.5, 0.0, others)
    cloned = expert_losses * (alpha - eta / (expert * (1 - expert)) - 1)
    return cloned + other_losses * (1 / (1 - believed) - 1)
