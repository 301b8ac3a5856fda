"""Timeline: when each subtask was first done in the trajectories of TS and TA, kept in a run apart from the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.environment import Environment
from tailo_pl.errors import UserError
from tailo_pl.files import read_arrays, write_arrays

TIMELINE = "subtasks.npz"  # in a run's folder, where its environment knows subtasks
NEVER = -1


@dataclass(frozen=True, eq=False)
class Timeline:
    """When each subtask was first done, in steps since a trajectory's first kept state, or `NEVER`.

    Args:
        names: of the subtasks.
        ts: (trajectories of TS, subtasks).
        ta: (trajectories of TA, subtasks).
    """

    names: NDArray[np.str_]
    ts: NDArray[np.int64]
    ta: NDArray[np.int64]

    @classmethod
    def of(cls, task: Task, environment: Environment) -> Timeline:
        ts, ta = (first_done(part, environment) for part in (task.ts, task.ta))
        return cls(np.array(environment.subtasks, dtype=np.str_), ts, ta)

    def write(self, path: Path) -> None:
        """Write as `.npz`, whole or not at all."""
        write_arrays(path, names=self.names, ts=self.ts, ta=self.ta)

    @classmethod
    def read(cls, path: Path) -> Timeline:
        """Read what `write` wrote."""
        timeline = cls(*read_arrays(path, ("names", "ts", "ta"), "the subtasks of TS and TA"))
        for part in (timeline.ts, timeline.ta):
            if part.ndim != 2 or part.dtype.kind != "i" or part.shape[1] != len(timeline.names):
                found = f"{part.dtype} of shape {part.shape}"
                raise UserError(f"{path}: {found} found, expected one step per trajectory and subtask")
        return timeline


def first_done(trajectories: Trajectories, environment: Environment) -> NDArray[np.int64]:
    """(trajectories, subtasks): the first state of each at which a subtask is done."""
    states = trajectories.chunks(trajectories.recording.observations)
    done = np.concatenate([environment.subtasks_done(chunk) for chunk in states])
    step = np.arange(len(done)) - np.repeat(trajectories.offsets[:-1], trajectories.lengths)
    late = np.where(done, step[:, None], len(done))
    first: NDArray[np.int64] = np.minimum.reduceat(late, trajectories.offsets[:-1])
    return np.where(first == len(done), NEVER, first)
