"""Ensemble: models of the dynamics side by side, which predict what an action leads to and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from tailo_pl.errors import require_range
from tailo_pl.losses.dynamics import bounded_log_variance
from tailo_pl.models.description import Described
from tailo_pl.models.networks import Standardise, mlp

_ACTIVATIONS: dict[str, type[nn.Module]] = {"swish": nn.SiLU, "relu": nn.ReLU}
_ROWS = 2048  # predicted together: what they take fits into a cache


class Outcomes(NamedTuple):
    """What each model predicts of each row, (models, rows, 1 + dim): the reward, then the change of the state."""

    means: Tensor
    deviations: Tensor | None
    """of models that predict them"""


class Ensemble(Described, nn.Module):
    """Networks from a standardised state and an action in [-1, 1] to the reward and the change of the raw state.

    Args:
        members: networks side by side.
        best: how many of them, those with the smallest held-out error, are believed.
        hidden: widths of the hidden layers.
        activation: behind each hidden layer.
        probabilistic: predict a variance beside each mean; otherwise means alone.
    """

    chosen: Tensor
    largest_disagreement: Tensor

    def __init__(
        self,
        members: int = 7,
        best: int = 5,
        hidden: Sequence[int] = (200, 200, 200, 200),
        activation: Literal["swish", "relu"] = "swish",
        probabilistic: bool = True,
    ) -> None:
        super().__init__()
        require_range("ensemble.members", members, 2, closed="[)")
        require_range("ensemble.best", best, 1, members, closed="[]")
        self.members, self.best, self.probabilistic = members, best, probabilistic
        self._hidden, self._activation = hidden, _ACTIVATIONS[activation]

    def prepare(self, observation_dim: int, action_dim: int) -> None:
        """Make the networks; called once, by the module that it belongs to."""
        width = 1 + observation_dim
        outputs = 2 * width if self.probabilistic else width
        inputs = observation_dim + action_dim
        self.network = mlp(inputs, self._hidden, outputs, self._activation, members=self.members)
        self.targets = Standardise(width)
        if self.probabilistic:
            self.low = nn.Parameter(torch.full((width,), -10.0))
            self.high = nn.Parameter(torch.full((width,), 0.5))
        self.register_buffer("chosen", torch.arange(self.best))
        self.register_buffer("largest_disagreement", torch.zeros(()))

    def distribution(self, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor | None]:
        """Mean and log-variance of the standardised targets, (members, rows, 1 + dim).

        Args:
            states: standardised, (members, rows, dim), or (rows, dim) for all members alike.
            actions: in [-1, 1], likewise.
        """
        inputs = torch.cat([states, actions], -1)
        outputs = self.network(inputs.expand(self.members, -1, -1) if inputs.dim() == 2 else inputs)
        if not self.probabilistic:
            return outputs, None
        mean, raw = outputs.chunk(2, -1)
        return mean, bounded_log_variance(raw, self.low, self.high)

    @torch.no_grad()
    def predict(self, states: Tensor, actions: Tensor) -> Outcomes:
        """What every member predicts at standardised states, in the data's units."""
        parts = [
            self.distribution(*part)
            for part in zip(torch.split(states, _ROWS), torch.split(actions, _ROWS), strict=True)
        ]  # fmt: skip
        means = torch.cat([mean for mean, _ in parts], 1) * self.targets.std + self.targets.mean
        if not self.probabilistic:
            return Outcomes(means, None)
        log_variances = torch.cat([log_variance for _, log_variance in parts if log_variance is not None], 1)
        return Outcomes(means, torch.exp(0.5 * log_variances) * self.targets.std)

    def pack(self) -> Tensor:
        """All that was learnt, as one vector."""
        return torch.cat([value.detach().flatten().float().cpu() for value in self.state_dict().values()])

    def unpack(self, packed: Tensor) -> None:
        """Take over what `pack` of an equal ensemble gave."""
        values = list(self.state_dict().values())
        for value, part in zip(values, torch.split(packed, [value.numel() for value in values]), strict=True):
            value.copy_(part.view_as(value))
