"""SMODICE: matches the expert's occupancy of states through the dual of an f-divergence (Ma et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import KnownSteps, TransitionBatch
from tailo_pl.data.transitions import Steps
from tailo_pl.errors import require_range
from tailo_pl.losses.dice import (
    Divergence,
    chi2_conjugate,
    dual_loss,
    slack,
    smodice_log_weights,
    smodice_weights,
)
from tailo_pl.models.actor import Actor
from tailo_pl.models.heads import ClippedGaussian, SquashedGaussian
from tailo_pl.models.networks import mlp, with_absorbing
from tailo_pl.models.reduction import batch_log_mean_exp, batch_means
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing


class SMODICE(Weighing):
    """A value V(s) that solves the dual, and weighted cloning with the weights it gives, side by side.

    The actor's entropy is kept at -dim(a) by a learned coefficient. Weights are those before the step's own update.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        divergence: f: `kl`, `chi2_half` ((x-1)^2/2, as published) or `chi2` ((x-1)^2).
        discount: g.
        absorbing: a step that ended its episode leads to the absorbing state, which leads to itself and is drawn too;
            otherwise nothing follows such a step.
        head: what is made of the actor's numbers; None: a clipped Gaussian, as published.
        entropy_weight: the coefficient in the beginning.
        learning_rate: Adam's step size, for all.
        value_decay: Adam's L2 term, for V.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        divergence: Divergence = "kl",
        discount: float = 0.99,
        absorbing: bool = False,
        head: SquashedGaussian | None = None,
        entropy_weight: float = 1.0,
        learning_rate: float = 3e-4,
        value_decay: float = 1e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("discount", discount, 0, 1)
        require_range("entropy_weight", entropy_weight, 0)
        require_range("value_decay", value_decay, 0, closed="[)")
        self.divergence = divergence
        self.discount = discount
        self.absorbing = absorbing
        self.value_decay = value_decay
        self.value = mlp(observation_dim + absorbing, hidden, 1, nn.ReLU)
        self.actor = Actor(head or ClippedGaussian(7.24), observation_dim, self.action_dim, hidden)
        self.log_entropy_weight = nn.Parameter(torch.tensor(math.log(entropy_weight)))

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        states = self.standardise(batch.observations)
        values, next_values, initial = self._values(batch, states)
        follows_known = 1 - batch.done  # behind the others there is the absorbing state, or nothing
        follows = 1.0 if self.absorbing else follows_known
        e = slack(batch.rewards, values, follows * next_values, self.discount)
        rows = [initial] if self.divergence == "kl" else [initial, chi2_conjugate(e, self.divergence)]
        initial_mean, *others = batch_means(rows, [batch.size] * len(rows))
        conjugate = others[0] if others else batch_log_mean_exp(e, batch.size)
        value_loss = dual_loss(initial_mean, conjugate, self.discount)

        acting = 1 - batch.absorbing  # there is no action at the absorbing state
        loss, numbers = value_loss, {"value_loss": value_loss}
        if self.acts:
            actor_loss, entropy = self._actor_loss(batch, states, e.detach(), acting)
            loss, numbers = value_loss + actor_loss, {**numbers, "actor_loss": actor_loss, "entropy": entropy}
        self.log_now_and_then(
            loss,
            lambda: {
                **numbers,
                **value_range(torch.cat([values[acting > 0], next_values[follows_known > 0]])),
            },
        )
        return loss

    def _actor_loss(self, batch: TransitionBatch, states: Tensor, e: Tensor, acting: Tensor) -> tuple[Tensor, Tensor]:
        """Weighted cloning with the entropy's constraint, and the entropy."""
        weights = torch.where(acting > 0, smodice_weights(e, self.divergence), 0.0)
        outputs = self.actor.outputs(states)
        cloning = weights * self.actor.head.losses(outputs, self.bounds.normalise(batch.actions), batch.noise)
        drawn = self.actor.head.drawn(outputs, batch.noise)[1] * acting
        cloning_mean, drawn_mean, share = batch_means([cloning, drawn, acting], [batch.size] * 3)
        drawn_mean = drawn_mean / share.clamp_min(1 / batch.size)
        actor_loss = cloning_mean + torch.exp(self.log_entropy_weight).detach() * drawn_mean
        # Grows where the entropy -log pi is below its target -dim(a).
        entropy_loss = -self.log_entropy_weight * (drawn_mean.detach() - self.action_dim)
        return actor_loss + entropy_loss, -drawn_mean

    @property
    def weighed_steps(self) -> Steps:
        return "next_or_done"

    def log_weights(self, steps: KnownSteps) -> Tensor:
        states, nexts = self.standardise(steps.observations), self.standardise(steps.next_observations)
        follows: Tensor | float = 1 - steps.done
        if self.absorbing:
            states, nexts, follows = with_absorbing(states, None), with_absorbing(nexts, steps.done), 1.0
        values, next_values = self.value(torch.cat([states, nexts])).squeeze(-1).float().chunk(2)
        return smodice_log_weights(slack(steps.rewards, values, follows * next_values, self.discount), self.divergence)

    def _values(self, batch: TransitionBatch, states: Tensor) -> tuple[Tensor, ...]:
        """V(s), V(s') and V(s0)."""
        next_states, initial = self.standardise(batch.next_observations), self.standardise(batch.initial)
        if self.absorbing:
            states = with_absorbing(states, batch.absorbing)
            next_states = with_absorbing(next_states, torch.maximum(batch.absorbing, batch.done))
            initial = with_absorbing(initial, None)
        values: Tensor = self.value(torch.cat([states, next_states, initial])).squeeze(-1).float()
        return values.chunk(3)

    def configure_optimizers(self) -> Any:
        policy = [*self.actor.parameters(), self.log_entropy_weight]
        groups: list[dict[str, Any]] = [
            {"params": self.value.parameters(), "weight_decay": self.value_decay},
            {"params": policy},
        ]
        return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)


class SMODICEWeights(HandsOnWeights, SMODICE):
    """SMODICE without its actor; arguments are those of SMODICE."""

    def setup(self, stage: str) -> None:
        super().setup(stage)
        self.log_entropy_weight.requires_grad_(False)
