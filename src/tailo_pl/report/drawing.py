"""Figures as files for papers: the page's figures drawn by matplotlib, as PNG and SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailo_pl.errors import UserError
from tailo_pl.files import whole_file
from tailo_pl.report.figure import NEUTRAL, PALETTE, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e8ec",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tailo",  # the same figure is the same file
}
_BESIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
_MARKS = ((5, 3), (1, 2), (9, 3, 2, 3))
DASHES = {"solid": "-", "dashed": "--", "dotted": ":"}


def draw_figures(figures: Iterable[Figure], folder: Path, names: Mapping[str, str] | None = None) -> list[Path]:
    """Draw every figure that shows something into `folder`, as PNG and SVG.

    Args:
        figures: what to draw.
        folder: where the files go.
        names: what the files of a figure are called, by its key; otherwise they are called like it.

    Returns:
        The files.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise UserError("--figures: matplotlib is not installed; pip install 'tailo_pl[report]' brings it") from error
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(STYLE):
            for figure in figures:
                if not figure.series:
                    continue
                rows = len(figure.categories) * len(figure.series)
                height = 0.9 + 0.34 * rows if rows else 5.5 if figure.kind == "map" else 3.4
                canvas = Canvas(figsize=(5.5, height), layout="constrained")
                axes = canvas.add_subplot()
                (_rows if rows else _curves)(figure, axes)
                axes.set_title(figure.title, fontsize=10)
                axes.set_xlabel(figure.x_label)
                canvas.draw_without_rendering()
                canvas.set_layout_engine("none")  # laid out once, for both files
                for suffix in SUFFIXES:
                    path = folder / f"{(names or {}).get(figure.key, figure.key)}{suffix}"
                    with whole_file(path) as scratch:
                        canvas.savefig(scratch, format=suffix[1:], dpi=200, metadata=METADATA[suffix])
                    written.append(path)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be written ({error.strerror or error})") from error
    return written


METADATA: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}}


def _curves(figure: Figure, axes: Axes) -> None:
    for series in figure.series:
        color = color_of(series.color)
        name = None if series.thin else series.name
        if figure.kind == "histogram":
            axes.stairs(np.asarray(series.y), np.asarray(series.x), fill=True, alpha=0.45, color=color, label=name)
            continue
        if series.dots:
            axes.plot(series.x, series.y, ".", color=color, label=series.name, markersize=2.5)
            continue
        if series.low is not None and series.high is not None:
            axes.fill_between(np.asarray(series.x), series.low, series.high, color=color, alpha=0.18, linewidth=0)
        look: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.5} if series.thin else {"linewidth": 1.6}
        marker = "o" if len(series.x) == 1 else ""
        axes.plot(series.x, series.y, DASHES[series.dash], color=color, label=name, marker=marker, **look)
    if figure.shade is not None:
        axes.axvspan(*figure.shade, color="black", alpha=0.08, linewidth=0)
    _marks(figure, axes)
    axes.set_ylabel(figure.y_label)
    if figure.kind == "map":
        axes.set_aspect("equal")
    axes.xaxis.set_major_formatter("{x:,.6g}")
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=7.5, **_BESIDE if figure.kind == "map" else {})


def _rows(figure: Figure, axes: Axes) -> None:
    count = len(figure.series)
    places = np.arange(len(figure.categories), dtype=float)
    for number, series in enumerate(figure.series):
        at, values, color = (
            places + (number - (count - 1) / 2) * 0.8 / count,
            np.asarray(series.y),
            color_of(series.color),
        )
        if figure.kind == "intervals" and series.low is not None and series.high is not None:
            reach = [values - np.asarray(series.low), np.asarray(series.high) - values]
            axes.errorbar(values, at, xerr=reach, fmt="o", color=color, elinewidth=3, markersize=5)
        else:
            axes.barh(at, values, height=0.8 / count, color=color, label=series.name)
        offset = (0, 9) if figure.kind == "intervals" else (6, 0)
        for place, value in zip(at, values, strict=True):
            axes.annotate(f"{value:.3g}", (value, place), offset, textcoords="offset points", fontsize=7.5, va="center")
    axes.set_yticks(places, [textwrap.fill(name, 32) for name in figure.categories])
    axes.invert_yaxis()
    above = 0.6 if figure.kind == "intervals" else 0.3  # of a row: numbers stand above their points
    axes.margins(x=0.12, y=above / max(1, len(places)))
    axes.locator_params(axis="x", nbins=5)  # names leave little room
    if figure.x_range is not None:
        axes.set_xlim(*figure.x_range)
    _marks(figure, axes)
    if count > 1 or figure.marks:
        axes.legend(fontsize=7.5)


def _marks(figure: Figure, axes: Axes) -> None:
    for number, mark in enumerate(figure.marks):
        draw = axes.axhline if mark.axis == "y" else axes.axvline
        dashes = _MARKS[number % len(_MARKS)]  # told apart, and behind what they are held against
        draw(mark.value, linestyle=(0, dashes), linewidth=1, color=color_of(mark.color), label=mark.label, zorder=1)


def color_of(index: int) -> str:
    return "#1b1f24" if index == NEUTRAL else PALETTE[index % len(PALETTE)]
