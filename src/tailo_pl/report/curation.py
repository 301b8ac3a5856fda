"""Figures of a curation: where the weight lies, and R along the best and the worst episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.figure import Figure, Mark, Series

if TYPE_CHECKING:
    from tailo_pl.data.trajectories import Trajectories
    from tailo_pl.runs.curation import Curation

_EPISODES = 3  # drawn from each end of the ranking


def draw(found: Curation, logs: Trajectories, episodes: NDArray[np.int64], folder: Path) -> list[Path]:
    """Draw both figures as PNG and SVG."""
    return draw_figures(figures(found, logs, episodes), folder)


def figures(found: Curation, logs: Trajectories, episodes: NDArray[np.int64]) -> list[Figure]:
    """The share of the weight over the ranking, and R along some episodes."""
    order = found.ranking
    gathered = np.concatenate([[0.0], np.cumsum(found.share[order])])
    part = np.arange(len(order) + 1) / len(order)
    shares = Figure(
        "curation_share",
        "weight gathered by the best episodes",
        "part of the episodes, best first",
        "part of the weight",
        [Series("weight", part, gathered), Series("all alike", part, part, color=1, dash="dashed")],
    )
    ends = [*order[:_EPISODES], *(order[-_EPISODES:] if len(order) > 2 * _EPISODES else [])]
    lines = []
    for place, number in enumerate(ends):
        values = found.scores.score[logs.offsets[number] : logs.offsets[number + 1]]
        name = f"{logs.origins[number]} {episodes[number]}"
        best = place < _EPISODES
        lines.append(Series(name, np.arange(len(values)), values, color=0 if best else 1, thin=not best, group=name))
    along = Figure(
        "curation_scores",
        "R along the best (blue) and the worst episodes",
        "step",
        "R(s)",
        lines,
        marks=[Mark("y", found.level, "90 % of the expert's states")],
    )
    return [shares, along]
