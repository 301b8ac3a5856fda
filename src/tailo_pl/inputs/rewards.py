"""Rewards and returns, from a discriminator's scores or as recorded. Pure functions on arrays, and the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.settings import Setting, Task
from tailo_pl.errors import Refusal, require_range
from tailo_pl.inputs.scores import ScoreKind, steps_backwards
from tailo_pl.inputs.stage_input import Origin, StageInput


@dataclass(frozen=True)
class RecordedRewards(StageInput):
    """The recorded reward of every step of TA, for methods that are given the task's own."""

    def check(self, task: Task, setting: Setting) -> None:
        if task.ta.recording.rewards is None:
            raise Refusal("TA: no rewards recorded, expected them: this method learns from the task's own reward")
        broken = np.flatnonzero(~np.isfinite(task.ta.rewards))
        if len(broken):
            raise Refusal(f"TA: the reward of step {broken[0]} is not finite, expected numbers")

    def make(self, origin: Origin) -> NDArray[np.float32]:
        return np.asarray(origin.task.ta.rewards, dtype=np.float32)


@dataclass(frozen=True)
class ScoreRewards(StageInput):
    """A reward for every step of TA: its score.

    Args:
        scores: name of the stage whose scores count.
        kind: `logit` (R = D(s)) or `probability` (R = c(s)).
        absorbing: one number more, the reward of the absorbing state.
    """

    scores: str
    kind: ScoreKind = "logit"
    absorbing: bool = False

    @property
    def stages(self) -> tuple[str, ...]:
        return (self.scores,)

    def make(self, origin: Origin) -> NDArray[np.float32]:
        scores = origin.handed_on(self.scores, "scores")
        if self.absorbing:
            scores = np.append(scores, origin.handed_on(self.scores, "absorbing_score"))
        return step_rewards(scores, self.kind)


@dataclass(frozen=True)
class ScoreReturns(StageInput):
    """For every step of TA the discounted sum of the scores from there on, standardised over all steps.

    Args:
        scores: name of the stage whose scores count.
        discount: of what follows, in [0, 1).
        kind: `logit` (R = D(s)) or `probability` (R = c(s)).
    """

    scores: str
    discount: float
    kind: ScoreKind = "logit"

    def __post_init__(self) -> None:
        require_range("discount", self.discount, 0, 1, closed="[)")

    @property
    def stages(self) -> tuple[str, ...]:
        return (self.scores,)

    def make(self, origin: Origin) -> NDArray[np.float32]:
        rewards = step_rewards(origin.handed_on(self.scores, "scores"), self.kind)
        return trajectory_returns(rewards, origin.task.ta.offsets, self.discount)


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
