"""What an environment is to the rest of the library: spaces, horizon, reference scores, and simulators of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.plan import Plan
from tailo_pl.envs.reference_scores import Reference
from tailo_pl.envs.simulator import Simulator


class Environment(ABC):
    """A task to act in. Cheap to construct; simulators are made when needed.

    Attributes:
        observation_dim: numbers in a state.
        action_low: lower bound of each action.
        action_high: upper bound of each action.
        horizon: steps after which an episode ends.
        reference: returns that score 0 and 100.
        rows: how many episodes side by side suit it; more only cost memory and set-up.
        knows_success: whether the task can be accomplished, and steps tell when it is.
        subtasks: names of things that can be done on the way, where states show which are; evaluations and reports
            then tell when.
        knows_endings: whether `ended` tells at which states the task itself ends an episode.
        plan: what it looks like from above, where states begin with x and y.
        body: what is simulated, where there are several bodies to choose from and data of one misleads in another.
    """

    observation_dim: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: int
    reference: Reference
    rows: ClassVar[int] = 100
    knows_success: bool = False
    knows_endings: bool = False
    subtasks: tuple[str, ...] = ()
    plan: Plan | None = None
    body: str | None = None

    @abstractmethod
    def simulator(self, rows: int) -> Simulator:
        """A simulator with this many episodes side by side."""

    def subtasks_done(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Which subtasks are done at states (…, observation_dim): one column each."""
        return np.zeros((*states.shape[:-1], len(self.subtasks)), dtype=bool)

    def ended(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the task ends an episode on reaching each of these states, (rows, observation_dim).

        For methods that act in a model of the environment; only where `knows_endings`.
        """
        raise NotImplementedError
