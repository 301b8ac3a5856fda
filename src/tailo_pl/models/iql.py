"""IQL: offline reinforcement learning that asks only for the value of recorded actions (Kostrikov et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import KnownSteps, TransitionBatch
from tailo_pl.data.transitions import Steps
from tailo_pl.errors import require_range
from tailo_pl.losses.iql import advantage_weights, expectile_terms
from tailo_pl.losses.td3 import critic_terms, td_target
from tailo_pl.models.actor import Actor
from tailo_pl.models.critics import TwinCritics
from tailo_pl.models.heads import Head, TanhMeanGaussian
from tailo_pl.models.networks import follower_of, mlp, move_towards
from tailo_pl.models.reduction import batch_means
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing

WEIGHT_LIMIT = 100.0


class IQL(Weighing):
    """V by expectile regression on the smaller target critic, Q on V, and cloning weighted by the advantage.

    All three learn from the same batch, with what they were before it. The actor's rate falls to zero.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        expectile: tau: how far V leans towards the best recorded actions.
        temperature: how sharply the actor prefers advantage.
        discount: g.
        target_rate: how fast the target critics follow.
        head: what is made of the actor's numbers; None: a Gaussian around tanh of them, as published.
        learning_rate: Adam's step size, for all.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        expectile: float = 0.7,
        temperature: float = 3.0,
        discount: float = 0.99,
        target_rate: float = 0.005,
        head: Head | None = None,
        learning_rate: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("expectile", expectile, 0, 1)
        require_range("temperature", temperature, 0, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("target_rate", target_rate, 0, 1, closed="(]")
        self.expectile = expectile
        self.temperature = temperature
        self.discount = discount
        self.target_rate = target_rate
        self.value = mlp(observation_dim, hidden, 1, nn.ReLU)
        self.critics = TwinCritics(observation_dim, self.action_dim, hidden)
        self.target_critics = follower_of(self.critics)
        self.actor = Actor(head or TanhMeanGaussian(), observation_dim, self.action_dim, hidden)

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        states, nexts = self.standardise(batch.observations), self.standardise(batch.next_observations)
        actions = self.bounds.normalise(batch.actions)
        values = self.value(states).squeeze(-1).float()
        with torch.no_grad():
            next_values = self.value(nexts).squeeze(-1).float()
            believed = torch.minimum(*self.target_critics(states, actions))
        advantages = believed - values
        target = td_target(batch.rewards, batch.done, next_values, self.discount)
        rows = [expectile_terms(advantages, self.expectile), critic_terms(self.critics(states, actions), target)]
        if self.acts:
            weights = advantage_weights(advantages.detach(), self.temperature, WEIGHT_LIMIT)
            rows.append(weights * self.actor.losses(states, actions, batch.noise))
        losses = batch_means(rows, [batch.size] * len(rows))
        loss = torch.stack(losses).sum()
        names = ("value_loss", "critic_loss", "actor_loss")
        self.log_now_and_then(loss, lambda: {**dict(zip(names, losses, strict=False)), **value_range(values)})
        return loss

    @property
    def weighed_steps(self) -> Steps:
        return "all"

    def log_weights(self, steps: KnownSteps) -> Tensor:
        states, actions = self.standardise(steps.observations), self.bounds.normalise(steps.actions)
        advantages = torch.minimum(*self.target_critics(states, actions)) - self.value(states).squeeze(-1).float()
        return torch.log(advantage_weights(advantages, self.temperature, WEIGHT_LIMIT))

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        move_towards(self.target_critics, self.critics, self.target_rate)

    def configure_optimizers(self) -> Any:
        values = [*self.value.parameters(), *self.critics.parameters()]
        groups: list[dict[str, Any]] = [{"params": values}, {"params": self.actor.parameters()}]
        adam = torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
        return self.falling_rates(adam, [False, True])


class IQLWeights(HandsOnWeights, IQL):
    """IQL without its actor; arguments are those of IQL."""
