"""DynamicsBatches: (s, a, r, s') of TA, for models of what an action leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.step_tables import StepTables
from tailo_pl.data.draws import rows_at
from tailo_pl.data.rows import Index
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.data.transitions import Transitions, has_next, usable_steps
from tailo_pl.errors import Refusal, UserError, require_range

HELD_OUT = 5_000  # steps, at most


class DynamicsBatch(NamedTuple):
    """Steps, each tensor (rows, …)."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    next_observations: Tensor
    known: Tensor
    """1 where the next state is known; 0 where the step ended its episode and none is recorded"""
    size: int
    """rows of the global batch"""


class DynamicsBatches(Batches):
    """Steps of TA that have a recorded next state or ended their episode, with the input `rewards`, drawn uniformly.

    Args:
        batch_size: rows per batch, of each member of the ensemble: row i is for member i % members.
        held_out: share of TA's steps kept out of training, of which at most 5,000 are.
    """

    reads = ("rewards",)

    def __init__(self, batch_size: int = 256, held_out: float = 0.2) -> None:
        super().__init__(batch_size)
        require_range("held_out", held_out, 0, 1)
        self.held_out = held_out

    def check(self, task: Task, setting: Setting) -> None:
        try:
            Transitions(task.ta, "next")
        except UserError as error:
            raise Refusal(str(error)) from error
        if len(_usable(task.ta)) < 2:
            raise Refusal("TA: one step with a known next state found, expected more: some are held out")

    @property
    def validates(self) -> bool:
        return True

    @cached_property
    def held_out_positions(self) -> Index:
        """Positions of the steps kept out of training."""
        usable = _usable(self.data.task.ta)
        count = max(1, min(int(self.held_out * len(usable)), HELD_OUT))
        drawn = torch.randperm(len(usable), generator=self.data.generator.at(-1))[:count]
        return np.sort(usable[drawn.numpy()])

    def some(self, most: int) -> DynamicsBatch:
        """All steps that may be drawn, or so many of them at even distances."""
        usable = _usable(self.data.task.ta)
        return self._gatherer()(torch.from_numpy(usable[:: -(-len(usable) // most)]))

    def parts(self, size: int) -> Iterator[DynamicsBatch]:
        """All steps that may be drawn, so many at a time."""
        gathered = self._gatherer()
        for positions in torch.split(torch.from_numpy(_usable(self.data.task.ta)), size):
            yield gathered(positions)

    def validation(self) -> DynamicsBatch:
        return self._gatherer()(torch.from_numpy(self.held_out_positions))

    def maker(self) -> Callable[[int], DynamicsBatch]:
        data, size = self.data, self.batch_size * self.data.members
        left_out = np.zeros(data.task.ta.steps, dtype=bool)
        left_out[self.held_out_positions] = True
        view, gathered = Transitions(data.task.ta, left_out=left_out), self._gatherer()

        def batch_at(step: int) -> DynamicsBatch:
            positions, _ = view.draw(size, data.generator.at(step))
            return gathered(positions)

        return batch_at

    def _gatherer(self) -> Callable[[Tensor], DynamicsBatch]:
        tables, ta = StepTables(self.data), self.data.task.ta
        rewards, follows = torch.from_numpy(self._rewards()), torch.from_numpy(has_next(ta))

        def gathered(positions: Tensor) -> DynamicsBatch:
            rows = rows_at(ta.rows, positions)
            return DynamicsBatch(
                tables.states(rows),
                tables.actions(rows),
                rewards[positions].to(tables.device),
                tables.next_states(rows),
                follows[positions].float().to(tables.device),
                len(positions),
            )

        return gathered

    def _rewards(self) -> NDArray[np.float32]:
        given = self.data.input("rewards", self.data.task.ta.steps)
        if given is None:
            raise UserError("inputs.rewards: not there, expected the rewards that a model is to predict")
        return given.astype(np.float32)


def _usable(ta: Trajectories) -> Index:
    return np.flatnonzero(usable_steps(ta, "next_or_done"))
