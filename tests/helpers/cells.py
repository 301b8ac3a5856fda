"""Results of cells, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import PaperFigure
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import Record
from tailo_pl.paper.scores import Scores, scores_of

FAST = ("preset=fast",)


def result(cell: Cell, score: float, **others: Any) -> Record:
    """A result of a cell with this score."""
    values = cell.values
    made: dict[str, Any] = {
        "cell": cell.text, "seed": cell.seed, "env": values["env"], "setting": values["setting"],
        "method": values["method"], "preset": "fast", "source": "bundled", "score": score, "score_std": 10.0,
        "episodes": 100, "success": None, "evaluations": [[100, score, 1.0]], "failure": None,
        "stages": {"policy": [100, "all steps done", 1.0]}, "cpu_seconds": 1.0, "seconds": 30.0,
        "data": {"fingerprint": "f", "recipe": "r", "ts": [1, 9], "ta": [2, 18]},
        "config": "c", "verdict": "good", "versions": {},
    }  # fmt: skip
    return made | others  # type: ignore[return-value]


def results(figure: PaperFigure, scores: Mapping[tuple[str, str], float | list[float]]) -> dict[Cell, Record]:
    """Results by titles of panels and names of lines; several scores are seeds."""
    titles = {figure.title_of(panel): panel for panel in figure.panels}
    lines = {line.name: line for line in figure.lines}
    made = {}
    for (title, name), found in scores.items():
        for seed, score in enumerate(found if isinstance(found, list) else [found]):
            cell = figure.cell(titles[title], lines[name], FAST, seed)
            made[cell] = result(cell, score)
    return made


def scores(figure: PaperFigure, found: Mapping[tuple[str, str], float | list[float]]) -> Scores:
    """The same as what a claim is judged by."""
    return scores_of(figure, Asked([figure], FAST), results(figure, found))
