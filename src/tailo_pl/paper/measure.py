"""Measuring a cell: its run is trained, gone on with or found finished, and its policy plays fresh episodes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.config.compose import composed
from tailo_pl.data.cache import fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import PaperFigure
from tailo_pl.paper.records import Curve, Record, data_part, shares_done, shows
from tailo_pl.report.figure import averaged
from tailo_pl.report.findings import find, trajectory_figures
from tailo_pl.report.reading import read_run
from tailo_pl.runs.comparison import trained
from tailo_pl.runs.evaluate import evaluate
from tailo_pl.runs.summary import read_summary, stated_numbers

EPISODES = 100
POINTS = 40  # of a curve that is kept


def measure(cell: Cell, figures: Iterable[PaperFigure], runs: str = "runs", episodes: int = EPISODES) -> Record:
    """Train a cell (or take up a run of it) and play its policy for fresh episodes.

    Args:
        cell: what to measure.
        figures: all there are; those that show the cell say what is kept beside its scores.
        runs: folder of the runs.
        episodes: how many.
    """
    where = [] if "runs" in cell.values else [f"runs={runs}"]
    experiment = composed([*cell.overrides, f"seed={cell.seed}", f"name={cell.run_name}", *where])
    run_dir = trained(experiment)
    summary = read_summary(run_dir)
    if summary["failure"]:
        evaluation = Evaluation.failed(summary["failure"]["step"], 0)
    else:
        _, evaluation = evaluate(run_dir, episodes)
    stages = summary["stages"]
    config = {key: value for key, value in experiment.config.items() if key not in ("name", "runs")}
    record: Record = {
        "cell": cell.text,
        "seed": cell.seed,
        "env": summary["env"],
        "setting": summary["setting"],
        "method": summary["method"],
        "preset": summary["preset"],
        "source": summary["source"],
        "score": round(evaluation.score, 3),
        "score_std": round(evaluation.score_std, 3),
        "episodes": evaluation.episodes,
        "success": evaluation.success,
        "evaluations": [
            [one["step"], round(one["score"], 2), round(one["score_std"], 2)] for one in summary["evaluations"]
        ],
        "failure": summary["failure"]["step"] if summary["failure"] else None,
        "stages": {one["stage"]: [one["steps"], one["stopped"], one["cpu_seconds"]] for one in stages},
        "cpu_seconds": round(sum(one["cpu_seconds"] for one in stages), 1),
        "seconds": round(sum(one["seconds"] for one in stages), 1),
        "data": data_part(summary["data"]),
        "config": fingerprint(config),
        "verdict": summary["verdict"]["level"],
        "versions": summary["versions"],
    }
    if preload := os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        record["preload"] = [Path(one).name for one in preload]
    if numbers := stated_numbers(stages):
        record["numbers"] = {name: float(f"{value:.4g}") for name, value in numbers.items()}
    if evaluation.subtasks:
        record["subtasks"] = shares_done(evaluation.subtasks)
    if curves := _curves(run_dir, [figure for figure in figures if shows(figure, cell)]):
        record["curves"] = curves
    return record


def _curves(run_dir: Path, figures: list[PaperFigure]) -> dict[str, Curve]:
    wanted = {name for figure in figures for name in figure.curves}
    if not wanted:
        return {}
    run = read_run(run_dir)
    there = {name: _thinned(*values) for stage in run.stages.values() for name, values in stage.metrics.items()}
    if any(figure.kind == "trajectories" for figure in figures):
        found = find(run)
        if isinstance(found, str):
            raise UserError(f"{run_dir}: {found}")
        for drawn, what in zip(trajectory_figures(found, "", POINTS), ("R", "W"), strict=True):
            for series in drawn.series:
                there[f"{series.name.partition(' (')[0]} {what}"] = _thinned(np.asarray(series.x), np.asarray(series.y))
    return {name: there[name] for name in sorted(wanted & there.keys())}


def _thinned(x: NDArray[Any], y: NDArray[Any]) -> Curve:
    """A curve of at most `POINTS` points with few digits; a value that is not finite is where it ends."""
    finite = int(np.argmin(np.isfinite(y))) if not np.isfinite(y).all() else len(y)
    steps, values = averaged(x[:finite], y[:finite], POINTS)
    return [[float(f"{one:.4g}") for one in steps], [float(f"{one:.3g}") for one in values]]
