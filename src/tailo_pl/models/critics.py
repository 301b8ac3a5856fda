"""TwinCritics: two estimates of Q(s, a), of which the smaller is believed."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tailo_pl.models.networks import mlp


class TwinCritics(nn.Module):
    """Two networks on standardised states and actions in [-1, 1].

    Args:
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
        hidden: widths of the hidden (ReLU) layers.
    """

    def __init__(self, observation_dim: int, action_dim: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.first = mlp(observation_dim + action_dim, hidden, 1, nn.ReLU)
        self.second = mlp(observation_dim + action_dim, hidden, 1, nn.ReLU)

    def forward(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both estimates."""
        inputs = torch.cat([states, actions], -1)
        return self.first(inputs).squeeze(-1).float(), self.second(inputs).squeeze(-1).float()

    def first_estimate(self, states: Tensor, actions: Tensor) -> Tensor:
        """That of the first network alone, which actors follow."""
        estimate: Tensor = self.first(torch.cat([states, actions], -1)).squeeze(-1).float()
        return estimate
