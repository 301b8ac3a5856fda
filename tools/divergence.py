"""What becomes of SMODICE-KL's value where steps of TA are missing, beside TAILO's weights of the same data.

    python -m tools.divergence            # in the project's folder; hours. What was interrupted goes on

Trains SMODICE's discriminator and its value alone, for each share of missing steps and each batch size, and keeps the
least and largest V of the batch over the steps in results/divergence.json, with TAILO's weights beside them. The figure
is drawn from there to docs/pictures/divergence.svg whenever a run has ended; `--draw` trains nothing.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray

from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.files import read_json, write_json
from tailo_pl.runs.comparison import trained
from tailo_pl.runs.folder import run_folder

STEPS, EVERY, BATCHES = 100_000, (3, 5), (512, 8192)
TASK = ("env=walker2d", "setting=incomplete_ta")
COLORS = {0: "#D55E00", 1: "#0072B2", 2: "#009E73", 3: "#CC79A7"}
POINTS = 200  # of a curve that is kept
log = logging.getLogger(__name__)


def value_experiment(every: int, batch: int, steps: int, own: Sequence[str]) -> Experiment:
    """SMODICE-KL up to its value."""
    return composed(
        [
            *TASK, f"setting.every={every}", "method=smodice", "method.divergence=kl", "method.stages.policy=null",
            "preset.baselines.actor=shared", f"preset.baselines.steps={steps}", f"preset.baselines.batch={batch}",
            "logger=csv", "seed=0", f"name=every{every}-batch{batch}", *own,
        ]
    )  # fmt: skip


def tailo_experiment(every: int, own: Sequence[str]) -> Experiment:
    """TAILO up to its scores."""
    given = (*TASK, f"setting.every={every}", "method=tailo", "method.stages.policy=null", "logger=csv", "seed=0")
    return composed([*given, f"name=every{every}", *own])


def experiments(options: argparse.Namespace) -> Iterator[Experiment]:
    """The short ones first."""
    for every in options.every:
        yield tailo_experiment(every, options.overrides)
    for batch, every in itertools.product(options.batches, options.every):
        yield value_experiment(every, batch, options.steps, options.overrides)


def value_ranges(run_dir: Path) -> NDArray[np.float64]:
    """Rows of step, least and largest V; none where nothing has been logged."""
    path = run_dir / "value" / "metrics.csv"
    if not path.exists():
        return np.empty((0, 3))
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("value_min")]
    return np.array([[float(row[name]) for name in ("step", "value_min", "value_max")] for row in rows]).reshape(-1, 3)


def tailo_weights(every: int, own: Sequence[str]) -> NDArray[np.float32] | None:
    """W of every step of TA, from the largest down; None: not trained yet."""
    experiment = tailo_experiment(every, own)
    scores = run_folder(experiment) / "formal" / "scores.npy"
    weights = composed([*TASK, f"setting.every={every}", "method=tailo", *own]).weights
    if not scores.exists() or weights is None:
        return None
    return np.sort(weights.of(np.load(scores), experiment.task.ta.offsets))[::-1]


def thinned(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Few rows of many: of each group the last step, the least and the largest V, so that no peak is lost."""
    groups = np.array_split(found, min(POINTS, len(found)))
    return np.array([[group[-1, 0], group[:, 1].min(), group[:, 2].max()] for group in groups])


def keep(options: argparse.Namespace) -> dict[str, Any]:
    """What is known, with what the runs here have logged beyond it; written down, and returned."""
    known: dict[str, Any] = read_json(options.results) if options.results.exists() else {}
    for every in options.every:
        for batch in options.batches:
            run_dir = run_folder(value_experiment(every, batch, options.steps, options.overrides))
            found, name = value_ranges(run_dir), f"V, one step in {every} missing, batch {batch}"
            if len(found) and (name not in known or found[-1, 0] >= known[name]["steps"][-1]):
                columns = [[float(f"{one:.4g}") for one in column] for column in thinned(found).T]
                known[name] = dict(zip(("steps", "least", "largest"), columns, strict=True))
        weights = tailo_weights(every, options.overrides)
        if weights is not None:
            some = np.unique(np.geomspace(1, len(weights), POINTS).astype(int))
            columns = [[float(f"{one:.4g}") for one in column] for column in (some / len(weights), weights[some - 1])]
            known[f"W, one step in {every} missing"] = dict(zip(("share", "weight"), columns, strict=True))
    write_json(options.results, known)
    return known


def draw(options: argparse.Namespace) -> None:
    """What is known, as one figure."""
    known = keep(options)
    figure, axes = pyplot.subplots(1, len(options.every) + 1, figsize=(11, 3.2), layout="constrained")
    for axis, every in zip(axes, options.every, strict=False):
        for number, batch in enumerate(options.batches):
            found = known.get(f"V, one step in {every} missing, batch {batch}")
            for column, style in (("least", "--"), ("largest", "-")) if found else ():
                label = f"batch {batch:,}" if column == "largest" else None
                axis.plot(found["steps"], found[column], style, color=COLORS[number], linewidth=1, label=label)
        axis.set_title(f"V of SMODICE-KL, one step in {every} missing", fontsize=9)
        axis.set_xlabel("steps (solid: largest V of a batch, dashed: least)", fontsize=8)
        if axis.lines:
            axis.legend(fontsize=8, frameon=False)
    for number, every in enumerate(options.every):
        if found := known.get(f"W, one step in {every} missing"):
            label = f"one step in {every} missing"
            axes[-1].loglog(found["share"], found["weight"], color=COLORS[number], label=label)
    axes[-1].set_title("TAILO's weights of the same steps", fontsize=9)
    axes[-1].set_xlabel("share of TA's steps, the heaviest first", fontsize=8)
    axes[-1].legend(fontsize=8, frameon=False)
    for axis in axes:
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "divergence"}):
        figure.savefig(options.out, metadata={"Date": None})
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, nargs="+", default=EVERY, help="of so many steps one is missing")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, help="batch sizes of the value")
    parser.add_argument("--steps", type=int, default=STEPS, help="of the value")
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/divergence.svg"))
    parser.add_argument("--results", type=Path, default=Path("results/divergence.json"), help="what is known")
    parser.add_argument("--draw", action="store_true", help="train nothing")
    parser.add_argument("overrides", nargs="*", default=["runs=runs/divergence"], help="further key=value of all runs")
    options = parser.parse_args(arguments)
    logging.basicConfig(format="divergence: %(message)s", level=logging.INFO)
    for experiment in () if options.draw else experiments(options):
        log.info("%s %s", experiment.names["method"], experiment.config["name"])
        trained(experiment)
        draw(options)
    draw(options)


if __name__ == "__main__":
    main()
