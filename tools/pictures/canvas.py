"""Where pictures go, and how they are drawn."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

matplotlib.use("Agg")
from matplotlib import pyplot

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs/pictures"
ACCENT, OTHER, PALE = "#D55E00", "#0072B2", "#a7b4bf"
"""What the text speaks of, what is beside it, and what is only there."""


def panels(count: int, height: float, *, shared: bool = True) -> tuple[Figure, list[Axes]]:
    """So many panels side by side, as wide as a page."""
    figure, axes = pyplot.subplots(
        1, count, figsize=(9, height), layout="constrained", sharex=shared, sharey=shared, squeeze=False
    )
    for axis in axes[0]:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def save(figure: Figure, name: str) -> None:
    """Write a picture."""
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / name, dpi=100)
    pyplot.close(figure)
    print(f"written {(OUT / name).relative_to(ROOT)}")
