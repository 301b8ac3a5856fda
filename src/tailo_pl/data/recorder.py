"""Recording episodes of a policy in a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Recording
from tailo_pl.envs.evaluation import Actor, Moment, play
from tailo_pl.envs.simulator import Simulator

Progress = Callable[[int], None]
"""Told how many steps were just recorded."""


def record(
    simulator: Simulator,
    actor: Actor,
    seeds: Iterable[int],
    *,
    steps: int | None = None,
    progress: Progress = lambda steps: None,
) -> Recording:
    """Play one episode per seed and keep everything, in the order of the seeds, as float32.

    Args:
        simulator: where to play.
        actor: what acts.
        seeds: one per episode; may be endless when `steps` is given.
        steps: stop once finished episodes fill this many steps, and cut the last one there.
        progress: called after each moment.
    """
    moments: list[Moment] = []
    recorded = 0
    for moment in play(simulator, actor, seeds):
        moments.append(moment)
        recorded += len(moment.episodes)
        progress(len(moment.episodes))
        # Enough even when every row is in the middle of an episode, which is then left out.
        if steps is not None and recorded >= steps + simulator.rows * simulator.horizon:
            break
    episodes = np.concatenate([moment.episodes for moment in moments])
    ended = np.concatenate([moment.episodes[moment.step.terminated | moment.step.truncated] for moment in moments])
    finished = np.zeros(episodes.max() + 1, dtype=bool)
    finished[ended] = True
    order = np.argsort(episodes, kind="stable")  # within an episode the moments are already in order
    order = order[finished[episodes[order]]][:steps]
    _, starts = np.unique(episodes[order], return_index=True)

    def column(pick: Callable[[Moment], NDArray[Any]], dtype: type = np.float32) -> NDArray[Any]:
        return np.asarray(np.concatenate([pick(moment) for moment in moments]).astype(dtype)[order])

    return Recording(
        observations=column(lambda m: m.observations),
        starts=starts.astype(np.int64),
        actions=column(lambda m: m.actions),
        next_observations=column(lambda m: m.step.observations),
        rewards=column(lambda m: m.step.rewards),
        terminals=column(lambda m: m.step.terminated, bool),
        timeouts=column(lambda m: m.step.truncated & ~m.step.terminated, bool),
    )
