"""ClippedGaussian: the head of SMODICE, LobsDICE and DWBC."""

from __future__ import annotations

from torch import Tensor

from tailo_pl.errors import require_range
from tailo_pl.losses.likelihood import Likelihood
from tailo_pl.models.heads.squashed_gaussian import SquashedGaussian

LOG_STD = (-5.0, 2.0)


class ClippedGaussian(SquashedGaussian):
    """A Gaussian squashed by tanh, its mean and log-deviation clipped.

    Args:
        mean_limit: the mean is clipped to +- this.
        likelihood: of recorded actions: `squashed` or `censored`.
    """

    def __init__(self, mean_limit: float, likelihood: Likelihood = "squashed") -> None:
        super().__init__(likelihood)
        require_range("mean_limit", mean_limit, 0)
        self._mean_limit = mean_limit

    def distribution(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = outputs.chunk(2, dim=-1)
        return mean.clamp(-self._mean_limit, self._mean_limit), 2 * log_std.clamp(*LOG_STD)
