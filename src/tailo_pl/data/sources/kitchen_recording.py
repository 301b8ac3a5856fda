"""Episodes of the kitchen, demonstrated and recorded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from threadpoolctl import threadpool_limits

from tailo_pl.data.progress import listener
from tailo_pl.data.sources.kitchen import EXPERT, Episode
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs.kitchen import Kitchen, KitchenEpisode, laid_out
from tailo_pl.envs.kitchen_tasks import Layout
from tailo_pl.experts.kitchen.demonstrator import Demonstration, demonstrate
from tailo_pl.experts.kitchen.disturbances import Disturbances


def make(
    task: str, episodes: Sequence[Episode], layout: Layout, disturbances: Disturbances, start_noise: float
) -> Trajectories:
    """Demonstrate all episodes, on all cores. Each depends on its own seed alone, whoever plays it."""
    workers = min(os.cpu_count() or 1, len(episodes))
    kitchens = [KitchenEpisode(task, start_noise=start_noise) for _ in range(workers)]
    free: SimpleQueue[KitchenEpisode] = SimpleQueue()
    for kitchen in kitchens:
        free.put(kitchen)

    def play(episode: Episode) -> Demonstration:
        kitchen = free.get()
        try:
            return demonstrate(kitchen, episode.order, episode.seed, disturbances, Kitchen.horizon)
        finally:
            free.put(kitchen)

    tell, played = listener.get(), []
    try:
        # One thread for matrix products: their last digits depend on the number.
        with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(workers) as pool:
            for demonstration in pool.map(play, episodes):
                played.append(demonstration)
                tell(f"kitchen {task}", len(played) * Kitchen.horizon, len(episodes) * Kitchen.horizon)
    finally:
        for kitchen in kitchens:
            kitchen.close()
    return _trajectories(played, [episode.order for episode in episodes], layout, task)


def _trajectories(
    played: Sequence[Demonstration], orders: Sequence[tuple[str, ...]], layout: Layout, task: str
) -> Trajectories:
    lengths = np.array([len(one.states) for one in played])
    last = np.cumsum(lengths) - 1
    finished = np.array([one.finished for one in played])
    ends = {name: np.zeros(int(lengths.sum()), dtype=bool) for name in ("terminals", "timeouts")}
    ends["terminals"][last[finished]] = True
    ends["timeouts"][last[~finished]] = True
    recording = Recording(
        observations=laid_out(np.concatenate([one.states for one in played]), layout, task),
        starts=np.append(0, last[:-1] + 1),
        actions=np.concatenate([one.actions for one in played]),
        rewards=np.concatenate([one.rewards for one in played]),
        terminals=ends["terminals"],
        timeouts=ends["timeouts"],
    )
    return Trajectories.of(recording, ["expert" if order == EXPERT else "other" for order in orders])
