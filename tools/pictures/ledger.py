"""Scores of methods, from the ledger."""

from __future__ import annotations

import numpy as np

from tailo_pl.paper.records import read_records
from tools.ledger.cells import read_cells
from tools.ledger.tables import compared, score_interval

from .canvas import ACCENT, PALE, ROOT, panels, save

SETTING, TASKS = "standard", ("hopper", "walker2d")


def comparison() -> None:
    """Scores of the methods, each with its own options and the best budget measured, where a few experts are in TA."""
    records, listed = read_records(ROOT / "results/cells").values(), read_cells(ROOT / "results/cells.yaml").cells()
    by_env = compared(list(records), listed, best_budget=True).get(SETTING, {})
    tasks = {
        env: {name: group for name, group in by_env[env].items() if "=" not in name} for env in TASKS if env in by_env
    }
    if not tasks:
        raise SystemExit(f"results/cells: nothing of setting {SETTING} yet")
    figure, axes = panels(len(tasks), 3.2, shared=False)
    for axis, task in zip(axes, tasks, strict=True):
        means = {method: float(np.mean([cell["score"] for cell in group])) for method, group in tasks[task].items()}
        ranked = sorted(means, key=lambda method: means[method])
        intervals = np.array([score_interval(tasks[task][method]) for method in ranked])
        scores = np.array([means[method] for method in ranked])
        axis.barh(
            [f"{method} ({len(tasks[task][method])})" for method in ranked],
            scores,
            color=[ACCENT if method == "tailo" else PALE for method in ranked],
            xerr=np.abs(intervals.T - scores),
            error_kw={"elinewidth": 1},
        )
        axis.set_title(f"{task}, setting {SETTING}", fontsize=9)
    figure.supxlabel(
        "score of the trained policy, 95 % interval; each with the best budget that was measured (in brackets: seeds)",
        fontsize=8,
    )
    save(figure, "comparison.png")
