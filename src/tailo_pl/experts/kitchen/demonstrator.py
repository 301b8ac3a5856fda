"""Sequences of skills, played in a kitchen that does not always obey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.kitchen import KitchenEpisode
from tailo_pl.experts.kitchen.arm import Arm, Vector
from tailo_pl.experts.kitchen.disturbances import Disturbances, Trouble
from tailo_pl.experts.kitchen.skills import SKILLS


class Demonstrator:
    """Knows what to do next in a kitchen: the first of its subtasks that is not finished.

    Args:
        episode: the kitchen; it is only looked at.
        order: the subtasks.
    """

    def __init__(self, episode: KitchenEpisode, order: Sequence[str]) -> None:
        self._arm = Arm(episode.model, episode.data)
        self._skills = [SKILLS[subtask] for subtask in order]

    def act(self) -> Vector | None:
        """The next action; None: everything is finished, and the hand has let go."""
        arm = self._arm
        finished = [skill for skill in self._skills if skill.finished(arm)]
        waiting = next((skill for skill in self._skills if not skill.finished(arm)), None)
        if waiting is not None and (contact := waiting.contact(arm) or waiting.approach(arm)) is not None:
            return arm.action(contact)
        for skill in finished:
            if (leaving := skill.leave(arm, skill.fingers if waiting is None else waiting.fingers)) is not None:
                return arm.action(leaving)
        return None if waiting is None else arm.action(waiting.motion(arm))


class Demonstration(NamedTuple):
    """One episode, one entry per step; states in FrankaKitchen's layout."""

    states: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    finished: bool


def demonstrate(
    episode: KitchenEpisode, order: Sequence[str], seed: int, disturbances: Disturbances, horizon: int
) -> Demonstration:
    """Play a sequence of subtasks, until all are finished or time is up.

    Args:
        episode: the kitchen to play in; its rewards are recorded.
        order: the subtasks.
        seed: of everything that is random in the episode.
        disturbances: what happens to the arm.
        horizon: steps at most.
    """
    state, _ = episode.reset(seed=seed)
    demonstrator, trouble = Demonstrator(episode, order), Trouble(disturbances, np.random.default_rng(seed))
    steps: list[tuple[Vector, Vector, float]] = []
    while (action := demonstrator.act()) is not None and len(steps) < horizon:
        following, reward, *_ = episode.step(trouble.disturb(action))
        steps.append((state, action, reward))
        state = following
    states, actions, rewards = (np.array(column, dtype=np.float32) for column in zip(*steps, strict=True))
    return Demonstration(states, actions, rewards, action is None)
