"""A figure as the paper lays it out: small panels, a curve for each line with its band over seeds, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError
from tailo_pl.files import whole_file
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import Panel, PaperFigure
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import Record
from tailo_pl.paper.scores import NONE, Scores, scores_of
from tailo_pl.report.drawing import DASHES, METADATA, STYLE, color_of
from tailo_pl.report.figure import colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGH = 2.1, 1.55  # inches of a panel
_FEWEST = 3  # evaluations that make a curve
_GREY = "#888888"


def require_matplotlib() -> None:
    """Say before hours of work that there is nothing to draw with."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UserError("reproduce: matplotlib is not installed; pip install 'tailo_pl[report]' brings it") from error


def draw(figure: PaperFigure, asked: Asked, records: Mapping[Cell, Record], folder: Path) -> Path | None:
    """Draw what was measured of a figure; None: nothing was.

    Args:
        figure: which.
        asked: preset, source and seeds.
        records: results, by cell.
        folder: where the file goes.
    """
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    scores = scores_of(figure, asked, records)
    if not scores.records:
        return None
    rows = [("", scores)] if figure.kind != "trajectories" else [("R", scores), ("W", scores)]
    columns = figure.columns or min(4, len(figure.panels))
    deep = math.ceil(len(figure.panels) / columns) * len(rows)
    path = folder / f"{figure.name}.svg"
    with matplotlib.rc_context({**STYLE, "font.size": 6.5, "axes.titlesize": 7}):
        canvas = Canvas(figsize=(_WIDE * columns + 0.3, _HIGH * deep + 0.5))
        axes = canvas.subplots(deep, columns, squeeze=False).ravel()
        for axis in axes[len(figure.panels) * len(rows) :]:
            axis.set_visible(False)
        places = [(panel, what) for what, _ in rows for panel in figure.panels]
        for axis, (panel, what) in zip(axes, places, strict=False):
            _panel(scores, panel, what, axis)
        named = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        below = 0.34 / (_HIGH * deep + 0.5)
        canvas.legend(list(named.values()), list(named), loc="lower center", ncols=min(len(named), 3 * columns) or 1)
        canvas.tight_layout(rect=(0, below, 1, 1), pad=0.4, h_pad=0.9)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as scratch:
                canvas.savefig(scratch, format="svg", metadata=METADATA[".svg"])
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    return path


def _panel(scores: Scores, panel: Panel, what: str, axis: Axes) -> None:
    figure = scores.figure
    axis.set_title(figure.title_of(panel) + (f": {what}" if what else ""))
    if figure.kind == "trajectories":
        _trajectories(scores, panel, what, axis)
    elif figure.kind == "quantities":
        _quantities(scores, panel, axis)
    else:
        shown = _curves if figure.kind == "curves" and _has_curves(scores) else _bars
        shown(scores, panel, axis)
        _one_scale(scores, panel, axis)
    if not axis.has_data():
        axis.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axis.transAxes, color=_GREY)
        axis.set_xticks([])
        axis.set_yticks([])


def _has_curves(scores: Scores) -> bool:
    """Whether most runs were evaluated so often that a curve says more than where it ends."""
    counts = [len({step for step, *_ in record["evaluations"]}) for record in scores.records]
    return float(np.median(counts)) >= _FEWEST


def _one_scale(scores: Scores, panel: Panel, axis: Axes) -> None:
    """From zero to a little above the highest score of the environment: a small difference looks small, and panels of
    the same environment can be compared."""
    alike = [other for other in scores.figure.panels if other.env == panel.env]
    records = [
        record for other in alike for line in scores.figure.lines for record in scores.measured[other, line.name]
    ]
    found = [value for record in records for value in (record["score"], *(one[1] for one in record["evaluations"]))]
    places = [scores.figure.panels.index(other) for other in alike]
    found += [printed[place] for printed in scores.figure.printed.values() for place in places]
    if found and max(found) > 0:
        axis.set_ylim(min(0.0, *found), 1.15 * max(found))


def _curves(scores: Scores, panel: Panel, axis: Axes) -> None:
    looks = colors(len(scores.figure.lines))
    longest = max((one[0] for record in scores.records for one in record["evaluations"]), default=0)
    for line, (color, dash) in zip(scores.figure.lines, looks, strict=True):
        curves = [record["evaluations"] for record in scores.measured[panel, line.name] if record["evaluations"]]
        if not curves:
            continue
        steps = np.array(sorted({one[0] for curve in curves for one in curve} | {longest}))
        values = np.array([_held(curve, steps) for curve in curves])
        mean, spread = values.mean(0), values.std(0)
        axis.plot(steps, mean, DASHES[dash], color=color_of(color), linewidth=1.0, label=line.name)
        if len(curves) > 1:
            axis.fill_between(steps, mean - spread, mean + spread, color=color_of(color), alpha=0.18, linewidth=0)
    axis.xaxis.set_major_formatter("{x:,.6g}")


def _held(curve: Sequence[Sequence[float]], steps: NDArray[Any]) -> NDArray[np.float64]:
    """A seed's scores at these steps: between evaluations in proportion, behind its last one as that."""
    return np.asarray(np.interp(steps, [one[0] for one in curve], [one[1] for one in curve]))


def _bars(scores: Scores, panel: Panel, axis: Axes) -> None:
    if not scores.means(panel):
        return
    printed, place = scores.figure.printed, scores.figure.panels.index(panel)
    for number, (line, (color, _)) in enumerate(
        zip(scores.figure.lines, colors(len(scores.figure.lines)), strict=True)
    ):
        found = scores.of(panel, line.name)
        faded = 1.0 if number < 6 else 0.5
        if found or line.name in printed:
            axis.bar(
                [number], [float(np.mean(found)) if found else 0.0], color=color_of(color), alpha=faded, label=line.name
            )
        if not found:
            axis.annotate(NONE, (number, 0), (0, 1), textcoords="offset points", ha="center", color=_GREY, fontsize=10)
            continue
        axis.plot([number] * len(found), found, ".", color="#1b1f24", markersize=2.5)
        axis.annotate(
            f"{np.mean(found):.0f}", (number, max(*found, 0.0)), (0, 2), textcoords="offset points", ha="center"
        )
    for number, line in enumerate(scores.figure.lines):
        if line.name in printed:
            axis.plot(
                [number - 0.4, number + 0.4], [printed[line.name][place]] * 2, "--", color="#1b1f24", linewidth=0.9
            )
    axis.set_xticks([])
    axis.set_xlim(-0.6, len(scores.figure.lines) - 0.4)  # every line has its place, measured or not


def _trajectories(scores: Scores, panel: Panel, what: str, axis: Axes) -> None:
    (line,) = scores.figure.lines
    for who, color in (("expert", 1), ("non-expert", 2)):
        for name, dash in ((f"{who} {what}", "-"), (f"all {who} {what}", "--")):
            curve = scores.curve(panel, line.name, name)
            if curve is not None:
                axis.plot(*curve, dash, color=color_of(color), linewidth=1.0, label=name.rpartition(" ")[0])


def _quantities(scores: Scores, panel: Panel, axis: Axes) -> None:
    dashes = ("-", "--", ":")
    for line, (color, _) in zip(scores.figure.lines, colors(len(scores.figure.lines)), strict=True):
        for number, name in enumerate(scores.figure.curves):
            curve = scores.curve(panel, line.name, name)
            if curve is not None:
                look = dashes[number % len(dashes)]
                axis.plot(*curve, look, color=color_of(color), linewidth=1.0, label=f"{line.name} {name}")
    axis.xaxis.set_major_formatter("{x:,.6g}")
