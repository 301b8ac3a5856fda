"""The pictures of the README and the documentation: made from the ledger, from bundled data and from finished runs.

python tools/pictures.py                   # scores, from the ledger
python tools/pictures.py data              # the tasks antmaze and kitchen, from their data
tailo train env=walker2d name=picture
python tools/pictures.py walker runs/walker2d/standard/tailo/picture
python tools/pictures.py tutorial runs/pointmaze/given/tailo/tutorial      # of the tutorial's own commands
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.patches import Rectangle
from playwright.sync_api import sync_playwright

from tailo_pl.commands.catalogue import bundled
from tailo_pl.envs.antmaze import AntMaze
from tailo_pl.envs.evaluation import play
from tailo_pl.envs.kitchen import Kitchen, positions
from tailo_pl.envs.simulator import Drawn
from tailo_pl.models.acting import actor
from tailo_pl.models.policy import PolicyModule
from tailo_pl.paper.records import read_records
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
PATHS = 40  # of a part of the data
MAZE_PARTS = {
    "goal": "in the logs: to the goal, with noise",
    "random": "in the logs: random actions",
    "demonstration": "watched: one trajectory",
}
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
    for known, cell in read_records(ROOT / "results/cells").items():
        values = known.values
        if values.keys() <= PLAIN and cell["preset"] == "fast":
            divergence = [value for key, value in values.items() if key == "method.divergence"]
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


def maze() -> None:
    """Antmaze from above: what the logs do, and the one trajectory that is watched."""
    source, plan = bundled("antmaze"), AntMaze().plan
    assert plan is not None
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharex=True, sharey=True)
    for axis, (part, title) in zip(axes, MAZE_PARTS.items(), strict=True):
        ta = source.part(part)
        for low_x, low_y, high_x, high_y in plan.walls:
            axis.add_patch(Rectangle((low_x, low_y), high_x - low_x, high_y - low_y, color="#c9d1d9"))
        for number in range(min(len(ta), PATHS)):
            path = ta.recording.observations[ta.rows.at(np.arange(ta.offsets[number], ta.offsets[number + 1]))]
            axis.plot(path[:, 0], path[:, 1], linewidth=0.8, color="#D55E00" if len(ta) == 1 else "#0072B2", alpha=0.6)
        axis.plot(*plan.start, "k.")
        axis.plot(*plan.circle().T, "k", linewidth=1)
        axis.set_title(title, fontsize=9)
        axis.set_aspect("equal")
        axis.tick_params(labelsize=8)
    figure.savefig(OUT / "antmaze.png", dpi=100)


def kitchen() -> None:
    """The expert's sequence, from the bundled demonstration."""
    ta = bundled("kitchen").part("complete")
    states = ta.recording.observations[ta.rows.at(np.arange(ta.offsets[0], ta.offsets[1]))]
    simulator = Kitchen().simulator(1)
    chosen = np.linspace(0, len(states) - 1, FRAMES).astype(int)
    poses = positions(np.asarray(states[chosen], dtype=np.float64), "robotics")
    frames = list(pictures(simulator.model, poses, WIDTH, HEIGHT))
    figure, axis = pyplot.subplots(figsize=(9, 1.35), layout="constrained")
    axis.imshow(np.hstack(frames))
    axis.set_axis_off()
    figure.savefig(OUT / "kitchen.png", dpi=100)
    simulator.close()


def tutorial(run_dir: Path) -> None:
    """Where the weight went in the tutorial's run, and the page that reports on it."""
    found = find(read_run(run_dir))
    assert not isinstance(found, str), found
    for path in draw_figures(trajectory_figures(found, "tutorial", 300)[1:], OUT):
        path.unlink() if path.suffix == ".svg" else path.replace(OUT / "tutorial-weight.png")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder) / "report.html"
        subprocess.run(["tailo", "report", str(run_dir), "--out", str(page)], check=True)
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1100, "height": 1000})
        shown.goto(page.as_uri())
        shown.screenshot(path=OUT / "report.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="ledger", choices=["ledger", "data", "walker", "tutorial"])
    parser.add_argument("run", type=Path, nargs="?", help="for walker and tutorial")
    given = parser.parse_args()
    if (given.run is None) == (given.what in ("walker", "tutorial")):
        parser.error("walker and tutorial take a run, the others none")
    OUT.mkdir(exist_ok=True)
    if given.what == "ledger":
        comparison()
    elif given.what == "data":
        maze()
        kitchen()
    elif given.what == "walker":
        strip(given.run)
        weights(given.run)
    else:
        tutorial(given.run)
