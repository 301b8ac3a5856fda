"""TripleBatches: three consecutive states of TA and of TS, for methods that judge pairs and look one pair ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.step_tables import StepTables
from tailo_pl.data.draws import rows_at, uniform_rows
from tailo_pl.data.frames import require_whole_states
from tailo_pl.data.rows import Index
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.data.transitions import consecutive, has_next
from tailo_pl.errors import Refusal


class Triples(NamedTuple):
    """Rows (s, s', s'')."""

    first: Tensor
    second: Tensor
    third: Tensor


class TripleBatch(NamedTuple):
    """Rows of TA, and as many of TS."""

    states: Triples
    actions: Tensor
    """of the first state"""
    expert: Triples
    size: int
    """rows of the global batch"""


class TripleBatches(Batches):
    """Steps of TA that are followed by another kept step, and triples of consecutive states of TS, both uniformly.

    Args:
        batch_size: rows per batch, of each side.
    """

    def check(self, task: Task, setting: Setting) -> None:
        require_whole_states(task.told)
        if not setting.ordered or not len(consecutive_triples(task.ts)):
            raise Refusal("TS: no three consecutive states found, expected some: this method looks two states ahead")
        if not len(followed_steps(task.ta)):
            raise Refusal("TA: no step with two known states behind it is left, expected some to learn from")

    def maker(self) -> Callable[[int], TripleBatch]:
        data, size = self.data, self.batch_size
        ts, ta = data.task.ts, data.task.ta
        drawn_from = torch.from_numpy(followed_steps(ta))
        expert_from = torch.from_numpy(consecutive_triples(ts))
        tables = StepTables(data)
        expert_states = data.place(ts.recording.observations)

        def batch_at(step: int) -> TripleBatch:
            generator = data.generator.at(step)
            chosen = data.share(uniform_rows(len(drawn_from), size, generator))
            expert_chosen = data.share(uniform_rows(len(expert_from), size, generator))
            rows = rows_at(ta.rows, drawn_from[chosen])
            after = rows + 1
            expert = rows_at(ts.rows, expert_from[expert_chosen])
            return TripleBatch(
                Triples(tables.states(rows), tables.states(after), tables.next_states(after)),
                tables.actions(rows),
                Triples(*(data.gather(expert_states, expert + shift) for shift in range(3))),
                size,
            )

        return batch_at


def followed_steps(ta: Trajectories) -> Index:
    """Positions of kept steps whose recorded successor is kept too, and has a known next state."""
    steps = consecutive(ta)
    return np.asarray(steps[has_next(ta)[steps + 1]])


def consecutive_triples(ts: Trajectories) -> Index:
    """Positions of the first of three consecutive states."""
    pairs = consecutive(ts)
    return np.asarray(pairs[np.isin(pairs + 1, pairs)])
