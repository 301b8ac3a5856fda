"""WeightedBCPolicy: behaviour cloning in which each recorded step counts by its weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim import Optimizer

from tailo_pl.data.batches import WeightedBatch, WeightedBatches
from tailo_pl.data.settings import Task
from tailo_pl.errors import require_range
from tailo_pl.models.actor import Actor
from tailo_pl.models.heads import Gaussian, Head
from tailo_pl.models.networks import ActionBounds, Norm, follower_of, move_towards
from tailo_pl.models.reduction import batch_means
from tailo_pl.models.stage import StageModule
from tailo_pl.models.yardsticks import least_squares, mean_action, some_rows, weight_numbers


class PolicyModule(StageModule):
    """Base of the modules that act: knows the actions' bounds; called with raw states it gives actions within them.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        learning_rate: Adam's step size.
    """

    needs = (*StageModule.needs, "action_low", "action_high")
    acts = True

    def __init__(
        self, observation_dim: int, action_low: Sequence[float], action_high: Sequence[float], learning_rate: float
    ) -> None:
        super().__init__(observation_dim, learning_rate)
        self.bounds = ActionBounds(action_low, action_high)
        self.action_dim = len(action_low)

    @property
    def acting(self) -> nn.Module:
        """What acts, without anything of training: from standardised states to actions in [-1, 1]."""
        return self.get_submodule("actor")

    def forward(self, states: Tensor) -> Tensor:
        """The deterministic action at raw states, within the bounds."""
        actions: Tensor = self.bounds(self.acting(self.standardise(states)))
        return actions

    def deterministic(self) -> nn.Module:
        """`forward` as a module without anything of training, which shares the networks: what is exported."""
        return nn.Sequential(self.standardise, self.acting, self.bounds).eval()

    def spread(self, states: Tensor) -> Tensor | None:
        """How far the members' actions lie apart at raw states, one number per row; None: there is one member.

        The standard deviation over the members of each number of an action in [-1, 1], averaged over these numbers.
        None and not 0, because one network says nothing about how sure it is.
        """
        acting = self.acting
        if not isinstance(acting, Actor) or acting.members == 1:
            return None
        return acting.member_actions(self.standardise(states)).std(0, correction=0).mean(-1)

    def average_rate(self, averaging: float, updates: int) -> float:
        """How far an average of decay `averaging` moves towards its policy after so many updates: the latest ones count
        most in the beginning."""
        return max(1 - averaging, 3 / (4 + updates))

    def falling_rates(self, optimizer: Optimizer, groups: Sequence[bool]) -> Any:
        """What `configure_optimizers` returns: the rates of the marked parameter groups fall to zero at the last step,
        along a cosine."""
        if not any(groups):
            return optimizer
        steps = self.trainer.max_steps

        def decay(step: int) -> float:
            return (1 + math.cos(math.pi * step / steps)) / 2

        factors: list[Any] = [decay if marked else _constant for marked in groups]
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factors)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def _constant(step: int) -> float:
    return 1.0


class WeightedBCPolicy(PolicyModule):
    """pi(a|s), trained on the mean of W(s,a) times its head's loss, which is -log pi(a|s) for the paper's Gaussian.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        head: what is made of the network's numbers; None: the paper's Gaussian.
        learning_rate: Adam's step size.
        weight_decay: Adam's L2 term, for the loss weighted by W; drawing in proportion to W rescales it.
        schedule: `constant` learning rate, or `cosine` decay to zero at the last step.
        averaging: decay of an exponential average of the parameters, with which the policy then acts; 0: none. The
            average begins with the latest ones: after t updates the decay is at most (1 + t) / (4 + t).
        hidden: widths of the hidden (ReLU) layers.
        norm: `layer` normalises each hidden layer before its ReLU.
        members: networks side by side, each with initial weights and rows of its own, which act by the mean of their
            actions.
    """

    compilable = True

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        head: Head | None = None,
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-5,
        schedule: Literal["constant", "cosine"] = "constant",
        averaging: float = 0.0,
        hidden: Sequence[int] = (256, 256),
        norm: Norm = "none",
        members: int = 1,
    ) -> None:
        super().__init__(observation_dim, action_low, action_high, learning_rate)
        require_range("weight_decay", weight_decay, 0, closed="[)")
        require_range("averaging", averaging, 0, 1, closed="[)")
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.actor = Actor(head or Gaussian(), observation_dim, self.action_dim, hidden, norm=norm, members=members)
        self.averaging = averaging
        self.average = follower_of(self.actor) if averaging else None

    @property
    def acting(self) -> Actor[Head]:
        return self.average or self.actor

    @property
    def members(self) -> int:
        """How many networks share a batch."""
        return self.actor.members

    def row_losses(self, observations: Tensor, actions: Tensor, weights: Tensor) -> Tensor:
        """W(s,a) times the head's loss of each row."""
        return weights * self.actor.losses(self.standardise(observations), self.bounds.normalise(actions))

    def training_step(self, batch: WeightedBatch, batch_idx: int) -> Tensor:
        losses = self.row_losses(batch.observations, batch.actions, batch.weights)
        (loss,) = batch_means([losses], [batch.size])
        self.log_now_and_then(loss)
        return loss if self.members == 1 else self.members * loss  # each member learns from the mean of its own rows

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        super().optimizer_step(*arguments, **options)
        if self.average is not None:  # here, so that a step and its average are never apart in a checkpoint
            rate = self.average_rate(self.averaging, self.global_step)  # before this update is counted
            move_towards(self.average, self.actor, rate)

    def validation_step(self, batch: WeightedBatch, batch_idx: int) -> None:
        """The head's loss, and the squared error of the action that is played, which is comparable across heads.

        Both weighted, on trajectories that training does not see.
        """
        actions, states = self.bounds.normalise(batch.actions), self.standardise(batch.observations)
        outputs = self.acting.member_outputs(states)
        losses = torch.stack([self.acting.head.losses(each, actions) for each in outputs]).mean(0)
        errors = (self.acting(states) - actions).square().mean(-1)
        total = batch.weights.sum()
        numbers = {"loss": (batch.weights * losses).sum() / total, "error": (batch.weights * errors).sum() / total}
        self.log_dict({f"held_out/{name}": value for name, value in numbers.items()}, batch_size=len(actions))

    def quality(self, task: Task, outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """Where the weight lies (`weight_numbers`) and, with held-out trajectories, two yardsticks of `held_out_error`
        on the same rows: `held_out_mean`, the error of the weighted mean action, and `held_out_bc`, that of cloning all
        of TA alike."""
        batches = self.data.batches
        if not isinstance(batches, WeightedBatches):
            return {}
        return {**weight_numbers(task, batches.weights), **self._yardsticks(task, batches)}

    def _yardsticks(self, task: Task, batches: WeightedBatches) -> dict[str, float]:
        held_out = batches.held_out_steps
        trained, tested = some_rows(~held_out), some_rows(held_out)
        if not len(tested) or not batches.weights[tested].any():
            return {}
        ta = task.ta

        @torch.inference_mode()
        def at(positions: NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor]:
            rows = torch.from_numpy(ta.rows.at(positions))
            states, actions = (
                self.data.gather(self.data.place(table), rows).to(self.device)
                for table in (ta.recording.observations, ta.recording.actions)
            )
            weights = torch.from_numpy(batches.weights[positions])
            return self.standardise(states).cpu(), self.bounds.normalise(actions).cpu(), weights

        states, actions, weights = at(trained)
        queries, expected, counts = at(tested)

        def error(predicted: Tensor) -> float:
            return float((counts * (predicted - expected).square().mean(-1)).sum() / counts.sum())

        return {
            "held_out_mean": error(mean_action(actions, weights)),
            "held_out_bc": error(least_squares(states, actions, queries)),
        }

    def configure_optimizers(self) -> Any:
        # Drawn in proportion to W, the loss is larger by 1/mean(W): the L2 term grows along to keep the balance.
        decay = self.weight_decay / self.data.batches.loss_scale
        adam = torch.optim.Adam(self.actor.parameters(), lr=self.learning_rate, weight_decay=decay, fused=True)
        return self.falling_rates(adam, [self.schedule == "cosine"])
