"""LobsDICE: matches the expert's occupancy of pairs of states (Kim et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import ExpertRows, KnownSteps, TransitionBatch
from tailo_pl.errors import require_range
from tailo_pl.losses.dice import (
    dual_loss,
    lobsdice_conjugate,
    lobsdice_reward,
    lobsdice_weights,
    slack,
)
from tailo_pl.losses.discriminator import LogitTerms, cross_entropy, interpolate, lipschitz_terms, logit_terms
from tailo_pl.models.actor import Actor
from tailo_pl.models.heads import ClippedGaussian, Head
from tailo_pl.models.networks import he_normal, input_gradients, mlp, network_gradients
from tailo_pl.models.reduction import batch_log_mean_exp, batch_means
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing


class LobsDICE(Weighing):
    """A reward on pairs (s, s'), the dual's function nu(s), and weighted cloning, all from step one.

    Networks begin with the initial weights that they were published with (`he_normal`).

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        alpha: strength of the regularisation towards the data.
        discount: g.
        reward_penalty: weight of (||grad R|| - 1)^2 between expert pairs and TA's, and between TA's.
        nu_penalty: weight of ||grad nu||^2 at TA's states and between them and the expert's.
        head: what is made of the actor's numbers; None: a clipped Gaussian, as published.
        learning_rate: Adam's step size, for all.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        alpha: float = 0.1,
        discount: float = 0.99,
        reward_penalty: float = 0.1,
        nu_penalty: float = 1e-4,
        head: Head | None = None,
        learning_rate: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("alpha", alpha, 0, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("reward_penalty", reward_penalty, 0, closed="[)")
        require_range("nu_penalty", nu_penalty, 0, closed="[)")
        self.alpha = alpha
        self.discount = discount
        self.reward_penalty = reward_penalty
        self.nu_penalty = nu_penalty
        self.cost = mlp(2 * observation_dim, hidden, 1, nn.ReLU, last_bias=False)
        self.nu = mlp(observation_dim, hidden, 1, nn.ReLU, last_bias=False)
        self.actor = Actor(head or ClippedGaussian(7.0), observation_dim, self.action_dim, hidden)
        for network in (self.cost, self.nu, self.actor.network):
            he_normal(network)

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        assert batch.expert is not None and batch.expert.next_observations is not None
        states, nexts = self.standardise(batch.observations), self.standardise(batch.next_observations)
        expert = self.standardise(batch.expert.observations), self.standardise(batch.expert.next_observations)
        pairs, expert_pairs = torch.cat([states, nexts], -1), torch.cat(expert, -1)

        logits_expert, logits = self.cost(torch.cat([expert_pairs, pairs])).squeeze(-1).float().chunk(2)
        terms = list(logit_terms(logits_expert, logits))
        initial_states = self.standardise(batch.initial)
        nu, next_nu, initial_nu = self.nu(torch.cat([states, nexts, initial_states])).squeeze(-1).float().chunk(3)
        rewards = lobsdice_reward(logits.detach())
        e = slack(rewards, nu, next_nu, self.discount)
        log_mean_exp = batch_log_mean_exp(e / (1 + self.alpha), batch.size)

        rows = [*terms, initial_nu, *self._penalties(batch.expert, states, nexts, expert_pairs)]
        if self.acts:
            weights = lobsdice_weights(e, log_mean_exp, self.alpha).detach()
            rows.append(weights * self.actor.losses(states, self.bounds.normalise(batch.actions), batch.noise))
        means = batch_means(rows, [batch.size] * len(rows))
        cost_loss = cross_entropy(LogitTerms(*means[:3])) + self.reward_penalty * means[4]
        conjugate = lobsdice_conjugate(log_mean_exp, self.alpha, batch.size)
        nu_loss = dual_loss(means[3], conjugate, self.discount) + self.nu_penalty * means[5]
        actor = {"actor_loss": means[6]} if self.acts else {}
        loss = sum(actor.values(), cost_loss + nu_loss)
        self.log_now_and_then(
            loss,
            lambda: {
                "cost_loss": cost_loss,
                "nu_loss": nu_loss,
                **actor,
                "reward_mean": rewards.mean(),
                **value_range(torch.cat([nu, next_nu])),
            },
        )
        return loss

    def log_weights(self, steps: KnownSteps) -> Tensor:
        states, nexts = self.standardise(steps.observations), self.standardise(steps.next_observations)
        rewards = lobsdice_reward(self.cost(torch.cat([states, nexts], -1)).squeeze(-1).float())
        nu, next_nu = self.nu(torch.cat([states, nexts])).squeeze(-1).float().chunk(2)
        return slack(rewards, nu, next_nu, self.discount) / (1 + self.alpha)

    def _penalties(self, expert: ExpertRows, states: Tensor, nexts: Tensor, expert_pairs: Tensor) -> list[Tensor]:
        """Of R and of nu, one number per row each: the mean over the kinds of points at which they are taken."""
        pairs = torch.cat([states, nexts], -1)
        assert expert.others is not None and expert.next_others is not None
        others = torch.cat([self.standardise(expert.others), self.standardise(expert.next_others)], -1)
        mixed = interpolate(expert_pairs, pairs, expert.mix[:, 0])
        mixed_ta = interpolate(pairs, others, expert.mix[:, 1])
        gradients = input_gradients(lambda points: lobsdice_reward(self.cost(points)), torch.cat([mixed, mixed_ta]))
        reward_terms = lipschitz_terms(gradients).view(2, -1).mean(0)
        mixed_states, mixed_nexts = mixed.chunk(2, -1)
        nu_gradients = network_gradients(self.nu, torch.cat([states, mixed_states, mixed_nexts]))
        return [reward_terms, nu_gradients.square().sum(-1).view(3, -1).mean(0)]

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate, fused=True)


class LobsDICEWeights(HandsOnWeights, LobsDICE):
    """LobsDICE without its actor; arguments are those of LobsDICE."""
