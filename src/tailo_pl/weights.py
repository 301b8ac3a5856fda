"""From discriminator scores to safe negatives and to the weights of behaviour cloning. Pure functions on arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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

    divided by the largest of them. Everything happens on logarithms, so no score is too large.

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
    weights = np.empty(len(scores), dtype=np.float32)
    groups, largest = _groups(offsets), []
    # Some trajectories at a time: the sums take several float64 numbers per step, the weights one float32.
    for first, last in groups:
        begin, end = offsets[first], offsets[last]
        part = np.asarray(scores[begin:end], dtype=np.float64)
        if not np.isfinite(part).all():
            raise UserError("weights: a score is not finite; the discriminator has diverged")
        # log of each step's own term: alpha*R, or log c = -log(1 + exp(-D))
        terms = alpha * part if kind == "logit" else -np.logaddexp(0.0, -part)
        log_weights = _discounted_log_sums(terms, offsets[first : last + 1] - begin, gamma)
        largest.append(log_weights.max())
        weights[begin:end] = np.exp(log_weights - largest[-1])
    for (first, last), peak in zip(groups, largest, strict=True):
        if peak < max(largest):
            weights[offsets[first] : offsets[last]] *= np.exp(peak - max(largest))
    return weights


def _groups(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of trajectories of about `GROUP_STEPS` steps each."""
    borders = np.searchsorted(offsets, np.arange(0, offsets[-1], GROUP_STEPS))
    borders = np.unique(np.append(borders, len(offsets) - 1)).tolist()
    return list(itertools.pairwise(borders))


def _discounted_log_sums(terms: NDArray[np.float64], offsets: NDArray[np.int64], gamma: float) -> NDArray[np.float64]:
    """log of W_t for every step, walking all trajectories backwards side by side."""
    sums = terms.copy()
    if gamma == 0:
        return sums
    log_gamma = np.log(gamma)
    following: NDArray[np.float64] | None = None
    for rows in steps_backwards(offsets):
        if following is None:
            following = terms[rows] - np.log1p(-gamma)
        else:
            following = np.logaddexp(terms[rows], log_gamma + following[: len(rows)])
        sums[rows] = following
    return sums


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
