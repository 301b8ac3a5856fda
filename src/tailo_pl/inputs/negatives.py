"""Safe negatives: trajectories of TA that are hardly the expert's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError, require_range
from tailo_pl.inputs.stage_input import Origin, StageInput


@dataclass(frozen=True)
class SafeNegatives(StageInput):
    """One mark per trajectory of TA: whether it is a safe negative.

    Args:
        scores: name of the stage whose scores decide.
        beta_1: quantile of the trajectories' mean scores below which they are safe, in (0, 1).
    """

    scores: str
    beta_1: float

    def __post_init__(self) -> None:
        require_range("beta_1", self.beta_1, 0, 1)

    @property
    def stages(self) -> tuple[str, ...]:
        return (self.scores,)

    def make(self, origin: Origin) -> NDArray[np.bool_]:
        return safe_negatives(origin.task.ta.mean(origin.handed_on(self.scores, "scores")), self.beta_1)


def safe_negatives(
    means: NDArray[Any],
    beta_1: float,
) -> NDArray[np.bool_]:
    """Which trajectories are safe negatives: those whose mean score R' lies below the beta_1-quantile of the means.

    Args:
        means: mean of R' over each trajectory of TA.
        beta_1: which quantile, in (0, 1); linear interpolation between order statistics.

    Returns:
        One mark per trajectory.
    """
    require_range("beta_1", beta_1, 0, 1)
    means = np.asarray(means, dtype=np.float64)
    if not np.isfinite(means).all():
        raise UserError("safe negatives: a trajectory's mean score is not finite; the discriminator has diverged")
    safe = means < np.quantile(means, beta_1)
    if not safe.any():
        raise UserError(
            f"beta_1: {beta_1:g} leaves no safe negatives among {len(means)} trajectories "
            "(all mean scores at or above the quantile), expected at least one trajectory below it"
        )
    return np.asarray(safe)
