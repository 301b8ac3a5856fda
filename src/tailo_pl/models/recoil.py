"""ReCOIL: imitation from arbitrary data through values alone, without a discriminator (Sikchi et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import ExpertRows, KnownSteps, TransitionBatch
from tailo_pl.data.transitions import Steps
from tailo_pl.errors import require_range
from tailo_pl.losses.iql import advantage_weights
from tailo_pl.losses.recoil import gumbel_errors, gumbel_terms, recoil_critic_terms, recoil_target
from tailo_pl.models.actor import Actor
from tailo_pl.models.critics import TwinCritics
from tailo_pl.models.heads import Head, TanhMeanGaussian
from tailo_pl.models.networks import follower_of, mlp, move_towards
from tailo_pl.models.reduction import batch_max, batch_means
from tailo_pl.models.stage import value_range
from tailo_pl.models.weighing import HandsOnWeights, Weighing

WEIGHT_LIMIT = 100.0


class ReCOIL(Weighing):
    """Critics that are high on the expert's steps and low on TA's, V by Gumbel regression on them, weighted cloning.

    As published the critics see states and actions, the expert's too (`actions`). The same networks on pairs of
    consecutive states (`pairs`) are this project's reading for an expert of whom only states are known; a step that
    ended its episode with no next state recorded is then (s, s). All learn from the same batch, with what they were
    before it. The actor's rate falls to zero.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        expert: what the critics see: `actions` (s, a) or `pairs` (s, s').
        temperature: T of the Gumbel regression; to be raised (up to 20) where the critics diverge.
        sharpness: how sharply the actor prefers advantage.
        discount: g.
        reward: of a step of TA.
        expert_value: what the critics are to say of the expert's steps.
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
        expert: Literal["actions", "pairs"] = "actions",
        temperature: float = 1.0,
        sharpness: float = 3.0,
        discount: float = 0.99,
        reward: float = -2.0,
        expert_value: float = 200.0,
        target_rate: float = 0.005,
        head: Head | None = None,
        learning_rate: float = 3e-4,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("temperature", temperature, 0)
        require_range("sharpness", sharpness, 0, closed="[)")
        require_range("discount", discount, 0, 1)
        require_range("target_rate", target_rate, 0, 1, closed="(]")
        self.expert = expert
        self.temperature = temperature
        self.sharpness = sharpness
        self.discount = discount
        self.reward = reward
        self.expert_value = expert_value
        self.target_rate = target_rate
        self.value = mlp(observation_dim, hidden, 1, nn.ReLU)
        self.critics = TwinCritics(observation_dim, self.action_dim if expert == "actions" else observation_dim, hidden)
        self.target_critics = follower_of(self.critics)
        self.actor = Actor(head or TanhMeanGaussian(), observation_dim, self.action_dim, hidden)

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        assert batch.expert is not None
        states, nexts = self.standardise(batch.observations), self.standardise(batch.next_observations)
        actions = self.bounds.normalise(batch.actions)
        seconds = actions if self.expert == "actions" else nexts
        values = self.value(states).squeeze(-1).float()
        with torch.no_grad():
            next_values = self.value(nexts).squeeze(-1).float()
            believed = torch.minimum(*self.target_critics(states, seconds))
        errors = gumbel_errors(believed, values, self.temperature)
        largest = batch_max(errors.detach()).clamp(min=-1)
        target = recoil_target(next_values, batch.done, self.discount, self.reward, self.expert_value)
        expert_estimates = self.critics(*self._expert_inputs(batch.expert))
        rows = [
            gumbel_terms(errors, largest),
            recoil_critic_terms(self.critics(states, seconds), target),
            recoil_critic_terms(expert_estimates, self.expert_value),
        ]
        if self.acts:
            weights = advantage_weights((believed - values).detach(), self.sharpness, WEIGHT_LIMIT)
            rows.append(weights * self.actor.losses(states, actions, batch.noise))
        losses = batch_means(rows, [batch.size] * len(rows))
        loss = torch.stack(losses).sum()
        self.log_now_and_then(
            loss,
            lambda: {
                "value_loss": losses[0],
                "critic_loss": losses[1] + losses[2],
                **({"actor_loss": losses[3]} if self.acts else {}),
                "expert_value": torch.minimum(*expert_estimates).mean(),
                **value_range(values),
            },
        )
        return loss

    @property
    def weighed_steps(self) -> Steps:
        return "all" if self.expert == "actions" else "next_or_done"

    def log_weights(self, steps: KnownSteps) -> Tensor:
        states = self.standardise(steps.observations)
        pairs = self.expert == "pairs"
        seconds = self.standardise(steps.next_observations) if pairs else self.bounds.normalise(steps.actions)
        advantages = torch.minimum(*self.target_critics(states, seconds)) - self.value(states).squeeze(-1).float()
        return torch.log(advantage_weights(advantages, self.sharpness, WEIGHT_LIMIT))

    def _expert_inputs(self, expert: ExpertRows) -> tuple[Tensor, Tensor]:
        states = self.standardise(expert.observations)
        if self.expert == "actions":
            assert expert.actions is not None
            return states, self.bounds.normalise(expert.actions)
        assert expert.next_observations is not None
        return states, self.standardise(expert.next_observations)

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        move_towards(self.target_critics, self.critics, self.target_rate)

    def configure_optimizers(self) -> Any:
        values = [*self.value.parameters(), *self.critics.parameters()]
        groups: list[dict[str, Any]] = [{"params": values}, {"params": self.actor.parameters()}]
        adam = torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
        return self.falling_rates(adam, [False, True])


class ReCOILWeights(HandsOnWeights, ReCOIL):
    """ReCOIL without its actor; arguments are those of ReCOIL."""
