"""Scores of a figure: what was measured of each of its panels and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import Line, Panel, PaperFigure
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import Curve, Record

NONE = "–"  # what stands where nothing was measured


@dataclass(frozen=True)
class Scores:
    """What was measured of a figure.

    Args:
        figure: which.
        measured: for each panel and name of a line its results, seed by seed.
    """

    figure: PaperFigure
    measured: Mapping[tuple[Panel, str], Sequence[Record]]

    def of(self, panel: Panel, line: str) -> list[float]:
        """The score of each seed."""
        return [record["score"] for record in self.measured[panel, line]]

    def mean(self, panel: Panel, line: str) -> float | None:
        """The mean over seeds; None: nothing was measured."""
        found = self.of(panel, line)
        return float(np.mean(found)) if found else None

    def means(self, panel: Panel) -> dict[str, float]:
        """The means of all lines of a panel that were measured."""
        found = {line.name: self.mean(panel, line.name) for line in self.figure.lines}
        return {name: mean for name, mean in found.items() if mean is not None}

    def shown(self, panel: Panel, line: Line) -> str:
        """Mean and, of several seeds, deviation, as people read it."""
        found = self.of(panel, line.name)
        if not found:
            return NONE
        return f"{np.mean(found):.1f}" + (f" ± {np.std(found):.1f}" if len(found) > 1 else "")

    def row(self, panel: Panel) -> list[str]:
        """The panel in the figure's table: its title, then of each line what is shown, beside what the paper prints."""
        figure, cells = self.figure, [self.figure.title_of(panel)]
        for line in figure.lines:
            cells.append(self.shown(panel, line))
            if line.name in figure.printed:
                cells.append(f"{figure.printed[line.name][figure.panels.index(panel)]:g}")
        return cells

    def curve(self, panel: Panel, line: str, name: str) -> Curve | None:
        """A curve that was kept beside the scores, of the first seed that has it."""
        kept = (record.get("curves", {}).get(name) for record in self.measured[panel, line])
        return next((curve for curve in kept if curve is not None), None)

    @property
    def records(self) -> list[Record]:
        """Everything that was measured."""
        return [record for records in self.measured.values() for record in records]


def scores_of(figure: PaperFigure, asked: Asked, records: Mapping[Cell, Record]) -> Scores:
    """What was measured of a figure with what was asked for: preset, source, seeds."""
    seeds = range(asked.seeds or max([figure.seeds, *(1 + cell.seed for cell in records)]))
    found = {}
    for panel in figure.panels:
        for line in figure.lines:
            cells = (figure.cell(panel, line, asked.common, seed) for seed in seeds)
            found[panel, line.name] = [records[cell] for cell in cells if cell in records]
    return Scores(figure, found)
