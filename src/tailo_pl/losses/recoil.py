"""ReCOIL: recorded steps are pushed below the expert's in value, without a discriminator (Sikchi et al. 2024)."""

from __future__ import annotations

import torch
from torch import Tensor

LIMIT = 7.0  # of an exponent


def gumbel_errors(believed: Tensor, values: Tensor, temperature: float) -> Tensor:
    """z = min((Q'(s, a) - V(s)) / T, 7)."""
    return ((believed - values) / temperature).clamp(max=LIMIT)


def gumbel_terms(errors: Tensor, largest: Tensor) -> Tensor:
    """exp(z - m) - z*exp(-m) - exp(-m) of each row: Gumbel regression, scaled by exp(-m) so that it cannot overflow.

    Args:
        errors: z.
        largest: m = max(-1, the largest z of the batch), not differentiated.
    """
    scale = torch.exp(-largest)
    return torch.exp(errors - largest) - errors * scale - scale


def recoil_target(next_values: Tensor, done: Tensor, discount: float, reward: float, expert_value: float) -> Tensor:
    """y = reward + g*(1 - done)*V(s') - g*done*expert_value: the end of an episode is as bad as the expert is good."""
    return reward + discount * ((1 - done) * next_values - done * expert_value)


def recoil_critic_terms(estimates: tuple[Tensor, Tensor], target: Tensor | float) -> Tensor:
    """(Q - y)^2 / 2 of each row, summed over the two critics."""
    return sum((0.5 * (one - target).square() for one in estimates), torch.zeros(()).to(estimates[0]))
