"""Settings `kitchen_kettle` and `kitchen_microwave`: only states at which one subtask is done are watched."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.kitchen_tasks import OBSERVED, POSITIONS, SUBTASKS, Layout
from tailo_pl.errors import UserError, require_range


class KitchenExamples(Setting):
    """TA is a part of the source as it is; TS are states drawn from it, each before one at which a subtask is done.

    A subtask stays done for long, so in nearly all of TS it is done already.

    Args:
        subtask: one of the kitchen's.
        layout: of the states.
        count: how many states to draw.
        seed: of the draw.
        part: of the source.
    """

    ordered = False

    def __init__(
        self, subtask: str, layout: Layout = "robotics", count: int = 500, seed: int = 0, part: str = "mixed"
    ) -> None:
        require_range("setting.count", count, 1, closed="[)")
        if subtask not in SUBTASKS:
            raise UserError(f"setting.subtask: {subtask!r} given, expected one of {', '.join(SUBTASKS)}")
        self.subtask, self.layout, self.count, self.seed, self.part = subtask, layout, count, seed, part

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.part,)

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        from tailo_pl.envs.kitchen import done, positions  # here: what is done knows the simulator's package

        ta = parts[self.part]
        found, expected = ta.recording.observations.shape[1], OBSERVED if self.layout == "robotics" else 2 * POSITIONS
        if found != expected:
            raise UserError(f"setting.layout: {self.layout} given, of {expected} numbers, but states have {found}")
        of_all = [done(positions(states, self.layout)) for states in ta.chunks(ta.recording.observations)]
        reached = np.concatenate(of_all)[:, SUBTASKS.index(self.subtask)]
        before = np.append(reached[1:], False)
        before[ta.offsets[1:] - 1] = False  # what follows there is another trajectory
        candidates = np.flatnonzero(before)
        if len(candidates) < self.count:
            raise UserError(
                f"setting.count: {self.count} examples of {self.subtask} asked for, but only {len(candidates)} states "
                f"of part {self.part} come before one at which it is done"
            )
        outside = np.ones(ta.steps, dtype=bool)
        outside[np.random.default_rng(self.seed).choice(candidates, self.count, replace=False)] = False
        return Task(ts=ta.drop(outside), ta=ta)
