"""MARWIL: cloning weighted by the advantage of the recorded return (Wang et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import KnownSteps, TransitionBatch
from tailo_pl.data.transitions import Steps
from tailo_pl.errors import require_range
from tailo_pl.losses.marwil import marwil_log_weights
from tailo_pl.models.actor import Actor
from tailo_pl.models.heads import Gaussian, Head
from tailo_pl.models.networks import mlp
from tailo_pl.models.reduction import batch_means
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing

RATE = 0.01  # at which the mean square of the advantage follows


class MARWIL(Weighing):
    """The policy of behaviour cloning beside a value network; the batch's rewards are returns.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        beta: how sharply the policy prefers advantage.
        head: what is made of the policy's numbers; None: the paper's Gaussian.
        learning_rate: Adam's step size, for both networks.
        hidden: widths of the hidden (ReLU) layers.
    """

    mean_square: Tensor

    full_precision = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        beta: float = 1.0,
        head: Head | None = None,
        learning_rate: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("beta", beta, 0, closed="[)")
        self.actor = Actor(head or Gaussian(), observation_dim, self.action_dim, hidden)
        self.beta = beta
        self.value = mlp(observation_dim, hidden, 1, nn.ReLU)
        self.register_buffer("mean_square", torch.ones(()))  # of returns, which are standardised

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        states = self.standardise(batch.observations)
        values = self.value(states).squeeze(-1).float()
        advantages = batch.rewards - values
        rows = [advantages.square()]
        if self.acts:
            weights = torch.exp(marwil_log_weights(advantages.detach(), self.mean_square, self.beta))
            rows.append(weights * self.actor.losses(states, self.bounds.normalise(batch.actions), batch.noise))
        value_loss, *others = batch_means(rows, [batch.size] * len(rows))
        self.mean_square.lerp_(value_loss.detach(), RATE)
        actor = dict(zip(("actor_loss",), others, strict=False))
        loss = sum(others, value_loss)
        self.log_now_and_then(loss, lambda: {"value_loss": value_loss, **actor, **value_range(values)})
        return loss

    @property
    def weighed_steps(self) -> Steps:
        return "all"

    def log_weights(self, steps: KnownSteps) -> Tensor:
        values = self.value(self.standardise(steps.observations)).squeeze(-1).float()
        return marwil_log_weights(steps.rewards - values, self.mean_square, self.beta)

    def configure_optimizers(self) -> Any:
        trained = [*self.actor.parameters(), *self.value.parameters()]
        return torch.optim.Adam(trained, lr=self.learning_rate, fused=True)


class MARWILWeights(HandsOnWeights, MARWIL):
    """MARWIL without its actor; arguments are those of MARWIL."""
