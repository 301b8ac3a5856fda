"""Regression: the action itself, by its squared error."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from tailo_pl.errors import require_range
from tailo_pl.models.heads.head import Head


class Regression(Head):
    """tanh of the network's numbers, and how far the recorded action is from it.

    The loss is -log pi(a|s) of a Gaussian of fixed deviation around tanh of the network's numbers, but for a constant.
    The deviation sets how much the loss weighs against weight decay, and in a `Mixture` how near to an action a
    component must be to answer for it.

    Args:
        loss: `squared`, or `huber`, which grows only linearly beyond `delta`: single actions far off then pull less.
        std: deviation of the Gaussian, of an action in [-1, 1].
        delta: of `huber`: the distance of an action in [-1, 1] up to which it is the squared one.
    """

    def __init__(self, loss: Literal["squared", "huber"] = "squared", std: float = 0.1, delta: float = 0.1) -> None:
        super().__init__()
        require_range("head.std", std, 0)
        require_range("head.delta", delta, 0)
        self._delta = delta if loss == "huber" else None
        self._scale = 0.5 / std**2

    def width(self, action_dim: int) -> int:
        return action_dim

    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        if self._delta is None:
            distances = (self.act(outputs) - actions).square()
        else:
            distances = 2 * huber_loss(self.act(outputs), actions, reduction="none", delta=self._delta)
        return self._scale * distances.sum(-1)

    def act(self, outputs: Tensor) -> Tensor:
        return torch.tanh(outputs)
