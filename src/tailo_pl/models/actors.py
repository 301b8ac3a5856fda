"""Actors of the baselines: networks from standardised states to actions in [-1, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from tailo_pl.models.networks import mlp
from tailo_pl.objectives import Likelihood, censored_log_densities, squashed_log_densities

LOG_STD = (-5.0, 2.0)


class SquashedActor(nn.Module):
    """A Gaussian squashed by tanh, its mean and log-deviation clipped.

    Args:
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
        hidden: widths of the hidden (ReLU) layers.
        mean_limit: the mean is clipped to +- this.
        likelihood: `squashed` or `censored`, of recorded actions.
        last_bias: whether the last layer has one.
    """

    def __init__(
        self,
        observation_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        mean_limit: float,
        likelihood: Likelihood,
        last_bias: bool = True,
    ) -> None:
        super().__init__()
        self.network = mlp(observation_dim, hidden, 2 * action_dim, nn.ReLU, last_bias=last_bias)
        self._mean_limit = mean_limit
        self._log_densities = squashed_log_densities if likelihood == "squashed" else censored_log_densities

    def distribution(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-deviation before tanh."""
        mean, log_std = self.network(states).float().chunk(2, dim=-1)
        return mean.clamp(-self._mean_limit, self._mean_limit), log_std.clamp(*LOG_STD)

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action."""
        return torch.tanh(self.distribution(states)[0])

    def log_densities(self, states: Tensor, actions: Tensor) -> Tensor:
        """log pi of recorded actions, for each dimension."""
        mean, log_std = self.distribution(states)
        return self._log_densities(mean, 2 * log_std, actions)

    def sampled_log_likelihood(self, states: Tensor, noise: Tensor) -> Tensor:
        """log pi of an action drawn with the given standard normal numbers, differentiable through the draw."""
        mean, log_std = self.distribution(states)
        drawn = mean + noise * torch.exp(log_std)
        gaussian = -0.5 * (noise.square() + math.log(2 * math.pi)) - log_std
        # log(1 - tanh(x)^2) without cancellation
        change = 2 * (math.log(2) - drawn - softplus(-2 * drawn))
        return (gaussian - change).sum(-1)


class TanhGaussianActor(nn.Module):
    """A Gaussian around tanh(mean), not squashed, with a deviation that does not depend on the state.

    Args:
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
        hidden: widths of the hidden (ReLU) layers.
    """

    def __init__(self, observation_dim: int, action_dim: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.network = mlp(observation_dim, hidden, action_dim, nn.ReLU)
        self.log_std = nn.Parameter(torch.zeros(action_dim))

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action."""
        return torch.tanh(self.network(states).float())

    def log_likelihood(self, states: Tensor, actions: Tensor) -> Tensor:
        """log pi of recorded actions, per row."""
        log_std = self.log_std.clamp(*LOG_STD)
        scaled: Tensor = (actions - self(states)) * torch.exp(-log_std)
        return -(0.5 * (scaled.square() + math.log(2 * math.pi)) + log_std).sum(-1)
