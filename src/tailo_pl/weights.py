"""From discriminator scores to safe negatives and to the weights of behaviour cloning. Pure functions on arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError, require_range

ScoreKind = Literal["logit", "probability"]
GROUP_STEPS = 1 << 22


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


def steps_backwards(offsets: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The last step of every trajectory, then the steps before them, and so on.

    Longest trajectory first: those that still have a step at a distance from their end are a prefix of those before,
    and the loop runs over the longest trajectory, not over all steps.
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    ends, lengths = offsets[1:][order] - 1, lengths[order]
    alive = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    for distance, count in enumerate(alive):
        yield ends[:count] - distance
