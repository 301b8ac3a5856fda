"""WeightedBCPolicy: behaviour cloning in which each recorded step counts by its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tailo_pl.data.batches import WeightedBatch
from tailo_pl.errors import UserError, require_range
from tailo_pl.models.networks import SquashedMean, follower_of, mlp, move_towards
from tailo_pl.models.reduction import batch_means
from tailo_pl.models.stage import StageModule
from tailo_pl.objectives import Likelihood, censored_log_likelihood, squashed_log_likelihood


class PolicyModule(StageModule):
    """Base of the modules that act: knows the actions' bounds; called with raw states it gives actions within them.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        learning_rate: Adam's step size.
    """

    action_low: Tensor
    action_high: Tensor

    def __init__(
        self, observation_dim: int, action_low: Sequence[float], action_high: Sequence[float], learning_rate: float
    ) -> None:
        super().__init__(observation_dim, learning_rate)
        if len(action_low) != len(action_high) or any(
            low >= high for low, high in zip(action_low, action_high, strict=True)
        ):
            raise UserError(f"action bounds: {action_low} and {action_high} given, expected low < high per dimension")
        self.register_buffer("action_low", torch.tensor(action_low, dtype=torch.float32))
        self.register_buffer("action_high", torch.tensor(action_high, dtype=torch.float32))
        self._unit_bounds = set(action_low) == {-1.0} and set(action_high) == {1.0}

    @property
    def acting(self) -> nn.Module:
        """What acts, without anything of training: from standardised states to actions in [-1, 1]."""
        raise NotImplementedError

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action at raw states."""
        return self.within_bounds(self.acting(self.standardise(states)))

    def normalise(self, actions: Tensor) -> Tensor:
        """Actions within the bounds, mapped to [-1, 1]."""
        if self._unit_bounds:
            return actions
        return 2 * (actions - self.action_low) / (self.action_high - self.action_low) - 1

    def within_bounds(self, actions: Tensor) -> Tensor:
        """Actions in [-1, 1], mapped to the bounds."""
        return self.action_low + 0.5 * (actions + 1) * (self.action_high - self.action_low)

    def cosine_decay(self, optimizer: Optimizer, groups: Sequence[bool]) -> dict[str, Any]:
        """A schedule that lets the rates of the marked parameter groups fall to zero at the last step."""
        steps = self.trainer.max_steps

        def decay(step: int) -> float:
            return (1 + math.cos(math.pi * step / steps)) / 2

        factors: list[Any] = [decay if marked else _constant for marked in groups]
        return {"scheduler": torch.optim.lr_scheduler.LambdaLR(optimizer, factors), "interval": "step"}


def _constant(step: int) -> float:
    return 1.0


class WeightedBCPolicy(PolicyModule):
    """pi(a|s): a Gaussian squashed by tanh to the action bounds, trained on -mean W(s,a) log pi(a|s).

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        likelihood: `squashed` (the paper's density) or `censored` (an action at its bound stands for everything
            beyond it).
        learning_rate: Adam's step size.
        weight_decay: Adam's L2 term, for the loss weighted by W; drawing in proportion to W rescales it.
        schedule: `constant` learning rate, or `cosine` decay to zero at the last step.
        averaging: decay of an exponential average of the weights, with which the policy then acts; 0: none.
        hidden: widths of the hidden (ReLU) layers.
    """

    compilable = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        likelihood: Likelihood = "squashed",
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-5,
        schedule: Literal["constant", "cosine"] = "constant",
        averaging: float = 0.0,
        hidden: Sequence[int] = (256, 256),
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("weight_decay", weight_decay, 0, closed="[)")
        require_range("averaging", averaging, 0, 1, closed="[)")
        self.save_hyperparameters(logger=False)
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.log_likelihood = squashed_log_likelihood if likelihood == "squashed" else censored_log_likelihood
        self.network = mlp(observation_dim, hidden, 2 * len(action_low), nn.ReLU)
        self.averaging = averaging
        self.average = follower_of(self.network) if averaging else None

    @property
    def acting(self) -> nn.Module:
        return SquashedMean(self.average or self.network)

    def distribution(self, states: Tensor, network: nn.Module | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log-variance, before tanh, at raw states; of the averaged network where there is one."""
        network = network or self.average or self.network
        mean, head = network(self.standardise(states)).float().chunk(2, dim=-1)
        return mean, 7 * torch.tanh(head) - 3

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action: tanh of the mean, within the bounds."""
        mean, _ = self.distribution(states)
        return self.within_bounds(torch.tanh(mean))

    def row_losses(self, observations: Tensor, actions: Tensor, weights: Tensor) -> Tensor:
        """-W(s,a) log pi(a|s) of each row."""
        mean, log_variance = self.distribution(observations, self.network)
        return -weights * self.log_likelihood(mean, log_variance, self.normalise(actions))

    def training_step(self, batch: WeightedBatch, batch_idx: int) -> Tensor:
        losses = self.row_losses(batch.observations, batch.actions, batch.weights)
        (loss,) = batch_means([losses], [batch.size])
        self.log_now_and_then(loss)
        return loss

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        if self.average is not None:  # here, so that a step and its average are never apart in a checkpoint
            move_towards(self.average, self.network, 1 - self.averaging)

    def validation_step(self, batch: WeightedBatch, batch_idx: int) -> None:
        """Weighted likelihood and weighted action error on trajectories that training does not see."""
        actions = self.normalise(batch.actions)
        mean, log_variance = self.distribution(batch.observations)
        losses = -self.log_likelihood(mean, log_variance, actions)
        errors = (torch.tanh(mean) - actions).square().mean(-1)
        total = batch.weights.sum()
        numbers = {"loss": (batch.weights * losses).sum() / total, "error": (batch.weights * errors).sum() / total}
        self.log_dict({f"held_out/{name}": value for name, value in numbers.items()}, batch_size=len(actions))

    def configure_optimizers(self) -> Any:
        # Drawn in proportion to W, the loss is larger by 1/mean(W): the L2 term grows along to keep the balance.
        decay = self.weight_decay / self.data.loss_scale
        adam = torch.optim.Adam(self.network.parameters(), lr=self.learning_rate, weight_decay=decay, fused=True)
        if self.schedule == "constant":
            return adam
        return {"optimizer": adam, "lr_scheduler": self.cosine_decay(adam, [True])}
