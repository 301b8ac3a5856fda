"""From discriminator scores to rewards and returns. Pure functions on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.weights import ScoreKind, steps_backwards


def step_rewards(scores: NDArray[Any], kind: ScoreKind) -> NDArray[np.float32]:
    """The reward of each state: its logit D(s), or its probability c(s) = 1 / (1 + exp(-D(s)))."""
    logits = np.asarray(scores, dtype=np.float64)
    rewards = logits if kind == "logit" else np.exp(-np.logaddexp(0.0, -logits))
    return rewards.astype(np.float32)


def trajectory_returns(rewards: NDArray[Any], offsets: NDArray[np.int64], discount: float) -> NDArray[np.float32]:
    """G_t = r_t + discount * G_{t+1} along each (possibly incomplete) trajectory, 0 behind its end.

    Standardised over all steps: what is made of them depends on differences in units of their spread.
    """
    returns = np.asarray(rewards, dtype=np.float64).copy()
    following = np.zeros(len(offsets) - 1)
    for rows in steps_backwards(offsets):
        returns[rows] += discount * following[: len(rows)]
        following = returns[rows]
    return np.asarray((returns - returns.mean()) / (returns.std() + 1e-8), dtype=np.float32)
