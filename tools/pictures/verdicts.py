"""Where the weight goes in runs on right and on wrong data, with what their verdicts say."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tailo_pl.report.findings import weight_by_origin
from tailo_pl.report.reading import read_run

from .canvas import ACCENT, PALE, panels, save

RUNS = {  # of `python -m tools.evidence`
    "tailo/whole-default-0": "TAILO, right data",
    "bc/whole-method_bc-0": "cloning all logs",
    "tailo/degrees-default-0": "TS in degrees",
    "tailo/permuted-default-0": "TS in another order",
}


def verdicts(folder: Path) -> None:
    """Pointmaze, whose logs go to four sides, and TS to the left.

    Args:
        folder: in which `python -m tools.evidence` has worked.
    """
    figure, axes = panels(len(RUNS), 2.4)
    for axis, (name, title) in zip(axes, RUNS.items(), strict=True):
        run = read_run(folder / "pointmaze/few_examples" / name)
        layout, stage = run.layout, run.weighting
        assert layout is not None
        weights = np.ones(layout.steps, np.float32) if stage is None or stage.weights is None else stage.weights
        shares = dict(sorted(weight_by_origin(layout, weights).items()))
        axis.bar(
            list(shares),
            [100 * weight for _, weight in shares.values()],
            color=[ACCENT if origin == "left" else PALE for origin in shares],
        )
        axis.set_title(f"{title}:\n{run.summary['verdict']['level']}, scores {round(run.score or 0)}", fontsize=9)
    axes[0].set_ylabel("% of the weight", fontsize=8)
    figure.supxlabel("where a log goes", fontsize=8)
    save(figure, "verdict.png")
