"""Running a policy: whole episodes, side by side, one policy call per step for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.environment import Environment
from tailo_pl.envs.simulator import Simulator, Step

Actor = Callable[[NDArray[np.float64]], NDArray[Any]]
"""Raw observations (rows, dim) to actions (rows, dim)."""


class Moment(NamedTuple):
    """One step of all running episodes: which episodes, what they saw, did, and got."""

    episodes: NDArray[np.int64]
    observations: NDArray[np.float64]
    actions: NDArray[Any]
    step: Step


class Episodes(NamedTuple):
    """One entry per episode."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    success: NDArray[np.bool_]
    reached: NDArray[np.int64]
    """(episodes, subtasks): the step at which each subtask was first done, 0 for never"""


def episode_seeds(seed: int, purpose: str, count: int) -> NDArray[np.int64]:
    """Seeds of `count` episodes, different for each purpose and unrelated to those of training."""
    digest = hashlib.sha256(f"{purpose}/{seed}".encode()).digest()
    entropy = int.from_bytes(digest[:16], "little")
    return np.random.SeedSequence(entropy).generate_state(count, np.uint32).astype(np.int64)


def play(simulator: Simulator, actor: Actor, seeds: Iterable[int]) -> Iterator[Moment]:
    """Play one episode per seed, as many at once as the simulator has rows; a row that ends takes the next seed."""
    waiting = iter(enumerate(seeds))
    rows = np.empty(0, dtype=np.int64)
    episodes = np.empty(0, dtype=np.int64)
    observations = np.empty((0, simulator.observation_dim))
    free = np.arange(simulator.rows)
    while True:
        started = [(row, *taken) for row, taken in zip(free, waiting, strict=False)]
        if started:
            new_rows, new_episodes, new_seeds = (
                np.array(column, dtype=np.int64) for column in zip(*started, strict=True)
            )
            rows, episodes = np.append(rows, new_rows), np.append(episodes, new_episodes)
            observations = np.concatenate([observations, simulator.reset(new_rows, new_seeds)])
        if not len(rows):
            return
        actions = actor(observations)
        step = simulator.step(rows, actions)
        yield Moment(episodes, observations, actions, step)
        ended = step.terminated | step.truncated
        free = rows[ended]
        rows, episodes, observations = rows[~ended], episodes[~ended], step.observations[~ended]


@dataclass(frozen=True)
class Evaluation:
    """Means over the episodes of one evaluation; `score` is the normalised return, `step` that of training.

    `subtasks` has, where the task knows any, the step at which each was first done, by episode; None for never.
    """

    step: int
    score: float
    score_std: float
    mean_return: float | None
    mean_length: float
    success: float | None
    episodes: int
    subtasks: dict[str, list[int | None]]

    @classmethod
    def failed(cls, step: int, episodes: int) -> Evaluation:
        """What a policy that ended in a numerical error is worth: 0, as in the paper."""
        return cls(step, 0.0, 0.0, None, 0.0, None, episodes, {})


def summarise(episodes: Episodes, environment: Environment, step: int) -> Evaluation:
    """Means over episodes. One that ended in a numerical error scores 0, as in the paper."""
    finite = np.isfinite(episodes.returns)
    scores = np.where(finite, environment.reference.normalise(episodes.returns), 0.0)
    return Evaluation(
        step=step,
        score=float(scores.mean()),
        score_std=float(scores.std()),
        mean_return=float(episodes.returns[finite].mean()) if finite.any() else None,
        mean_length=float(episodes.lengths.mean()),
        success=float(episodes.success.mean()) if environment.knows_success else None,
        episodes=len(scores),
        subtasks={
            name: [int(step) if step else None for step in column]
            for name, column in zip(environment.subtasks, episodes.reached.T, strict=True)
        },
    )


def run_episodes(
    simulator: Simulator, actor: Actor, seeds: NDArray[np.int64], environment: Environment | None = None
) -> Episodes:
    """Return, length, way of ending and success of one episode per seed.

    Args:
        simulator: where to play.
        actor: what acts.
        seeds: one per episode.
        environment: whose subtasks are watched; None: none are.
    """
    count, subtasks = len(seeds), len(environment.subtasks) if environment else 0
    ended, success = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    reached = np.zeros((count, subtasks), dtype=np.int64)
    result = Episodes(np.zeros(count), np.zeros(count, dtype=np.int64), ended, success, reached)
    for moment in play(simulator, actor, seeds.tolist()):
        result.returns[moment.episodes] += moment.step.rewards
        result.lengths[moment.episodes] += 1
        result.terminated[moment.episodes] = moment.step.terminated
        result.success[moment.episodes] |= moment.step.success
        if environment and subtasks:
            done, so_far = environment.subtasks_done(moment.step.observations), reached[moment.episodes]
            steps = result.lengths[moment.episodes, None]
            reached[moment.episodes] = np.where(done & (so_far == 0), steps, so_far)
    return result
