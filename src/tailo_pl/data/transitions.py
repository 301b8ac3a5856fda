"""Transitions: steps as (s, a, s', done), an index view over Trajectories. Nothing of the data is copied."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.draws import UnmarkedRows, uniform_rows
from tailo_pl.data.rows import Index
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

Steps = Literal["all", "next_or_done", "next"]


class Transitions:
    """Which steps can be drawn, and where their next states stand in the recording.

    A step's next state is the one recorded after it, whether or not that one's own step is kept: with steps missing, a
    state may be reached and never left, or left and never reached. The last row of an episode that ran out of
    time has no next state, even where the source wrote one down.

    Args:
        trajectories: what to view.
        steps: `next` takes steps with a recorded next state; `next_or_done` also those that ended their episode,
            for methods that ignore the next state there; `all` takes every step.
        absorbing: draw the absorbing state too, once for every kept step that ended its episode.
        left_out: marks kept steps that are not to be drawn.
    """

    def __init__(
        self,
        trajectories: Trajectories,
        steps: Steps = "next_or_done",
        absorbing: bool = False,
        left_out: NDArray[np.bool_] | None = None,
    ) -> None:
        self.trajectories = trajectories
        left_out = np.zeros(trajectories.steps, dtype=bool) if left_out is None else left_out
        usable = usable_steps(trajectories, steps) & ~left_out
        self._rows = UnmarkedRows(~usable)
        self._loops = int((ended(trajectories) & ~left_out).sum()) if absorbing else 0
        if not len(self._rows):
            raise UserError("TA: no step with a known next state is left, expected some to learn from")

    def __len__(self) -> int:
        return len(self._rows) + self._loops

    def draw(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Positions among the kept steps, uniformly; and whether the row stands for the absorbing state instead."""
        numbers = uniform_rows(len(self), size, generator)
        absorbing = numbers >= len(self._rows)
        return self._rows.at(numbers.clamp(max=len(self._rows) - 1)), absorbing

    @cached_property
    def initial_rows(self) -> Index:
        """Rows of the recording at which episodes begin; a trajectory that lost its first step gives none."""
        ta = self.trajectories
        return ta.rows.at(ta.offsets[:-1])[ta.keeps_first]


def usable_steps(trajectories: Trajectories, steps: Steps) -> NDArray[np.bool_]:
    """Marks the kept steps with a recorded next state (`next`), also those that ended their episode (`next_or_done`),
    or `all`."""
    if steps == "all":
        return np.ones(trajectories.steps, dtype=bool)
    return has_next(trajectories) | (ended(trajectories) if steps == "next_or_done" else False)


def ended(trajectories: Trajectories) -> NDArray[np.bool_]:
    """Whether each kept step ended its episode by the task's own rule."""
    terminals = trajectories.recording.terminals
    if terminals is None:
        return np.zeros(trajectories.steps, dtype=bool)
    return np.asarray(terminals[trajectories.index], dtype=bool)


def has_next(trajectories: Trajectories) -> NDArray[np.bool_]:
    """Whether the state after each kept step is known."""
    recording, index = trajectories.recording, trajectories.index
    known = ~recording.is_last[index] if recording.next_observations is None else np.ones(len(index), dtype=bool)
    if recording.timeouts is not None:
        known &= ~np.asarray(recording.timeouts[index], dtype=bool) | ended(trajectories)
    return np.asarray(known)


def consecutive(trajectories: Trajectories) -> Index:
    """Positions of kept steps whose recorded successor is kept too: the pairs (s, s') that states alone give."""
    index = trajectories.index
    follows = np.zeros(len(index), dtype=bool)
    follows[:-1] = (np.diff(index) == 1) & ~trajectories.recording.is_last[index[:-1]]
    return np.flatnonzero(follows)


def shared_steps(trajectories: Trajectories, others: Trajectories) -> NDArray[np.bool_]:
    """Marks the steps whose state and action are, to the last bit, those of a step of `others`."""
    index = trajectories.index
    theirs = _whole_rows(others, np.arange(others.steps))
    # One number rules out nearly all steps, so whole rows are gathered for few of them.
    near = np.flatnonzero(np.isin(trajectories.recording.observations[index, 0], others.observations[:, 0]))
    marks = np.zeros(len(index), dtype=bool)
    marks[near] = np.isin(_whole_rows(trajectories, near), theirs)
    return marks


def _whole_rows(trajectories: Trajectories, positions: Index) -> NDArray[Any]:
    """State and action of each of these steps as one opaque item."""
    recording, rows = trajectories.recording, trajectories.rows.at(positions)
    if recording.actions is None:
        raise UserError("actions: none recorded, expected state-action trajectories")
    joined = np.hstack([recording.observations[rows], recording.actions[rows]]).astype(np.float32)
    return np.ascontiguousarray(joined).view(f"V{joined.shape[1] * joined.itemsize}")[:, 0]
