"""StepTables: the recorded steps of TA where training needs them, by the row of the recording; all of them in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tailo_pl.data.draws import rows_at
from tailo_pl.data.rows import Index
from tailo_pl.data.transitions import Steps, usable_steps

if TYPE_CHECKING:
    from tailo_pl.data.datamodule import TaskData


class StepTables:
    """States, actions, next states and endings of TA's steps.

    Args:
        data: the data module of the stage.
    """

    def __init__(self, data: TaskData) -> None:
        recording = data.task.ta.recording
        self._gather = data.gather
        self._observations, self._actions = data.place(recording.observations), data.place(recording.actions)
        self.action_dim = self._actions.shape[1]
        self.device = self._observations.device
        # Without recorded next states the next row is the next state, and a last row stands for itself.
        recorded = recording.next_observations
        self._nexts = self._observations if recorded is None else data.place(recorded)
        self._ahead = torch.from_numpy((recorded is None) & ~recording.is_last)
        terminals = recording.terminals
        self._terminals = None if terminals is None else torch.from_numpy(np.asarray(terminals, bool))

    def states(self, rows: Tensor) -> Tensor:
        """The states of these rows."""
        return self._gather(self._observations, rows)

    def actions(self, rows: Tensor) -> Tensor:
        """The actions taken there."""
        return self._gather(self._actions, rows)

    def next_states(self, rows: Tensor) -> Tensor:
        """The state after each step; where none is recorded, its own."""
        return self._gather(self._nexts, rows + self._ahead[rows])

    def done(self, rows: Tensor) -> Tensor:
        """1 where the step ended its episode by the task's own rule, else 0."""
        done = torch.zeros(len(rows)) if self._terminals is None else self._terminals[rows].float()
        return done.to(self.device)


class KnownSteps(NamedTuple):
    """Steps of TA, (rows, …)."""

    observations: Tensor
    actions: Tensor
    next_observations: Tensor
    done: Tensor
    rewards: Tensor
    """of the input `rewards`; 0 without it"""

    def to(self, device: torch.device) -> KnownSteps:
        """On this device."""
        return KnownSteps(*(part.to(device) for part in self))


def known_steps(data: TaskData, steps: Steps, size: int = 16_384) -> Iterator[tuple[Index, KnownSteps]]:
    """All steps of TA of this kind, some at a time, with their positions among the kept ones."""
    tables, ta = StepTables(data), data.task.ta
    usable = np.flatnonzero(usable_steps(ta, steps))
    given = data.whole_input("rewards")
    rewards = np.zeros(ta.steps, dtype=np.float32) if given is None else given[: ta.steps].astype(np.float32)
    for begin in range(0, len(usable), size):
        positions = usable[begin : begin + size]
        rows = rows_at(ta.rows, torch.from_numpy(positions))
        yield (
            positions,
            KnownSteps(
                tables.states(rows),
                tables.actions(rows),
                tables.next_states(rows),
                tables.done(rows),
                torch.from_numpy(rewards[positions]),
            ),
        )
