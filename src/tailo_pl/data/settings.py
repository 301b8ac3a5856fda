"""How TS and TA are cut from the parts of a source. Pure functions of Trajectories, one class per setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.frames import into_frame
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range


@dataclass(frozen=True)
class Task:
    """What there is to learn from: TS, the expert's states, and TA, state-action trajectories of unknown quality."""

    ts: Trajectories
    ta: Trajectories
    compared: tuple[int, ...] | None = None  # numbers of a state by which the two are compared; None: all
    told: tuple[int, ...] | None = None  # numbers of a state that TS tells, where its others mean nothing; None: all


class Setting(ABC):
    """A way to cut TS and TA. Its parameters are its whole identity."""

    ordered: ClassVar[bool] = True
    """whether TS is trajectories or parts of them, rather than states in no order"""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """Which parts of the source it needs."""

    @property
    def ta_part(self) -> str:
        """A part that goes into TA."""
        return self.parts[0]

    @abstractmethod
    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        """TS and TA from the parts."""


class Examples(Setting):
    """Only examples of success: states drawn from the ends of the trajectories that reach the goal.

    Args:
        origin: label of the trajectories that reach the goal; None: those that the task ended (terminals).
        count: how many states to draw.
        last: from how many of each trajectory's last states.
        seed: of the draw.
        part: where they are drawn from, all of which is in TA too.
        others: further parts of TA.
    """

    ordered = False

    def __init__(
        self,
        origin: str | None = "left",
        count: int = 200,
        last: int = 3,
        seed: int = 0,
        part: str = "directions",
        others: list[str] | None = None,
    ) -> None:
        require_range("setting.count", count, 1, closed="[)")
        require_range("setting.last", last, 1, closed="[)")
        self.origin, self.count, self.last, self.seed = origin, count, last, seed
        self.part, self.others = part, others or []

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.part, *self.others)

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        whole = parts[self.part]
        reached = whole.take(self._reached(whole))
        steps_to_end = np.repeat(reached.offsets[1:], reached.lengths) - np.arange(reached.steps)
        candidates = np.flatnonzero(steps_to_end <= self.last)
        if len(candidates) < self.count:
            which = "that the task ended" if self.origin is None else f"with origin {self.origin!r}"
            raise UserError(
                f"setting.count: {self.count} examples asked for, but only {len(candidates)} states lie among the "
                f"last {self.last} of the {len(reached)} trajectories {which}"
            )
        chosen = np.random.default_rng(self.seed).choice(candidates, self.count, replace=False)
        outside = np.ones(reached.steps, dtype=bool)
        outside[chosen] = False
        return Task(ts=reached.drop(outside), ta=Trajectories.stack([parts[name] for name in self.parts]))

    def _reached(self, whole: Trajectories) -> NDArray[np.bool_]:
        """Marks the trajectories that reach the goal."""
        if self.origin is None:
            if whole.recording.terminals is None:
                raise UserError(f"setting.origin: null given, but part {self.part} has no terminals recorded")
            return np.asarray(whole.recording.terminals[whole.rows.at(whole.offsets[1:] - 1)], dtype=bool)
        if self.origin not in whole.origins:
            there = dict.fromkeys(whole.origins.tolist())
            raise UserError(f"setting.origin: {self.origin!r} given, expected one of {', '.join(there)}")
        return np.asarray(whole.origins == self.origin)


class ExpertsAndOthers(Setting):
    """TS is one expert trajectory; TA holds the first few expert trajectories and all of other parts.

    Settings standard, smodice, recoil_rfe and recoil_me are this one with their own numbers.

    Args:
        experts: how many expert trajectories TA holds; None: all.
        others: the other part of TA, or several.
        experts_first: whether TA begins with the experts.
        expert: the part of the experts.
        ts: the part of which TS is a trajectory; None: that of the experts.
        ts_trajectory: which one, counted from 0.
    """

    def __init__(
        self,
        experts: int | None,
        others: str | list[str] = "random",
        experts_first: bool = True,
        expert: str = "expert",
        ts: str | None = None,
        ts_trajectory: int = 0,
    ) -> None:
        if experts is not None:
            require_range("setting.experts", experts, 1, closed="[)")
        require_range("setting.ts_trajectory", ts_trajectory, 0, closed="[)")
        self.experts, self.experts_first = experts, experts_first
        self.others = [others] if isinstance(others, str) else others
        self.expert, self.ts, self.ts_trajectory = expert, ts or expert, ts_trajectory

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.expert, *self.others, self.ts)))

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        expert, watched = parts[self.expert], parts[self.ts]
        if len(expert) < (self.experts or 0):
            raise UserError(f"setting.experts: {self.experts} asked for, but the source has {len(expert)}")
        if len(watched) <= self.ts_trajectory:
            raise UserError(f"setting.ts_trajectory: {self.ts_trajectory} given, but {self.ts} has {len(watched)}")
        pieces = [expert.take(range(len(expert))[: self.experts]), *(parts[name] for name in self.others)]
        return Task(
            ts=watched.take([self.ts_trajectory]), ta=Trajectories.stack(pieces if self.experts_first else pieces[::-1])
        )


class IncompleteTA(ExpertsAndOthers):
    """As `ExpertsAndOthers`, with every so many-th step of TA missing.

    Args:
        every: x: step i of TA is missing where i % x == x // 2.
        experts: how many expert trajectories TA holds.
    """

    def __init__(self, every: int, experts: int = 200) -> None:
        require_range("setting.every", every, 2, closed="[)")
        super().__init__(experts)
        self.every = every

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        whole = super().cut(parts)
        missing = np.arange(whole.ta.steps) % self.every == self.every // 2
        return Task(ts=whole.ts, ta=whole.ta.drop(missing))


class IncompleteTS(ExpertsAndOthers):
    """As `ExpertsAndOthers`, with only the first and the last states of the expert trajectory known.

    Args:
        first: how many of its first states.
        last: how many of its last states.
        experts: how many expert trajectories TA holds.
    """

    def __init__(self, first: int, last: int, experts: int = 200) -> None:
        require_range("setting.first", first, 0, closed="[)")
        require_range("setting.last", last, 0, closed="[)")
        require_range("setting.first + setting.last", first + last, 1, closed="[)")
        super().__init__(experts)
        self.first, self.last = first, last

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        whole = super().cut(parts)
        position = np.arange(whole.ts.steps)
        unknown = (position >= self.first) & (position < whole.ts.steps - self.last)
        return Task(ts=whole.ts.drop(unknown), ta=whole.ta)


class Mismatch(ExpertsAndOthers):
    """As `ExpertsAndOthers`, but TS is the trajectory of an expert with another body.

    Where the other body's states are laid out differently, the numbers that have a meaning in TA are scaled from its
    extent to TA's; the rest of TS is TA's mean state, which nothing may look at (`method.dimensions`, `Task.told`).

    Args:
        experts: how many expert trajectories TA holds; None: all.
        others: the other part of TA, or several.
        expert: the part of the experts.
        ts: the part of the expert with the other body.
        dimensions: which numbers of TA's states TS tells; None: all, and they are compared as they are.
        ts_dimensions: which numbers of the other body's states these are, in the same order.
        extent: lowest and highest value of each of these dimensions in TA's frame; None: those of TA's states.
        ts_extent: the same in the other body's; None: those of the trajectory.
    """

    def __init__(
        self,
        experts: int | None = 200,
        others: str | list[str] = "random",
        expert: str = "expert",
        ts: str = "mismatch",
        dimensions: list[int] | None = None,
        ts_dimensions: list[int] | None = None,
        extent: list[list[float]] | None = None,
        ts_extent: list[list[float]] | None = None,
    ) -> None:
        super().__init__(experts, others, expert=expert, ts=ts)
        self.dimensions, self.ts_dimensions = dimensions, ts_dimensions or dimensions
        self.extent, self.ts_extent = extent, ts_extent

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        task = super().cut(parts)
        if self.dimensions is None or self.ts_dimensions is None:
            return task
        ts = into_frame(task.ts, self.ts_dimensions, self.ts_extent, task.ta, self.dimensions, self.extent)
        return Task(ts, task.ta, told=tuple(self.dimensions))


class OfflineRL(Setting):
    """TA is a data set as it is; TS is its trajectory of highest return.

    Args:
        dataset: which part of the source.
    """

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.dataset,)

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        ta = parts[self.dataset]
        return Task(ts=ta.take([int(np.argmax(ta.returns))]), ta=ta)


class Given(Setting):
    """TS and TA are two parts of the source as they are.

    Args:
        ts: the part that is TS.
        ta: the part that is TA.
        ts_trajectories: only the first so many trajectories of TS; None: all.
    """

    def __init__(self, ts: str = "ts", ta: str = "ta", ts_trajectories: int | None = None) -> None:
        if ts_trajectories is not None:
            require_range("setting.ts_trajectories", ts_trajectories, 1, closed="[)")
        self.ts, self.ta, self.ts_trajectories = ts, ta, ts_trajectories

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.ts, self.ta)

    @property
    def ta_part(self) -> str:
        return self.ta

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        ts, wanted = parts[self.ts], self.ts_trajectories
        if wanted is not None and len(ts) < wanted:
            raise UserError(f"setting.ts_trajectories: {wanted} asked for, but {self.ts} has {len(ts)}")
        return Task(ts=ts if wanted is None else ts.take(range(wanted)), ta=parts[self.ta])


def load_task(source: Source, setting: Setting) -> Task:
    """Read what the setting needs from the source, and cut it."""
    return setting.cut({name: source.part(name) for name in setting.parts})
