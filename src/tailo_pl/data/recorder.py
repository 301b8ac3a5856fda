"""Recording episodes of a policy in a simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Recording
from tailo_pl.envs.evaluation import Actor, play
from tailo_pl.envs.simulator import Simulator

Progress = Callable[[int], None]
"""Told how many steps were just recorded."""


class _Slice(NamedTuple):
    """What is kept of one moment, already in the precision it is stored in."""

    episodes: NDArray[np.int64]
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminals: NDArray[np.bool_]
    timeouts: NDArray[np.bool_]


def record(
    simulator: Simulator,
    actor: Actor,
    seeds: Iterable[int],
    *,
    steps: int | None = None,
    progress: Progress = lambda steps: None,
) -> Recording:
    """Play one episode per seed and keep everything, in the order of the seeds, as float32.

    Next states are not stored: the next row is the next state, and the last row of an episode has none.

    Args:
        simulator: where to play.
        actor: what acts.
        seeds: one per episode; may be endless when `steps` is given.
        steps: stop once finished episodes fill this many steps, and cut the last one there.
        progress: called after each moment.
    """
    slices: list[_Slice] = []
    born: dict[int, int] = {}  # moment in which each running episode began
    begun = in_finished = 0
    finished: list[int] = []
    for now, moment in enumerate(play(simulator, actor, seeds)):
        step = moment.step
        slices.append(
            _Slice(
                moment.episodes,
                moment.observations.astype(np.float32),
                moment.actions.astype(np.float32),
                step.rewards.astype(np.float32),
                step.terminated,
                step.truncated & ~step.terminated,
            )
        )
        progress(len(moment.episodes))
        ended = moment.episodes[step.terminated | step.truncated].tolist()
        newest = int(moment.episodes.max())  # episodes are numbered as they begin
        born.update(dict.fromkeys(range(begun, newest + 1), now))
        begun = max(begun, newest + 1)
        for episode in ended:
            in_finished += now - born.pop(episode) + 1
        finished += ended
        if steps is not None and in_finished >= steps:
            break
    whole = _Slice(*[np.concatenate(column) for column in zip(*slices, strict=True)])
    # Episodes that were still running when there was enough are left out.
    keep = np.flatnonzero(np.isin(whole.episodes, finished))
    # Within an episode the moments are already in order.
    order = keep[np.argsort(whole.episodes[keep], kind="stable")][:steps]
    return Recording(
        observations=whole.observations[order],
        starts=np.unique(whole.episodes[order], return_index=True)[1].astype(np.int64),
        actions=whole.actions[order],
        rewards=whole.rewards[order],
        terminals=whole.terminals[order],
        timeouts=whole.timeouts[order],
    )
