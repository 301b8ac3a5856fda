"""Settings of the grid: the usual ones with less data, and TS spoilt in a way that people's files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from tailo_pl.data.datamodule import state_statistics
from tailo_pl.data.settings import Examples, ExpertsAndOthers, Task
from tailo_pl.data.trajectories import Recording, Trajectories

Spoil = Literal["nothing", "degrees", "flipped", "permuted", "elsewhere", "absent", "one_state"]


class FewLogs(ExpertsAndOthers):
    """As `ExpertsAndOthers` with a part of the others, and something wrong.

    Args:
        experts: how many expert trajectories TA holds.
        others: the other part of TA.
        steps: of the others, about.
        spoil: what is wrong.
    """

    def __init__(self, experts: int = 20, others: str = "random", steps: int = 200_000, spoil: Spoil = "nothing"):
        super().__init__(experts, others)
        self.steps, self.spoil = steps, spoil

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        others = parts[self.others]
        some = others.take(range(int(np.searchsorted(others.offsets[1:], self.steps)) + 1))
        whole = super().cut({**parts, self.others: some})
        return spoilt(whole, whole.ta.origins != "expert", self.spoil)


class FewExamples(Examples):
    """As `Examples`, with something wrong.

    Args:
        spoil: what is wrong.
    """

    def __init__(self, spoil: Spoil = "nothing") -> None:
        super().__init__()
        self.spoil = spoil

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        whole = super().cut(parts)
        return spoilt(whole, whole.ta.origins != self.origin, self.spoil)


def spoilt(task: Task, others: np.ndarray, spoil: Spoil) -> Task:
    """The task with a mistake in it.

    Args:
        task: as it should be.
        others: which trajectories of TA do not do what TS shows.
        spoil: `degrees`: TS in degrees; `flipped`: every other number of TS with the wrong sign; `permuted`: TS's
            numbers one place on; `elsewhere`: every fourth number of TS four of TA's standard deviations away;
            `absent`: none of TA does what TS shows; `one_state`: only the last state of TS is known.
    """
    states = np.array(task.ts.observations, dtype=np.float64)
    if spoil == "nothing":
        return task
    if spoil == "absent":
        return replace(task, ta=task.ta.take(others))
    if spoil == "one_state":
        return replace(task, ts=task.ts.drop(np.arange(task.ts.steps) < task.ts.steps - 1))
    if spoil == "degrees":
        states = np.degrees(states)
    elif spoil == "flipped":
        states[:, ::2] *= -1
    elif spoil == "permuted":
        states = np.roll(states, 1, axis=1)
    elif spoil == "elsewhere":
        states[:, ::4] += 4 * state_statistics(task.ta)[1][::4]
    recording = Recording(states.astype(np.float32), task.ts.offsets[:-1])
    return replace(task, ts=Trajectories.of(recording, task.ts.origins.tolist()))
