"""The pictures of the README and the documentation: made from a finished run on walker2d and from the ledger.

tailo train env=walker2d name=picture
python tools/pictures.py runs/walker2d/standard/tailo/picture
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot

from tailo_pl.envs.evaluation import play
from tailo_pl.envs.simulator import Drawn
from tailo_pl.models.acting import actor
from tailo_pl.models.policy import PolicyModule
from tailo_pl.policies.render import pictures
from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.findings import find, trajectory_figures
from tailo_pl.report.reading import read_run
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.trained import load_module

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs/pictures"
FRAMES, EVERY, FROM = 8, 6, 200  # pictures of a strip, control steps between them, and before them where so many are
WIDTH, HEIGHT = 200, 200
PLAIN = {"env", "setting", "method", "preset", "seed", "method.divergence"}  # of a cell with nothing special about it
TASKS = ("hopper standard", "walker2d standard", "pointmaze examples")


def strip(run_dir: Path) -> None:
    """What the logs show, and what was learnt from them."""
    experiment = load_run(run_dir)
    environment, ta = experiment.environment, experiment.task.ta
    assert environment is not None
    simulator = environment.simulator(1)
    assert isinstance(simulator, Drawn)
    rows = {}
    for origin in ("random", "expert"):
        number = int(np.flatnonzero(ta.origins == origin)[np.argmax(ta.lengths[ta.origins == origin])])
        states = ta.recording.observations[ta.rows.at(np.arange(ta.offsets[number], ta.offsets[number + 1]))]
        count = int((ta.origins == origin).sum())
        rows[f"in the logs:\n{count:,} {origin}"] = _poses(states, simulator.model.nq)
    learnt = []
    policy = load_module(run_dir, "policy", PolicyModule)  # also of a run under way
    for moment in play(simulator, actor(policy), [0]):
        learnt.append(simulator.pose(0))
        if len(learnt) > FROM + FRAMES * EVERY or moment.step.terminated[0]:
            break
    print(f"learnt: {len(learnt)} steps without a fall")
    rows["learnt"] = _some(np.array(learnt))
    figure, axes = pyplot.subplots(len(rows), 1, figsize=(9, 3.6), layout="constrained")
    for axis, (title, poses) in zip(axes, rows.items(), strict=True):
        frames = list(pictures(simulator.model, poses, WIDTH, HEIGHT))
        blank = np.full_like(frames[0], 255)
        axis.imshow(np.hstack([*frames, *[blank] * (FRAMES - len(frames))]))
        axis.set_xticks([], [])
        axis.set_yticks([], [])
        axis.set_ylabel(title, fontsize=8)
        for spine in axis.spines.values():
            spine.set_visible(False)
    figure.savefig(OUT / "walker.png", dpi=100)
    simulator.close()


def _poses(states: NDArray[Any], joints: int) -> NDArray[np.float64]:
    """Positions of the joints that a state of gymnasium's walkers tells: all but how far they have come."""
    chosen = _some(np.asarray(states, dtype=np.float64)[:, : joints - 1])
    return np.hstack([np.zeros((len(chosen), 1)), chosen])


def _some(steps: NDArray[Any]) -> NDArray[Any]:
    """Evenly spaced steps, once the walk is under way where there is one."""
    return steps[FROM if len(steps) > FROM + FRAMES * EVERY else 0 :: EVERY][:FRAMES]


def comparison() -> None:
    """Scores of the methods, each with nothing but its own defaults, from the ledger."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((ROOT / "results").glob("*.json")):
        cell = json.loads(path.read_text())
        if {one.split("=")[0] for one in cell["overrides"]} <= PLAIN and cell["preset"] == "fast":
            divergence = [one.split("=")[1] for one in cell["overrides"] if one.startswith("method.divergence=")]
            method = " ".join([cell["method"], *divergence])
            scores[f"{cell['env']} {cell['setting']}"][method].append(cell["score"])
    figure, axes = pyplot.subplots(1, len(TASKS), figsize=(9, 2.8), layout="constrained", sharex=True)
    for axis, task in zip(axes, TASKS, strict=True):
        ranked = sorted(scores[task].items(), key=lambda one: np.mean(one[1]))
        names = [f"{method} ({len(values)})" for method, values in ranked]
        means = [float(np.mean(values)) for _, values in ranked]
        colors = ["#D55E00" if method == "tailo" else "#8aa4b8" for method, _ in ranked]
        axis.barh(names, means, color=colors)
        for at, (_, values) in enumerate(ranked):
            axis.plot(values, [at] * len(values), "k.", markersize=3)
        axis.set_title(task.replace(" ", ", setting "), fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].set_xlabel("score after training (points: seeds; in brackets: how many)", fontsize=8)
    figure.savefig(OUT / "comparison.png", dpi=100)


def weights(run_dir: Path) -> None:
    """R and W along trajectories, as the report draws them."""
    found = find(read_run(run_dir))
    assert not isinstance(found, str), found
    figures = trajectory_figures(found, "walker", 300)
    for path in draw_figures(figures, OUT):
        if path.suffix == ".svg":
            path.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="of walker2d; without it only the figure of the ledger")
    given = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    comparison()
    if given.run is not None:
        strip(given.run)
        weights(given.run)
