"""Scores of methods, from the ledger."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tailo_pl.paper.records import read_records

from .canvas import ACCENT, PALE, ROOT, panels, save

PLAIN = {"env", "setting", "method", "preset", "seed", "method.divergence"}  # of a cell with nothing special about it
TASKS, METHODS = 3, 3  # drawn at most, and of each at least


def comparison() -> None:
    """Scores of the methods, each with nothing but its own defaults, from the ledger."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for known, cell in read_records(ROOT / "results/cells").items():
        values = known.values
        if values.keys() <= PLAIN and cell["preset"] == "fast":
            divergence = [value for key, value in values.items() if key == "method.divergence"]
            method = " ".join([cell["method"], *divergence])
            scores[f"{cell['env']} {cell['setting']}"][method].append(cell["score"])
    most = sorted(scores, key=lambda task: -len(scores[task]))
    tasks = [task for task in most if len(scores[task]) >= METHODS][:TASKS]
    if not tasks:
        raise SystemExit(f"results/cells: no task with {METHODS} methods yet")
    figure, axes = panels(len(tasks), 2.8, shared=False)
    for axis, task in zip(axes, tasks, strict=True):
        ranked = sorted(scores[task].items(), key=lambda one: np.mean(one[1]))
        names = [f"{method} ({len(values)})" for method, values in ranked]
        means = [float(np.mean(values)) for _, values in ranked]
        colors = [ACCENT if method == "tailo" else PALE for method, _ in ranked]
        axis.barh(names, means, color=colors)
        for at, (_, values) in enumerate(ranked):
            axis.plot(values, [at] * len(values), "k.", markersize=3)
        axis.set_title(task.replace(" ", ", setting "), fontsize=9)
    figure.supxlabel("score after training (points: seeds; in brackets: how many)", fontsize=8)
    save(figure, "comparison.png")
