"""PairBatches: TS against TA or its safe negatives, for discriminators."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.draws import UnmarkedRows, rows_at, uniform_rows
from tailo_pl.data.transitions import ended
from tailo_pl.errors import require_range


class PairBatch(NamedTuple):
    """Rows for a discriminator: raw states of TS, raw states of the other side, interpolation numbers."""

    ts: Tensor
    u: Tensor
    mix: Tensor
    size: int
    """rows of the global batch on each side"""
    ts_absorbing: Tensor | None = None
    """1 where a row of TS is the absorbing state; None: it is not part of the data"""
    u_absorbing: Tensor | None = None


class PairBatches(Batches):
    """As many rows of TS as of the other side: all of TA, or what the input `negatives` leaves of it.

    Args:
        batch_size: rows from each side, at most the number of TS's states.
        absorbing: draw the absorbing state too, once per episode that ended.
        held_out: states of TS kept out of training, at most a quarter of them.
    """

    reads = ("negatives",)

    def __init__(self, batch_size: int = 512, absorbing: bool = False, held_out: int = 0) -> None:
        super().__init__(batch_size)
        require_range("held_out", held_out, 0, closed="[)")
        self.absorbing = absorbing
        self.held_out = held_out

    @cached_property
    def held_out_ts(self) -> NDArray[np.int64]:
        """Positions of the states of TS kept out of training."""
        states = self.data.task.ts.steps
        count = min(self.held_out, states // 4)
        return torch.randperm(states, generator=self.data.generator.at(-1))[:count].numpy()

    def maker(self) -> Callable[[int], PairBatch]:
        data, task = self.data, self.data.task
        unlabelled = task.ta
        negatives = data.input("negatives", len(unlabelled))
        if negatives is not None:
            unlabelled = unlabelled.take(negatives.astype(bool))
        ts, u = data.place(task.ts.recording.observations), data.place(unlabelled.recording.observations)
        ts_rows, u_rows = task.ts.rows, unlabelled.rows
        size = min(self.batch_size, len(ts_rows))
        # Numbers beyond the steps stand for the absorbing state.
        ts_count, u_count = (
            part.steps + (int(ended(part).sum()) if self.absorbing else 0) for part in (task.ts, unlabelled)
        )

        draw_ts: Callable[[int, torch.Generator], Tensor] = partial(uniform_rows, ts_count)
        if len(self.held_out_ts):
            marks = np.zeros(ts_count, dtype=bool)
            marks[self.held_out_ts] = True
            draw_ts = UnmarkedRows(marks)

        def batch_at(step: int) -> PairBatch:
            generator = data.generator.at(step)
            rows_ts, rows_u = draw_ts(size, generator), uniform_rows(u_count, size, generator)
            rows_ts, rows_u = data.share(rows_ts), data.share(rows_u)
            mix = data.share(torch.rand(size, generator=generator)).to(ts.device)
            absorbing: list[Tensor | None] = [None, None]
            if self.absorbing:
                absorbing = [
                    (rows >= len(known)).float().to(ts.device) for rows, known in ((rows_ts, ts_rows), (rows_u, u_rows))
                ]
            return PairBatch(
                data.gather(ts, rows_at(ts_rows, rows_ts.clamp(max=len(ts_rows) - 1))),
                data.gather(u, rows_at(u_rows, rows_u.clamp(max=len(u_rows) - 1))),
                mix,
                size,
                *absorbing,
            )

        return batch_at
