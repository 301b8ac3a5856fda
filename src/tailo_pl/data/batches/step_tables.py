"""StepTables: the recorded steps of TA where training needs them, by the row of the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

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
