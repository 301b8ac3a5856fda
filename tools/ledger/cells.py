"""The project's own cells, beside the paper's: a flat list in a file, measured as `tailo reproduce` measures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailo_pl.commands.overview import Overview, show_left
from tailo_pl.paper.cells import Cell, combinations, read_entries
from tailo_pl.paper.measure import EPISODES
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import Record
from tailo_pl.paper.reproduce import State, reproduce


@dataclass(frozen=True)
class Listed(Asked):
    """The cells of a list, in its order."""

    listed: tuple[Cell, ...] = ()

    def cells(self) -> list[Cell]:
        return list(self.listed)

    def missing(self, records: Mapping[Cell, Record]) -> list[Cell]:
        return [cell for cell in self.listed if cell not in records]


def read_cells(path: Path, only: str = "") -> Listed:
    """The cells of a list: each entry maps overrides to a value or a list of values, and means all combinations.

    Args:
        path: the list.
        only: takes those whose command contains this.
    """
    found: dict[Cell, None] = {}
    for entry in read_entries(path):
        for overrides in combinations(entry):
            seed = next((one.removeprefix("seed=") for one in overrides if one.startswith("seed=")), "0")
            cell = Cell.of((one for one in overrides if not one.startswith("seed=")), int(seed))
            if only in cell.command:
                found[cell] = None
    return Listed((), (), listed=tuple(found))


def run_missing(cells: Path, only: str = "", episodes: int = EPISODES) -> State:
    """Measure every cell of a list that has no line in the folder `cells` beside it."""
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with Overview() as overview:
        state = reproduce(
            read_cells(cells, only),
            cells.parent / "cells",
            Path("runs"),
            jobs=jobs,
            hours=None,
            episodes=episodes,
            watch=overview.watch,
        )
    show_left(state)
    return state
