"""How TS and TA are cut from the parts of a source. Pure functions of Trajectories, one class per setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tailo_pl.data.cache import fingerprint
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range


@dataclass(frozen=True)
class Task:
    """What there is to learn from: TS, the expert's states, and TA, state-action trajectories of unknown quality."""

    ts: Trajectories
    ta: Trajectories


class Setting(ABC):
    """A way to cut TS and TA. Its parameters are its whole identity."""

    parts: ClassVar[tuple[str, ...]]
    """which parts of the source it needs"""

    @abstractmethod
    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        """TS and TA from the parts."""


class Examples(Setting):
    """Only examples of success: states drawn from the ends of the trajectories that reach the goal.

    Args:
        origin: label of the trajectories that reach the goal.
        count: how many states to draw.
        last: from how many of each trajectory's last states.
        seed: of the draw.
    """

    parts = ("directions",)

    def __init__(self, origin: str = "left", count: int = 200, last: int = 3, seed: int = 0) -> None:
        require_range("setting.count", count, 1, closed="[)")
        require_range("setting.last", last, 1, closed="[)")
        self.origin, self.count, self.last, self.seed = origin, count, last, seed

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        ta = parts["directions"]
        reached = ta.take(ta.origins == self.origin)
        steps_to_end = np.repeat(reached.offsets[1:], reached.lengths) - np.arange(reached.steps)
        candidates = np.flatnonzero(steps_to_end <= self.last)
        if len(candidates) < self.count:
            raise UserError(
                f"setting.count: {self.count} examples asked for, but only {len(candidates)} states lie among the "
                f"last {self.last} of the {len(reached)} trajectories with origin {self.origin!r}"
            )
        chosen = np.random.default_rng(self.seed).choice(candidates, self.count, replace=False)
        outside = np.ones(reached.steps, dtype=bool)
        outside[chosen] = False
        return Task(ts=reached.drop(outside), ta=ta)


def load_task(source: Source, setting: Setting) -> Task:
    """Read what the setting needs from the source, and cut it."""
    return setting.cut({name: source.part(name) for name in setting.parts})


def task_fingerprint(source: Source, setting: Setting) -> str:
    """Names the data of a task without reading it: the sources' identities, the setting and its parameters."""
    return fingerprint(
        {
            "parts": [source.identity(name) for name in setting.parts],
            "setting": type(setting).__qualname__,
            "parameters": vars(setting),
        }
    )
