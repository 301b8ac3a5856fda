"""TanhMeanGaussian: the head of IQL."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tailo_pl.models.heads.clipped_gaussian import LOG_STD
from tailo_pl.models.heads.head import Head


class TanhMeanGaussian(Head):
    """A Gaussian around tanh of the network's numbers, not squashed; its deviation is learnt, one for all states."""

    log_std: nn.Parameter

    def width(self, action_dim: int) -> int:
        return action_dim

    def prepare(self, action_dim: int) -> None:
        self.log_std = nn.Parameter(torch.zeros(action_dim))

    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        log_std = self.log_std.clamp(*LOG_STD)
        scaled = (actions - self.act(outputs)) * torch.exp(-log_std)
        return (0.5 * (scaled.square() + math.log(2 * math.pi)) + log_std).sum(-1)

    def act(self, outputs: Tensor) -> Tensor:
        return torch.tanh(outputs)
