"""Kitchen data: sequences of four subtasks, demonstrated by the project's own demonstrator."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from itertools import combinations
from typing import NamedTuple

from tailo_pl.data.sources.recipe import Part, Recipe, version_of
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.evaluation import episode_seeds
from tailo_pl.envs.kitchen_tasks import SUBTASKS, TASKS, Layout
from tailo_pl.errors import require_range
from tailo_pl.experts.kitchen.disturbances import CALM, Disturbances

EXPERT = TASKS["complete"]
"""The expert's sequence."""
# Four of the seven, in the order in which they are listed. (The door of the hinge cabinet, once open, is in the
# slide's way.)
OTHERS = tuple(order for order in combinations(SUBTASKS, 4) if order != EXPERT)
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
            "mujoco": version_of("mujoco"),  # contacts differ in the last digit, and then everything does
            "gymnasium-robotics": version_of("gymnasium-robotics"),
        }
        trouble = {"experts": self._experts, "others": self._others, **asdict(Disturbances())}
        return {
            "mixed": Part(
                {**facts, "start_noise": START_NOISE, **trouble},
                lambda seed: _made("mixed", mixed(seed), self._layout, Disturbances(), START_NOISE),
            ),
            "complete": Part(
                {**facts, "episodes": self._complete, "tremble": CALM.tremble},
                lambda seed: _made("complete", complete(seed), self._layout, CALM, 0.0),
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


def _made(
    task: str, episodes: list[Episode], layout: Layout, disturbances: Disturbances, start_noise: float
) -> Trajectories:
    from tailo_pl.data.sources.kitchen_recording import make  # here: to list data needs no simulator

    return make(task, episodes, layout, disturbances, start_noise)
