"""Dynamics: trains an ensemble of models on recorded steps, for methods that act in it (MOPO, MOReL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches import DynamicsBatch, DynamicsBatches
from tailo_pl.data.settings import Task
from tailo_pl.errors import UserError, require_range
from tailo_pl.losses.dynamics import disagreement, gaussian_terms
from tailo_pl.models.ensemble import Ensemble
from tailo_pl.models.members import MemberLinear
from tailo_pl.models.networks import ActionBounds
from tailo_pl.models.stage import StageModule

BOUNDS_WEIGHT = 0.01  # of the distance between the bounds of log-variances
LOOKED_AT = 100_000  # steps of TA that statistics are taken from, at most
PART = 10_000  # steps that disagreement is computed of at a time


class Dynamics(StageModule):
    """p(r, s' | s, a) by an ensemble, each member on rows of its own.

    Hands on `parameters`: the ensemble as one vector, with the members that did best on held-out steps and the largest
    disagreement on TA.

    Args:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        ensemble: the models; None: those of MOPO.
        learning_rate: Adam's step size.
        decays: Adam's L2 term of each layer's weights; empty: none.
    """

    needs = (*StageModule.needs, "action_low", "action_high")
    full_precision = True
    several_processes = False  # the held-out choice of members is made by one

    def __init__(
        self,
        observation_dim: int,
        action_low: Sequence[float],
        action_high: Sequence[float],
        ensemble: Ensemble | None = None,
        learning_rate: float = 1e-3,
        decays: Sequence[float] = (),
    ) -> None:
        super().__init__(observation_dim, learning_rate)
        self.bounds = ActionBounds(action_low, action_high)
        self.ensemble = ensemble or Ensemble()
        self.ensemble.prepare(observation_dim, len(action_low))
        self._layers = [layer for layer in self.ensemble.network if isinstance(layer, MemberLinear)]
        for decay in decays:
            require_range("decays", decay, 0, closed="[)")
        if len(decays) not in (0, len(self._layers)):
            raise UserError(f"decays: {len(decays)} given, expected {len(self._layers)}, one per layer, or none")
        self.decays = decays

    @property
    def members(self) -> int:
        """How many networks share a batch."""
        return self.ensemble.members

    def setup(self, stage: str) -> None:
        super().setup(stage)
        if stage == "fit":
            some = self._batches.some(LOOKED_AT)
            targets, known = _targets(some).double(), some.known > 0
            columns = [targets[:, :1], targets[known, 1:]]
            deviations = torch.cat([column.std(0, correction=0) for column in columns]).float()
            means = torch.cat([column.mean(0) for column in columns]).float()
            self.ensemble.targets.set(means, torch.where(deviations > 1e-6, deviations, 1.0))

    @property
    def _batches(self) -> DynamicsBatches:
        batches = self.data.batches
        assert isinstance(batches, DynamicsBatches)
        return batches

    def losses(self, batch: DynamicsBatch, members: int | None = None) -> tuple[Tensor, Tensor]:
        """-log-likelihood (or squared error) and squared error of standardised targets, each (members, rows).

        Where a step's next state is not known its reward alone counts.

        Args:
            batch: steps.
            members: take row i for member i % members alone; None: every row for every member.
        """
        states, actions = self.standardise(batch.observations), self.bounds.normalise(batch.actions)
        targets, counts = self.ensemble.targets(_targets(batch)), batch.known[:, None]
        if members is not None:
            states, actions, targets, counts = (_own(rows, members) for rows in (states, actions, targets, counts))
        mean, log_variance = self.ensemble.distribution(states, actions)
        errors = (mean - targets).square()
        terms = errors if log_variance is None else gaussian_terms(mean, log_variance, targets)
        return _mean_of_known(terms, counts), _mean_of_known(errors, counts)

    def training_step(self, batch: DynamicsBatch, batch_idx: int) -> Tensor:
        terms, errors = self.losses(batch, self.members)
        loss = terms.mean(1).sum()  # each member learns from the mean of its own rows
        if self.ensemble.probabilistic:
            loss = loss + BOUNDS_WEIGHT * (self.ensemble.high - self.ensemble.low).sum()
        self.log_now_and_then(loss, lambda: {"error": errors.mean()})
        return loss

    def validation_step(self, batch: DynamicsBatch, batch_idx: int) -> None:
        """Likelihood and squared error of held-out steps, in units of the targets' deviation."""
        terms, errors = self.losses(batch)
        numbers = {"held_out/loss": terms.mean(), "held_out/error": errors.mean()}
        self.log_dict(numbers, batch_size=batch.size)

    @torch.inference_mode()
    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        ensemble, device = self.ensemble, self.device
        _, errors = self.losses(_moved(self._batches.validation(), device))
        ensemble.chosen.copy_(errors.mean(1).argsort()[: ensemble.best].sort().values)
        found = [self._disagreement(_moved(part, device)).max() for part in self._batches.parts(PART)]
        ensemble.largest_disagreement.copy_(torch.stack(found).max())
        return {"parameters": np.asarray(ensemble.pack().numpy())}

    def _disagreement(self, batch: DynamicsBatch) -> Tensor:
        states, actions = self.standardise(batch.observations), self.bounds.normalise(batch.actions)
        return disagreement(self.ensemble.predict(states, actions).means[..., 1:])

    def configure_optimizers(self) -> Any:
        decayed = [layer.weight for layer in self._layers] if self.decays else []
        groups: list[dict[str, Any]] = [
            {"params": [weight], "weight_decay": decay} for weight, decay in zip(decayed, self.decays, strict=True)
        ]
        kept = {id(weight) for weight in decayed}
        groups.append({"params": [weight for weight in self.parameters() if id(weight) not in kept]})
        return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)


def _targets(batch: DynamicsBatch) -> Tensor:
    """Reward and change of the state, side by side."""
    return torch.cat([batch.rewards[:, None], batch.next_observations - batch.observations], 1)


def _mean_of_known(terms: Tensor, known: Tensor) -> Tensor:
    """Mean over the numbers of each row; those of the change of state count where it is known."""
    return (terms[..., 0] + (terms[..., 1:] * known).sum(-1)) / terms.shape[-1]


def _own(rows: Tensor, members: int) -> Tensor:
    """(members * rows, dim) to (members, rows, dim): row i is that of member i % members."""
    return rows.view(-1, members, rows.shape[-1]).transpose(0, 1)


def _moved(batch: DynamicsBatch, device: torch.device) -> DynamicsBatch:
    return DynamicsBatch._make(part.to(device) if isinstance(part, Tensor) else part for part in batch)
