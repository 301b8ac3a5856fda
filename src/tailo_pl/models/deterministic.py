"""DeterministicPolicy: what is left of a policy when it only acts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tailo_pl.models.policy import WeightedBCPolicy


class DeterministicPolicy(nn.Module):
    """tanh of the mean at raw states, within the action bounds; the standardisation is its first layer.

    Args:
        policy: a trained policy, whose networks are shared, not copied.
    """

    low: Tensor
    high: Tensor

    def __init__(self, policy: WeightedBCPolicy) -> None:
        super().__init__()
        self.standardise = policy.standardise
        self.network = policy.average or policy.network
        self.register_buffer("low", policy.action_low)
        self.register_buffer("high", policy.action_high)

    def forward(self, states: Tensor) -> Tensor:
        mean, _ = self.network(self.standardise(states)).chunk(2, dim=-1)
        actions = self.low + 0.5 * (torch.tanh(mean) + 1) * (self.high - self.low)
        return torch.clamp(actions, self.low, self.high)  # rounding may leave the bounds by the last bit
