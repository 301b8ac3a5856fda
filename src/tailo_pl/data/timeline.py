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
from tailo_pl.files import whole_file

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
        with whole_file(path) as scratch, scratch.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, names=self.names, ts=self.ts, ta=self.ta)

    @classmethod
    def read(cls, path: Path) -> Timeline:
        """Read what `write` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                timeline = cls(file["names"], file["ts"], file["ta"])
        except Exception as error:  # a damaged archive raises whatever its reader runs into
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{path}: cannot be read as the subtasks of TS and TA ({reason})") from error
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
