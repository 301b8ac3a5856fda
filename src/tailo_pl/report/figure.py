"""Figure: what is to be seen, apart from how it is drawn. The page and matplotlib draw the same figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours, the ones that show on white and on black first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NEUTRAL = -1  # the colour of the text
Kind = Literal["lines", "map", "histogram", "bars", "intervals"]
"""A map is lines and dots on the floor, with one scale for both axes."""
Dash = Literal["solid", "dashed", "dotted"]
Curve = Sequence[float] | NDArray[Any]


@dataclass(frozen=True)
class Series:
    """One curve, one set of bars, or one row of intervals.

    Args:
        name: what the legend says.
        x: positions; of a histogram the edges, one more than there are bars; unused where there are categories.
        y: values.
        low: lower edge of the band or interval around `y`.
        high: upper edge.
        color: index into the palette, or NEUTRAL.
        dash: of the line.
        thin: drawn thin and pale, for one of many.
        dots: points that no line joins.
        group: series of one group are switched on and off together; empty: its name.
    """

    name: str
    x: Curve
    y: Curve
    low: Curve | None = None
    high: Curve | None = None
    color: int = 0
    dash: Dash = "solid"
    thin: bool = False
    dots: bool = False
    group: str = ""


@dataclass(frozen=True)
class Mark:
    """A straight line across the figure at a value of one axis."""

    axis: Literal["x", "y"]
    value: float
    label: str
    color: int = NEUTRAL


@dataclass(frozen=True)
class Variant:
    """What replaces parts of a figure when a control is moved.

    Args:
        y: values of each series; None: as they are.
        marks: None: as they are.
        shade: None: as it is.
        facts: label and value pairs shown under the figure.
    """

    y: Sequence[Curve] | None = None
    marks: Sequence[Mark] | None = None
    shade: tuple[float, float] | None = None
    facts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Control:
    """A slider over a few values. `start` is the index of the run's own value."""

    name: str
    values: Sequence[float]
    start: int


@dataclass(frozen=True)
class Figure:
    """A figure.

    Args:
        key: its name in files and in the page.
        title: one line.
        x_label: with unit.
        y_label: with unit.
        series: what is drawn.
        kind: how.
        caption: how to read it.
        categories: names along the axis, for bars and intervals.
        marks: lines across.
        shade: range of x that is shaded.
        x_range: what the x axis covers; None: what is drawn.
        facts: label and value pairs shown under the figure.
        controls: sliders; `variants` is keyed by their indices joined by commas.
        follows: key of the figure whose sliders move this one too.
        variants: what each position of the sliders shows.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    kind: Kind = "lines"
    caption: str = ""
    categories: Sequence[str] = ()
    marks: Sequence[Mark] = ()
    shade: tuple[float, float] | None = None
    x_range: tuple[float, float] | None = None
    facts: Sequence[tuple[str, str]] = ()
    controls: Sequence[Control] = ()
    follows: str = ""
    variants: Mapping[str, Variant] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The figure as the page's script reads it; what has its default is left out."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries without defaults, numbers with five digits, what is not finite as null."""
    if hasattr(value, "__dataclass_fields__"):
        named = {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
        return {name: item for name, item in named.items() if item or (item == 0 and item is not False)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return short(float(value))
    return [_plain(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]


def short(value: float) -> float | int | None:
    """The number with five digits, as short as JSON can write it."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def averaged(x: Curve, y: Curve, points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A curve with at most so many points, each the mean of its neighbours."""
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) <= points:
        return xs, ys
    starts = np.linspace(0, len(xs), points, endpoint=False).astype(np.int64)
    counts = np.diff(np.append(starts, len(xs)))
    return np.add.reduceat(xs, starts) / counts, np.add.reduceat(ys, starts) / counts


def picked(count: int, points: int) -> NDArray[np.int64]:
    """At most so many positions of `count`, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, points)).round().astype(np.int64))


def percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def colors(count: int) -> Iterable[tuple[int, Dash]]:
    """As many different looks as are asked for: colours first, then dashes."""
    dashes: tuple[Dash, ...] = ("solid", "dashed", "dotted")
    return [(index % len(PALETTE), dashes[index // len(PALETTE) % 3]) for index in range(count)]
