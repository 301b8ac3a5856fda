"""What is to be run of the paper: the cells that have no result yet, in which order, and how long it will take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import PAPER, PaperFigure
from tailo_pl.paper.records import Record

_FIRST = ("tailo", "bc")  # methods that every cell is to have before others
_USUAL = 60.0  # seconds of a cell of which nothing like it is known
_WHOLE = 1.25  # what a cell takes of what its stages do: its data is read, and its policy played at the end


@dataclass(frozen=True)
class Asked:
    """What was asked for.

    Args:
        figures: which.
        common: overrides that all cells have.
        seeds: how many; None: as many as each figure has.
        only: of these, the cells that have all of these overrides.
        path: the list that the figures are of.
    """

    figures: Sequence[PaperFigure]
    common: tuple[str, ...]
    seeds: int | None = None
    only: tuple[str, ...] = ()
    path: Path = PAPER

    def cells(self) -> list[Cell]:
        """Every cell once, in the order in which they are worth running: TAILO and BC first, each seed by seed."""
        ordered: dict[Cell, tuple[bool, int, int]] = {}
        for number, figure in enumerate(self.figures):
            for cell in self._cells(figure):
                place = (cell.values["method"] not in _FIRST, cell.seed, number)
                ordered[cell] = min(place, ordered.get(cell, place))
        return sorted(ordered, key=lambda cell: ordered[cell])

    def missing(self, records: Mapping[Cell, Record]) -> list[Cell]:
        """Those that have no result, or not all that a figure shows of them."""
        lacking = {cell for figure in self.figures for cell in self._lacking(figure, records)}
        return [cell for cell in self.cells() if cell in lacking]

    def _cells(self, figure: PaperFigure) -> list[Cell]:
        cells = figure.cells(self.common, self.seeds)
        return [cell for cell in cells if set(self.only) <= set(cell.overrides)]

    def _lacking(self, figure: PaperFigure, records: Mapping[Cell, Record]) -> list[Cell]:
        names = set(figure.curves)
        return [
            cell
            for cell in self._cells(figure)
            if cell not in records or not names <= records[cell].get("curves", {}).keys()
        ]


class Times:
    """How long cells take: as others of their method, preset and, where there are any, environment did."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._sums: dict[tuple[str, ...], tuple[float, int]] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record, seconds: float | None = None) -> None:
        """One more that is known.

        Args:
            record: what came of the cell.
            seconds: that all of it took; None: as much longer than its stages as is usual.
        """
        method, preset, env = record["method"], record["preset"], record["env"]
        took = _WHOLE * record["seconds"] if seconds is None else seconds
        for key in ((method, preset, env), (method, preset)):
            total, count = self._sums.get(key, (0.0, 0))
            self._sums[key] = (total + took, count + 1)

    def expected(self, cell: Cell) -> float:
        """Seconds that a cell will take."""
        values = cell.values
        key = (values["method"], values.get("preset", "fast"), values["env"])
        total, count = self._sums.get(key) or self._sums.get(key[:2]) or (_USUAL, 1)
        return total / count


def next_cell(waiting: Sequence[Cell], running: Sequence[Cell]) -> Cell:
    """The first that shares no stage with one that is running; where all may, the first."""
    busy = {cell.stem for cell in running}
    return next((cell for cell in waiting if cell.stem not in busy), waiting[0])
