"""What is odd about recordings, found while they are read: holes, and gaps in their steps and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.columns import VECTORS, FieldNames
from tailo_pl.data.formats.record_file import RecordFile

TIMES = ("timestamp", "timestamps", "time", "t", "stamp")
_PLACES = 3  # of holes that are named
_GAP = 1.5  # of the usual time between steps
_OTHER_RATE = 1.1  # of the lowest rate: what counts as another one


@dataclass
class Survey:
    """Gathers remarks over all files that are read.

    Attributes:
        remarks: a line each.
        holes: numbers that are none, over all files.
        harmed: steps with at least one of them.
    """

    remarks: list[str] = field(default_factory=list)
    holes: int = 0
    harmed: int = 0
    _rates: dict[str, float] = field(default_factory=dict)

    def of(self, file: RecordFile, layout: FieldNames, names: Mapping[str, list[str]]) -> FileSurvey:
        """The survey of one file."""
        time = next((name for name in TIMES if name in file.fields and file.fields[name].dtype.kind in "fiu"), None)
        return FileSurvey(self, file, layout, names, time)

    def add_rate(self, label: str, rate: float) -> None:
        """Note at what rate a file was recorded."""
        self._rates[label] = rate

    def finish(self) -> None:
        """Hold the files' rates against each other."""
        if self._rates and max(self._rates.values()) > _OTHER_RATE * min(self._rates.values()):
            slow, quick = (one(self._rates, key=lambda key: self._rates[key]) for one in (min, max))
            self.remarks.append(
                f"sampling rates differ: {slow} has {self._rates[slow]:.4g} steps per unit of time, "
                f"{quick} {self._rates[quick]:.4g}"
            )


class FileSurvey:
    """Looks at the batches of one file.

    Attributes:
        time: name of the column of times; None: there is none.
    """

    def __init__(
        self,
        survey: Survey,
        file: RecordFile,
        layout: FieldNames,
        names: Mapping[str, list[str]],
        time: str | None,
    ) -> None:
        self._survey, self._file, self._names = survey, file, names
        self.time = time
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}
        self._columns: dict[str, list[NDArray[Any]]] = {"step": [], "time": []}

    def add(self, arrays: Mapping[str, NDArray[Any]], time: NDArray[Any] | None, row: int) -> None:
        """Take in a batch whose first row is this one."""
        harmed = np.zeros(len(next(iter(arrays.values()))), dtype=bool)
        for role in (*VECTORS, "rewards"):
            if role not in arrays or arrays[role].dtype.kind != "f":
                continue
            holes = ~np.isfinite(arrays[role].reshape(len(arrays[role]), -1))
            if not holes.any():
                continue
            harmed |= holes.any(1)
            self._survey.holes += int(holes.sum())
            names = self._names.get(role) or [role]
            for dimension in np.flatnonzero(holes.any(0)).tolist():
                name = names[dimension] if dimension < len(names) else f"{role}[{dimension}]"
                rows = np.flatnonzero(holes[:, dimension])
                self._counts[name] = self._counts.get(name, 0) + len(rows)
                places = self._places.setdefault(name, [])
                places += [self._file.place(row + int(at)) for at in rows[: _PLACES - len(places)]]
        self._survey.harmed += int(harmed.sum())
        if "step" in arrays:
            self._columns["step"].append(arrays["step"].astype(np.float64))
        if time is not None:
            self._columns["time"].append(time.reshape(-1).astype(np.float64))

    def finish(self, starts: NDArray[np.int64]) -> None:
        """Say what was found; `starts` are the rows at which trajectories begin."""
        path, remarks = self._file.path, self._survey.remarks
        for name, count in self._counts.items():
            more = ", …" if count > len(self._places[name]) else ""
            remarks.append(f"{path}: {name}: {count:,} without a finite number ({', '.join(self._places[name])}{more})")
        for what, parts in self._columns.items():
            if parts:
                self._gaps(what, np.concatenate(parts), starts)

    def _gaps(self, what: str, values: NDArray[np.float64], starts: NDArray[np.int64]) -> None:
        apart = np.diff(values)
        within = np.ones(len(apart), dtype=bool)
        within[starts[1:] - 1] = False
        inside = apart[within & np.isfinite(apart)]
        if not len(inside):
            return
        usual = 1.0 if what == "step" else float(np.median(inside))
        if what == "time" and usual > 0:
            self._survey.add_rate(self._file.label, 1.0 / usual)
        odd = within & ~((apart > 0) & (apart <= _GAP * usual))
        name = self.time if what == "time" else "step"
        if odd.any():
            at = int(np.argmax(odd))
            self._survey.remarks.append(
                f"{self._file.path}: {name}: {int(odd.sum()):,} gaps or steps back, the first from {values[at]:g} to "
                f"{values[at + 1]:g}, where {usual:.4g} apart is usual"
            )
