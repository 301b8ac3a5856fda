"""Settings of the grid: the usual ones with less data, and TS or TA changed as people's files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from tailo_pl.data.datamodule import state_statistics
from tailo_pl.data.settings import Examples, ExpertsAndOthers, Task
from tailo_pl.data.trajectories import Recording, Trajectories

Right = Literal["whole", "two_experts", "part_of_ts", "part_of_ta", "one_state"]
Wrong = Literal["degrees", "flipped", "permuted", "elsewhere", "absent"]
FEW = 2  # logs that do what TS shows, where there are few


class FewLogs(ExpertsAndOthers):
    """As `ExpertsAndOthers` with a part of the others, changed.

    Args:
        experts: how many expert trajectories TA holds.
        others: the other part of TA.
        steps: of the others, about.
        change: what is done to it.
    """

    def __init__(
        self, experts: int = 20, others: str = "random", steps: int = 100_000, change: Right | Wrong = "whole"
    ) -> None:
        super().__init__(experts, others)
        self.steps, self.change = steps, change

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        (name,) = self.others
        others = parts[name]
        some = others.take(range(int(np.searchsorted(others.offsets[1:], self.steps)) + 1))
        whole = super().cut({**parts, name: some})
        return changed(whole, whole.ta.origins != "expert", self.change)


class FewExamples(Examples):
    """As `Examples`, changed.

    Args:
        change: what is done to it.
    """

    def __init__(self, change: Right | Wrong = "whole") -> None:
        super().__init__()
        self.change = change

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        whole = super().cut(parts)
        return changed(whole, whole.ta.origins != self.origin, self.change)


def changed(task: Task, others: np.ndarray, change: Right | Wrong) -> Task:
    """The task with less in it, or with a mistake.

    Args:
        task: as it should be.
        others: which trajectories of TA do not do what TS shows.
        change: right data: `whole`: as it is; `two_experts`: two trajectories of TA do what TS shows; `part_of_ts`:
            the last tenth of TS is known; `part_of_ta`: every third step of TA is missing; `one_state`: the last state
            of TS is known. Wrong data: `degrees`: TS in degrees; `flipped`: every other number of TS with the wrong
            sign; `permuted`: TS's numbers one place on; `elsewhere`: every fourth number of TS four of TA's standard
            deviations away; `absent`: none of TA does what TS shows.
    """
    ts, ta = task.ts, task.ta
    position = np.arange(ts.steps)
    if change == "whole":
        return task
    if change == "two_experts":
        return replace(task, ta=ta.take(others | (np.cumsum(~others) <= FEW)))
    if change == "absent":
        return replace(task, ta=ta.take(others))
    if change == "part_of_ta":
        return replace(task, ta=ta.drop(np.arange(ta.steps) % 3 == 1))
    if change in ("part_of_ts", "one_state"):
        kept = 1 if change == "one_state" else ts.steps // 10
        return replace(task, ts=ts.drop(position < ts.steps - kept))
    states = np.array(ts.observations, dtype=np.float64)
    if change == "degrees":
        states = np.degrees(states)
    elif change == "flipped":
        states[:, ::2] *= -1
    elif change == "permuted":
        states = np.roll(states, 1, axis=1)
    else:
        states[:, ::4] += 4 * state_statistics(ta)[1][::4]
    recording = Recording(states.astype(np.float32), ts.offsets[:-1])
    return replace(task, ts=Trajectories.of(recording, ts.origins.tolist()))
