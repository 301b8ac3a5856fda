"""Layout: which steps of TA make which trajectory and where each came from, kept in a run apart from the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.settings import Task
from tailo_pl.errors import UserError
from tailo_pl.files import read_arrays, write_arrays

LAYOUT = "trajectories.npz"  # in a run's folder: the layout of TA


@dataclass(frozen=True, eq=False)
class Layout:
    """What a reader of a run's scores and weights must know of TA.

    Args:
        offsets: trajectory i has the steps from `offsets[i]` to `offsets[i + 1]`.
        origins: label of each trajectory.
        ts_origins: labels of TS's trajectories.
    """

    offsets: NDArray[np.int64]
    origins: NDArray[np.str_]
    ts_origins: NDArray[np.str_]

    @classmethod
    def of(cls, task: Task) -> Layout:
        return cls(task.ta.offsets, task.ta.origins, np.unique(task.ts.origins))

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @property
    def steps(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def labels(self) -> list[str]:
        """The origins there are, in the order of their first trajectory."""
        return list(dict.fromkeys(self.origins.tolist()))

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """For each trajectory, the number of its origin among the labels."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        return np.array([numbers[origin] for origin in self.origins.tolist()])

    @cached_property
    def experts(self) -> NDArray[np.bool_] | None:
        """Which trajectories are the expert's, where the labels tell: those labelled as TS is, or as expert."""
        known = set(self.ts_origins.tolist()) & set(self.labels)
        known = known or {label for label in self.labels if "expert" in label and "medium" not in label}
        return np.isin(self.origins, sorted(known)) if known and len(known) < len(self.labels) else None

    def mean(self, values: NDArray[np.float32]) -> NDArray[np.float64]:
        """Mean over each trajectory of one value per step."""
        return np.add.reduceat(values, self.offsets[:-1], dtype=np.float64) / self.lengths

    def write(self, path: Path) -> None:
        """Write as `.npz`, whole or not at all."""
        write_arrays(path, offsets=self.offsets, origins=self.origins, ts_origins=self.ts_origins)

    @classmethod
    def read(cls, path: Path) -> Layout:
        """Read what `write` wrote."""
        layout = cls(*read_arrays(path, ("offsets", "origins", "ts_origins"), "the layout of TA"))
        offsets = layout.offsets
        ordered = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0 and bool((np.diff(offsets) > 0).all())
        if not ordered or len(layout.origins) != len(offsets) - 1:
            raise UserError(f"{path}: expected ascending offsets from 0 and one origin per trajectory")
        return layout
