"""SquashedGaussian: what the heads that squash a Gaussian by tanh share."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tailo_pl.losses.likelihood import Likelihood, censored_log_densities, squashed_log_densities
from tailo_pl.models.heads.head import Head


class SquashedGaussian(Head):
    """A Gaussian squashed by tanh; the network gives its mean and a number for its spread.

    Args:
        likelihood: of recorded actions: `squashed` (the density) or `censored` (an action at its bound stands for
            everything beyond it).
    """

    def __init__(self, likelihood: Likelihood = "squashed") -> None:
        super().__init__()
        self._log_densities = squashed_log_densities if likelihood == "squashed" else censored_log_densities

    def width(self, action_dim: int) -> int:
        return 2 * action_dim

    @abstractmethod
    def distribution(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance before tanh."""

    def log_densities(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """log pi of recorded actions, for each dimension."""
        return self._log_densities(*self.distribution(outputs), actions)

    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        return -self.log_densities(outputs, actions).sum(-1)

    def act(self, outputs: Tensor) -> Tensor:
        return torch.tanh(self.distribution(outputs)[0])

    def drawn(self, outputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """An action drawn with the given standard normal numbers, and its log pi; both differentiable."""
        mean, log_variance = self.distribution(outputs)
        log_std = 0.5 * log_variance
        drawn = mean + noise * torch.exp(log_std)
        gaussian = -0.5 * (noise.square() + math.log(2 * math.pi)) - log_std
        # log(1 - tanh(x)^2) without cancellation
        change = 2 * (math.log(2) - drawn - softplus(-2 * drawn))
        return torch.tanh(drawn), (gaussian - change).sum(-1)
