"""Trajectories: recorded arrays that never change, and an index that says which of their steps are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.rows import Index, Rows
from tailo_pl.errors import UserError

CHUNK_BYTES = 16 << 20
"""How much of an array is gathered at a time where all of it may not fit into memory."""


@dataclass(frozen=True, eq=False)
class Recording:
    """What was recorded, row by row, in the order it happened. Arrays may be memory maps; nobody writes to them.

    Args:
        observations: states, (steps, dim).
        starts: first row of each recorded trajectory, ascending, beginning with 0.
        actions: (steps, dim), or None for recordings of states only.
        next_observations: the state after each step where the source has it. Without it the next row of the
            same trajectory is the next state, and a trajectory's last row has none.
        rewards: (steps,), for reports, and for methods that are given the task's own reward.
        terminals: (steps,), the step ended the episode by the task's own rule.
        timeouts: (steps,), the step ended the episode by its time limit.
        state_names: what the recording calls each number of a state; empty: it does not say.
        action_names: the same for actions.
    """

    observations: NDArray[Any]
    starts: Index
    actions: NDArray[Any] | None = None
    next_observations: NDArray[Any] | None = None
    rewards: NDArray[Any] | None = None
    terminals: NDArray[Any] | None = None
    timeouts: NDArray[Any] | None = None
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.observations.ndim != 2 or 0 in self.observations.shape:
            raise UserError(f"observations: shape {self.observations.shape} found, expected (steps, dim), both above 0")
        steps = len(self.observations)
        for name, array in self.arrays().items():
            if len(array) != steps:
                raise UserError(f"{name}: {len(array)} rows found, expected {steps} as in observations")
        if self.actions is not None and self.actions.ndim != 2:
            raise UserError(f"actions: shape {self.actions.shape} found, expected (steps, dim)")
        if self.next_observations is not None and self.next_observations.shape != self.observations.shape:
            raise UserError(
                f"next_observations: shape {self.next_observations.shape} found, expected {self.observations.shape}"
            )
        for name in ("rewards", "terminals", "timeouts"):
            column = getattr(self, name)
            if column is not None and column.ndim != 1:
                raise UserError(f"{name}: shape {column.shape} found, expected (steps,)")
        starts = self.starts
        if starts.ndim != 1 or not len(starts) or starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= steps:
            raise UserError(f"starts: expected ascending rows from 0 to below {steps}, one per recorded trajectory")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The per-step arrays that are there, by name."""
        others = ("starts", "state_names", "action_names")
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in others}
        return {name: array for name, array in named.items() if array is not None}

    @cached_property
    def is_last(self) -> NDArray[np.bool_]:
        """True for the last recorded row of each trajectory."""
        last = np.zeros(len(self.observations), dtype=bool)
        last[self.starts[1:] - 1] = True
        last[-1] = True
        return last


@dataclass(frozen=True, eq=False)
class Trajectories:
    """A selection of recorded steps, grouped into trajectories. Immutable.

    `take`, `drop` and `concat` change the index, never the arrays, so a step keeps its recorded next state when
    its neighbour is dropped, and nothing is copied.

    Args:
        recording: the arrays underneath.
        rows: of the recording that are kept, in order.
        offsets: trajectory i has the rows at the positions from `offsets[i]` to `offsets[i + 1]`; none is empty.
        origins: where each trajectory came from (expert, random, ...). For reports only: training never sees it.
    """

    recording: Recording
    rows: Rows
    offsets: Index
    origins: NDArray[np.str_]

    def __post_init__(self) -> None:
        rows, offsets, steps = self.rows, self.offsets, len(self.recording.observations)
        if not len(rows):
            raise UserError("trajectories: no step is left")
        if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(rows):
            raise UserError(f"offsets: expected to run from 0 to {len(rows)}, the number of kept steps")
        if (np.diff(offsets) <= 0).any():
            raise UserError("offsets: an empty trajectory found, expected at least one step in each")
        lowest, highest = rows.starts.min(), (rows.starts + np.diff(rows.offsets)).max() - 1
        if lowest < 0 or highest >= steps:
            raise UserError(f"rows: {lowest} to {highest} found, expected 0 to {steps - 1}")
        if len(self.origins) != len(self):
            raise UserError(f"origins: {len(self.origins)} labels found, expected {len(self)}, one per trajectory")

    @classmethod
    def of(cls, recording: Recording, origins: Sequence[str] | NDArray[np.str_] | str = "unknown") -> Trajectories:
        """All steps of a recording; `origins` is one label for all, or one per trajectory."""
        steps = len(recording.observations)
        labels = [origins] * len(recording.starts) if isinstance(origins, str) else list(origins)
        return cls(recording, Rows.all(steps), np.append(recording.starts, steps), np.array(labels, dtype=np.str_))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def steps(self) -> int:
        """Number of kept steps."""
        return len(self.rows)

    @property
    def lengths(self) -> Index:
        """Kept steps per trajectory."""
        return np.diff(self.offsets)

    @property
    def index(self) -> Index:
        """The kept rows of the recording, one number each."""
        return self.rows.to_array()

    @property
    def trajectory_of_step(self) -> Index:
        """For each kept step, the number of its trajectory."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def observations(self) -> NDArray[Any]:
        """The kept states, gathered (a copy unless everything is kept)."""
        return self._gather(self.recording.observations)

    @property
    def actions(self) -> NDArray[Any]:
        """The kept actions, gathered."""
        if self.recording.actions is None:
            raise UserError("actions: none recorded, expected state-action trajectories")
        return self._gather(self.recording.actions)

    @property
    def first_states(self) -> NDArray[Any]:
        """The first kept state of each trajectory."""
        return self.recording.observations[self.rows.at(self.offsets[:-1])]

    @property
    def last_states(self) -> NDArray[Any]:
        """The last kept state of each trajectory."""
        return self.recording.observations[self.rows.at(self.offsets[1:] - 1)]

    @property
    def keeps_first(self) -> NDArray[np.bool_]:
        """For each trajectory, whether its first kept step is the first one recorded."""
        return np.isin(self.rows.at(self.offsets[:-1]), self.recording.starts)

    @property
    def rewards(self) -> NDArray[Any]:
        """The recorded rewards of the kept steps, gathered."""
        if self.recording.rewards is None:
            raise UserError("rewards: none recorded, no returns to report")
        return self._gather(self.recording.rewards)

    @property
    def returns(self) -> NDArray[np.float64]:
        """Sum of the recorded rewards of the kept steps, per trajectory."""
        return np.add.reduceat(self.rewards, self.offsets[:-1], dtype=np.float64)

    @property
    def recorded_returns(self) -> NDArray[np.float64]:
        """Return of each trajectory as it was recorded, steps that are not kept included."""
        if self.recording.rewards is None:
            raise UserError("rewards: none recorded, no returns to report")
        whole = np.add.reduceat(self.recording.rewards, self.recording.starts, dtype=np.float64)
        return whole[np.searchsorted(self.recording.starts, self.rows.at(self.offsets[:-1]), side="right") - 1]

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over each trajectory of one value per kept step."""
        if len(values) != self.steps:
            raise ValueError(f"{len(values)} values for {self.steps} steps")
        return np.add.reduceat(values, self.offsets[:-1], dtype=np.float64) / self.lengths

    def next_observations(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The recorded next state of each kept step, and whether there is one.

        Returns:
            (states, known): where `known` is False the state is the step's own and must not be used.
        """
        if self.recording.next_observations is not None:
            return self._gather(self.recording.next_observations), np.ones(self.steps, dtype=bool)
        index = self.index
        known = ~self.recording.is_last[index]
        return self.recording.observations[index + known], known

    def chunks(self, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The kept rows of one of the recording's arrays, some at a time, without copying where they are in a row."""
        size = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
        for begin in range(0, self.steps, size):
            end = min(begin + size, self.steps)
            part = self.rows.spans(np.array([begin]), np.array([end]))
            first = int(part.starts[0])
            yield array[first : first + len(part)] if len(part.starts) == 1 else array[part.to_array()]

    def take(self, trajectories: NDArray[Any] | Sequence[int]) -> Trajectories:
        """These trajectories, in the order given (numbers, or one boolean per trajectory)."""
        chosen = np.asarray(trajectories)
        if chosen.dtype == bool:
            if len(chosen) != len(self):
                raise ValueError(f"{len(chosen)} marks for {len(self)} trajectories")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(self)):
            raise IndexError(
                f"trajectories {chosen.min()} to {chosen.max()} of {len(self)}, expected 0 to {len(self) - 1}"
            )
        rows = self.rows.spans(self.offsets[chosen], self.offsets[chosen + 1])
        offsets = np.append(0, np.cumsum(self.lengths[chosen]))
        return replace(self, rows=rows, offsets=offsets, origins=self.origins[chosen])

    def drop(self, steps: NDArray[np.bool_]) -> Trajectories:
        """Without the kept steps marked True. A trajectory left empty disappears."""
        keep = ~np.asarray(steps, dtype=bool)
        if len(keep) != self.steps:
            raise ValueError(f"{len(keep)} marks for {self.steps} steps")
        lengths = np.add.reduceat(keep, self.offsets[:-1], dtype=np.int64)
        left = lengths > 0
        # Where keeping begins and ends: the changes along the marks, with nothing kept before and after.
        changes = np.flatnonzero(np.diff(keep, prepend=False, append=False))
        return replace(
            self,
            rows=self.rows.spans(changes[::2], changes[1::2]),
            offsets=np.append(0, np.cumsum(lengths[left])),
            origins=self.origins[left],
        )

    @staticmethod
    def concat(parts: Sequence[Trajectories]) -> Trajectories:
        """All trajectories of several selections of one recording, in order."""
        if any(part.recording is not parts[0].recording for part in parts):
            raise ValueError("concat needs selections of one recording; `stack` puts recordings together")
        shifts = np.cumsum([0] + [part.steps for part in parts])
        return Trajectories(
            parts[0].recording,
            Rows.concat([part.rows for part in parts]),
            np.concatenate([[0], *[part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False)]]),
            np.concatenate([part.origins for part in parts]),
        )

    @staticmethod
    def stack(parts: Sequence[Trajectories]) -> Trajectories:
        """Several selections on one new recording, which holds only the fields that all of them have.

        This is the one operation that copies arrays: a source uses it when a task needs several files. Where there is
        nothing to put together, nothing is copied.
        """
        if len(parts) == 1:
            return parts[0]
        recordings = [part.recording for part in parts]
        shared = set.intersection(*[set(recording.arrays()) for recording in recordings])
        for name in sorted(shared):
            widths = {recording.arrays()[name].shape[1:] for recording in recordings}
            if len(widths) > 1:
                found = sorted(width[0] for width in widths)
                raise UserError(f"{name}: {found} dimensions found, expected the same in every part")
        rows = np.cumsum([0] + [len(recording.observations) for recording in recordings])
        starts = [recording.starts + row for recording, row in zip(recordings, rows, strict=False)]
        arrays = {name: np.concatenate([recording.arrays()[name] for recording in recordings]) for name in shared}
        same = all(recording.state_names == recordings[0].state_names for recording in recordings)
        names = (recordings[0].state_names, recordings[0].action_names) if same else ((), ())
        whole = Recording(
            starts=np.concatenate(starts),
            state_names=names[0],
            action_names=names[1] if "actions" in shared else (),
            **arrays,
        )
        moved = [
            replace(part, recording=whole, rows=part.rows.shifted(row)) for part, row in zip(parts, rows, strict=False)
        ]
        return Trajectories.concat(moved)

    def _gather(self, array: NDArray[Any]) -> NDArray[Any]:
        whole = self.steps == len(array) and len(self.rows.starts) == 1
        return array if whole else array[self.index]
