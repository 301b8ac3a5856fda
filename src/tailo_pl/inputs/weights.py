"""Weights of behaviour cloning: what follows a step along its trajectory. Pure functions on arrays, and the input."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError, require_range
from tailo_pl.inputs.scores import ScoreKind, steps_backwards
from tailo_pl.inputs.stage_input import Origin, StageInput

GROUP_STEPS = 1 << 22


@dataclass(frozen=True)
class TrajectoryWeights(StageInput):
    """W(s, a) of every step of TA.

    Args:
        scores: name of the stage whose scores count.
        alpha: strength of the exponential.
        gamma: discount along the trajectory, in [0, 1).
        kind: `logit` or `probability`.
    """

    scores: str
    alpha: float
    gamma: float
    kind: ScoreKind = "logit"

    def __post_init__(self) -> None:
        require_range("alpha", self.alpha, 0, closed="[)")
        require_range("gamma", self.gamma, 0, 1, closed="[)")

    @property
    def stages(self) -> tuple[str, ...]:
        return (self.scores,)

    def make(self, origin: Origin) -> NDArray[np.float32]:
        return self.of(origin.handed_on(self.scores, "scores"), origin.task.ta.offsets)

    def of(self, scores: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """The weights of steps with these scores."""
        return trajectory_weights(scores, offsets, alpha=self.alpha, gamma=self.gamma, kind=self.kind)


def trajectory_weights(
    scores: NDArray[Any],
    offsets: NDArray[np.int64],
    *,
    alpha: float,
    gamma: float,
    kind: ScoreKind = "logit",
) -> NDArray[np.float32]:
    """Weights of all steps: the discounted sum of exp(alpha*R) over what follows, the last state repeated for ever.

        W_T = exp(alpha*R(s_T)) / (1 - gamma)
        W_t = exp(alpha*R(s_t)) + gamma * W_{t+1}

    divided by the largest of them. All terms are taken relative to the largest exponent, so no score is too large;
    what underflows then is far below the smallest number the result could hold.

    Args:
        scores: the logit D(s) of each step, all trajectories one after the other.
        offsets: where each trajectory begins, and the end of the last.
        alpha: strength of the exponential.
        gamma: discount in [0, 1); 0 weights each step by its own state alone.
        kind: `logit` sums exp(alpha*D(s)); `probability` is the ablation R = 10*c(s), which sums R itself
            (its factor 10 cancels in the division).

    Returns:
        One weight in [0, 1] per step; the largest is 1.
    """
    require_range("gamma", gamma, 0, 1, closed="[)")
    if not np.isfinite(scores).all():
        raise UserError("weights: a score is not finite; the discriminator has diverged")
    # log of each step's own term is alpha*R, or log c = -log(1 + exp(-D)); only its largest value is needed at once.
    log_terms = partial(_log_terms, alpha=alpha, kind=kind)
    peak = max(log_terms(end) for end in (np.min(scores), np.max(scores)))
    weights = np.empty(len(scores), dtype=np.float32)
    # Some trajectories at a time: the sums take several float64 numbers per step, the weights one float32.
    largest, groups = [], _groups(offsets)
    for first, last in groups:
        span = slice(offsets[first], offsets[last])
        terms = log_terms(np.asarray(scores[span], dtype=np.float64))
        terms -= peak
        np.exp(terms, out=terms)
        sums = _discounted_sums(terms, offsets[first : last + 1] - offsets[first], gamma)
        largest.append(sums.max() or 1.0)  # 0: everything here is below what can be told from nothing
        weights[span] = sums / largest[-1]
    for (first, last), group_peak in zip(groups, largest, strict=True):
        if group_peak < max(largest):
            weights[offsets[first] : offsets[last]] *= group_peak / max(largest)
    return weights


def _log_terms(scores: NDArray[Any], alpha: float, kind: ScoreKind) -> NDArray[np.float64]:
    return np.asarray(alpha * scores if kind == "logit" else -np.logaddexp(0.0, -scores), dtype=np.float64)


def _groups(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of trajectories of about `GROUP_STEPS` steps each."""
    borders = np.searchsorted(offsets, np.arange(0, offsets[-1], GROUP_STEPS))
    borders = np.unique(np.append(borders, len(offsets) - 1)).tolist()
    return list(itertools.pairwise(borders))


def _discounted_sums(terms: NDArray[np.float64], offsets: NDArray[np.int64], gamma: float) -> NDArray[np.float64]:
    """W_t for every step, in place, walking all trajectories backwards side by side."""
    if gamma == 0:
        return terms
    following: NDArray[np.float64] | None = None
    for rows in steps_backwards(offsets):
        following = terms[rows] / (1 - gamma) if following is None else terms[rows] + gamma * following[: len(rows)]
        terms[rows] = following
    return terms
