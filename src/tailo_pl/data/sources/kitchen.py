"""Kitchen data: sequences of four subtasks, demonstrated by the project's own demonstrator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import combinations
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from tailo_pl.data.progress import listener
from tailo_pl.data.sources.recipe import Part, Recipe
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs.evaluation import episode_seeds
from tailo_pl.envs.kitchen import TASKS, Kitchen, KitchenEpisode, Layout, laid_out
from tailo_pl.errors import require_range
from tailo_pl.experts.kitchen.demonstrator import CALM, Demonstration, Disturbances, demonstrate

EXPERT = TASKS["complete"]
"""The expert's sequence."""
# Sequences take four of the seven in this order. (The door of the hinge cabinet, once open, is in the slide's way.)
HABIT = (
    "microwave",
    "kettle",
    "bottom burner",
    "top burner",
    "light switch",
    "slide cabinet",
    "hinge cabinet",
)
OTHERS = tuple(order for order in combinations(HABIT, 4) if order != EXPERT)
START_NOISE = 0.1  # of the arm in TA, radians


class Episode(NamedTuple):
    """One episode to be demonstrated."""

    order: tuple[str, ...]
    seed: int


class KitchenRecipe(Recipe):
    """Parts `mixed`, the expert's sequence and 34 others, and `complete`, the expert's sequence without trouble.

    Args:
        layout: of the states; the goals of `d4rl` are those of each part's own task.
        experts: episodes of `mixed` in the expert's sequence.
        others: episodes of `mixed` in each of the others.
        complete: episodes of `complete`.
    """

    def __init__(self, layout: Layout = "robotics", experts: int = 220, others: int = 10, complete: int = 3) -> None:
        require_range("env.data.experts", experts, 1, closed="[)")
        require_range("env.data.others", others, 0, closed="[)")
        require_range("env.data.complete", complete, 1, closed="[)")
        self._layout: Layout = layout
        self._experts, self._others, self._complete = experts, others, complete

    @property
    def parts(self) -> dict[str, Part]:
        mixed = partial(mixed_episodes, self._experts, self._others)
        complete = partial(complete_episodes, self._complete)
        facts = {
            "maker": 1,
            "layout": self._layout,
            "mujoco": version("mujoco"),  # contacts differ in the last digit, and then everything does
            "gymnasium-robotics": version("gymnasium-robotics"),
        }
        trouble = {"experts": self._experts, "others": self._others, **asdict(Disturbances())}
        return {
            "mixed": Part(
                {**facts, "start_noise": START_NOISE, **trouble},
                lambda seed: make("mixed", mixed(seed), self._layout, Disturbances(), START_NOISE),
            ),
            "complete": Part(
                {**facts, "episodes": self._complete, "tremble": CALM.tremble},
                lambda seed: make("complete", complete(seed), self._layout, CALM, 0.0),
            ),
        }


def mixed_episodes(experts: int, others: int, seed: int) -> list[Episode]:
    """The episodes of part `mixed`: in the expert's sequence, then in each of the others."""
    orders = [EXPERT] * experts + [order for order in OTHERS for _ in range(others)]
    seeds = episode_seeds(seed, "data/mixed", len(orders)).tolist()
    return [Episode(order, number) for order, number in zip(orders, seeds, strict=True)]


def complete_episodes(count: int, seed: int) -> list[Episode]:
    """The episodes of part `complete`."""
    return [Episode(EXPERT, number) for number in episode_seeds(seed, "data/complete", count).tolist()]


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
