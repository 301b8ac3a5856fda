"""DeterministicPolicy: what is left of a policy when it only acts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tailo_pl.models.policy import PolicyModule


class DeterministicPolicy(nn.Module):
    """The deterministic action at raw states, within the bounds; the standardisation is its first layer.

    Args:
        policy: a trained policy, whose networks are shared, not copied.
    """

    low: Tensor
    high: Tensor

    def __init__(self, policy: PolicyModule) -> None:
        super().__init__()
        self.standardise = policy.standardise
        self.acting = policy.acting
        self.register_buffer("low", policy.action_low)
        self.register_buffer("high", policy.action_high)

    def forward(self, states: Tensor) -> Tensor:
        actions = self.low + 0.5 * (self.acting(self.standardise(states)) + 1) * (self.high - self.low)
        return torch.clamp(actions, self.low, self.high)  # rounding may leave the bounds by the last bit
