"""TD3BC: offline reinforcement learning with a cloning term, on rewards that an earlier stage has given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tailo_pl.data.batches import TransitionBatch
from tailo_pl.errors import require_range
from tailo_pl.losses.td3 import actor_terms, critic_terms, smoothed_action, td_target
from tailo_pl.models.critics import TwinCritics
from tailo_pl.models.networks import follower_of, frozen, mlp, move_towards
from tailo_pl.models.policy import PolicyModule
from tailo_pl.models.stage import value_range

NOISE, NOISE_LIMIT = 0.2, 0.5  # of the target policy's action
EVERY = 2  # steps of the critics for one of the actor


class TD3BC(PolicyModule):
    """Twin critics with target networks and a deterministic tanh actor, which is updated at every second step.

    One optimiser holds all weights; those without a gradient stay as they are, so that a step is one batch.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        alpha: lambda = alpha / mean|Q| is the weight of Q beside the cloning term.
        discount: g.
        target_rate: how fast target networks follow.
        learning_rate: Adam's step size, for all.
        schedule: `constant` learning rate, or `cosine` decay to zero at the last step.
        averaging: decay of an exponential average of the actor, which then acts; 0: none.
        hidden: widths of the hidden (ReLU) layers.
    """

    full_precision = True
    several_processes = False  # at every second step the actor has no gradient

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        alpha: float = 2.5,
        discount: float = 0.99,
        target_rate: float = 0.005,
        learning_rate: float = 3e-4,
        schedule: Literal["constant", "cosine"] = "constant",
        averaging: float = 0.0,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("alpha", alpha, 0)
        require_range("discount", discount, 0, 1)
        require_range("target_rate", target_rate, 0, 1, closed="(]")
        require_range("averaging", averaging, 0, 1, closed="[)")
        self.alpha = alpha
        self.discount = discount
        self.target_rate = target_rate
        self.network = mlp(observation_dim, hidden, self.action_dim, nn.ReLU)
        self.critics = TwinCritics(observation_dim, self.action_dim, hidden)
        self.target_network, self.target_critics = follower_of(self.network), follower_of(self.critics)
        self.schedule = schedule
        self.averaging = averaging
        self.average = follower_of(self.network) if averaging else None

    @property
    def acting(self) -> nn.Module:
        return nn.Sequential(self.average or self.network, nn.Tanh())

    def act(self, states: Tensor, network: nn.Module | None = None) -> Tensor:
        """Actions in [-1, 1] at standardised states."""
        return torch.tanh((network or self.network)(states).float())

    def value_of(self, outputs: Tensor) -> Tensor:
        """Q from what a critic puts out."""
        return outputs

    def critic_loss(self, batch: TransitionBatch, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """The critics' loss, and the first critic's values at the recorded actions."""
        outputs = self.critics(states, actions)
        target = td_target(batch.rewards, batch.done, self.next_outputs(batch), self.discount)
        return critic_terms(outputs, target).mean(), outputs[0]

    def next_outputs(self, batch: TransitionBatch) -> Tensor:
        """The smaller target critic at the next states and the target policy's smoothed action there."""
        with torch.no_grad():
            states = self.standardise(batch.next_observations)
            actions = smoothed_action(self.act(states, self.target_network), batch.noise, NOISE, NOISE_LIMIT)
            return torch.minimum(*self.target_critics(states, actions))

    def training_step(self, batch: TransitionBatch, batch_idx: int) -> Tensor:
        states, recorded = self.standardise(batch.observations), self.bounds.normalise(batch.actions)
        critic_loss, values = self.critic_loss(batch, states, recorded)
        loss, actor = critic_loss, dict[str, Tensor]()
        if self._actors_turn:
            actions = self.act(states)
            with frozen(self.critics):
                chosen = self.value_of(self.critics.first_estimate(states, actions))
            scale = self.alpha / chosen.detach().abs().mean().clamp_min(1e-8)
            actor_loss = actor_terms(chosen, scale, actions, recorded).mean()
            loss, actor = critic_loss + actor_loss, {"actor_loss": actor_loss}
        self.log_now_and_then(loss, lambda: {"critic_loss": critic_loss, **actor, **value_range(values)})
        return loss

    @property
    def _actors_turn(self) -> bool:
        return (self.global_step + 1) % EVERY == 0

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        if self._actors_turn:  # here, so that a step and its targets are never apart in a checkpoint
            move_towards(self.target_network, self.network, self.target_rate)
            move_towards(self.target_critics, self.critics, self.target_rate)
            if self.average is not None:
                move_towards(self.average, self.network, self.average_rate(self.averaging, self.global_step // EVERY))

    def configure_optimizers(self) -> Any:
        trained = [*self.network.parameters(), *self.critics.parameters()]
        adam = torch.optim.Adam(trained, lr=self.learning_rate, fused=True)
        return self.falling_rates(adam, [self.schedule == "cosine"])
