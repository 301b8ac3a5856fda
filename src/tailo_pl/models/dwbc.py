"""DWBC: cloning weighted by a discriminator that knows the policy (Xu et al. 2022). Needs the expert's actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import TransitionBatch
from tailo_pl.errors import require_range
from tailo_pl.losses.dwbc import discriminator_terms, policy_terms, scaled_log_densities
from tailo_pl.models.actor import Actor
from tailo_pl.models.heads import ClippedGaussian, SquashedGaussian
from tailo_pl.models.policy import PolicyModule

LIMITS = (0.1, 0.9)  # of the discriminator's probability


class StepDiscriminator(nn.Module):
    """d(s, a, log pi): a branch for state and action, one for log pi of each action dimension, joined.

    Args:
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
    """

    def __init__(self, observation_dim: int, action_dim: int) -> None:
        super().__init__()
        self.step = nn.Linear(observation_dim + action_dim, 128)
        self.density = nn.Linear(action_dim, 128)
        self.joined = nn.Sequential(nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, states: Tensor, actions: Tensor, densities: Tensor) -> Tensor:
        """The probability that the step is the expert's, clipped."""
        branches = [self.step(torch.cat([states, actions], -1)), self.density(densities)]
        return torch.sigmoid(self.joined(torch.cat(branches, -1)).squeeze(-1).float()).clamp(*LIMITS)


class DWBC(PolicyModule):
    """A discriminator of steps, updated every so often, and a policy cloned with the weights it gives.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        alpha: weight of plain cloning of the expert.
        eta: assumed share of expert steps in TA.
        every: steps of the policy for one of the discriminator.
        head: what is made of the actor's numbers; None: a clipped Gaussian, as published.
        learning_rate: Adam's step size, for both.
        weight_decay: Adam's L2 term, for the policy.
        hidden: widths of the policy's hidden (ReLU) layers.
    """

    full_precision = True
    several_processes = False  # at most steps the discriminator has no gradient

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        alpha: float = 7.5,
        eta: float = 0.5,
        every: int = 100,
        head: SquashedGaussian | None = None,
        learning_rate: float = 1e-4,
        weight_decay: float = 0.005,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("alpha", alpha, 0, closed="[)")
        require_range("eta", eta, 0, 1)
        require_range("every", every, 1, closed="[)")
        require_range("weight_decay", weight_decay, 0, closed="[)")
        self.alpha = alpha
        self.eta = eta
        self.every = every
        self.weight_decay = weight_decay
        self.actor = Actor(head or ClippedGaussian(9.0), observation_dim, self.action_dim, hidden)
        self.discriminator = StepDiscriminator(observation_dim, self.action_dim)

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        assert batch.expert is not None and batch.expert.actions is not None
        states = self.standardise(torch.cat([batch.expert.observations, batch.observations]))
        actions = self.bounds.normalise(torch.cat([batch.expert.actions, batch.actions]))
        densities = self.actor.head.log_densities(self.actor.outputs(states), actions)
        expert_losses, other_losses = (-densities.sum(-1)).chunk(2)
        learns = (self.global_step + 1) % self.every == 0
        with torch.set_grad_enabled(learns):
            expert, others = self.discriminator(states, actions, scaled_log_densities(densities)).chunk(2)
        policy_loss = policy_terms(
            expert_losses, other_losses, expert.detach(), others.detach(), alpha=self.alpha, eta=self.eta
        ).mean()
        discriminator_loss = discriminator_terms(expert, others, self.eta).mean()
        loss = policy_loss + discriminator_loss
        self.log_now_and_then(
            loss,
            lambda: {
                "policy_loss": policy_loss,
                "discriminator_loss": discriminator_loss,
                "expert_probability": expert.mean(),
                "other_probability": others.mean(),
            },
        )
        return loss

    def configure_optimizers(self) -> Any:
        groups: list[dict[str, Any]] = [
            {"params": self.actor.parameters(), "weight_decay": self.weight_decay},
            {"params": self.discriminator.parameters()},
        ]
        return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
