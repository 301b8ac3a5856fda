"""What is in the data of a task, and what was learnt from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from tailo_pl.commands.catalogue import bundled
from tailo_pl.envs.antmaze import AntMaze
from tailo_pl.envs.evaluation import play
from tailo_pl.envs.kitchen import Kitchen, positions
from tailo_pl.envs.simulator import Drawn
from tailo_pl.models.acting import actor
from tailo_pl.models.policy import PolicyModule
from tailo_pl.policies.render import pictures
from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.findings import find, trajectory_figures
from tailo_pl.report.reading import read_run
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.trained import load_module

from .canvas import ACCENT, OTHER, OUT, panels, save

FRAMES, EVERY, FROM = 8, 6, 200  # pictures of a strip, control steps between them, and before them where so many are
WIDTH, HEIGHT = 200, 200
PATHS = 40  # of a part of the data
MAZE_PARTS = {
    "goal": "in the logs: to the goal, with noise",
    "random": "in the logs: random actions",
    "demonstration": "watched: one trajectory",
}


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
    save(figure, "walker.png")
    simulator.close()


def _poses(states: NDArray[Any], joints: int) -> NDArray[np.float64]:
    """Positions of the joints that a state of gymnasium's walkers tells: all but how far they have come."""
    chosen = _some(np.asarray(states, dtype=np.float64)[:, : joints - 1])
    return np.hstack([np.zeros((len(chosen), 1)), chosen])


def _some(steps: NDArray[Any]) -> NDArray[Any]:
    """Evenly spaced steps, once the walk is under way where there is one."""
    return steps[FROM if len(steps) > FROM + FRAMES * EVERY else 0 :: EVERY][:FRAMES]


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
    figure, axes = panels(3, 3.2)
    for axis, (part, title) in zip(axes, MAZE_PARTS.items(), strict=True):
        ta = source.part(part)
        for low_x, low_y, high_x, high_y in plan.walls:
            axis.add_patch(Rectangle((low_x, low_y), high_x - low_x, high_y - low_y, color="#c9d1d9"))
        for number in range(min(len(ta), PATHS)):
            path = ta.recording.observations[ta.rows.at(np.arange(ta.offsets[number], ta.offsets[number + 1]))]
            axis.plot(path[:, 0], path[:, 1], linewidth=0.8, color=ACCENT if len(ta) == 1 else OTHER, alpha=0.6)
        axis.plot(*plan.start, "k.")
        axis.plot(*plan.circle().T, "k", linewidth=1)
        axis.set_title(title, fontsize=9)
        axis.set_aspect("equal")
        axis.tick_params(labelsize=8)
    save(figure, "antmaze.png")


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
    save(figure, "kitchen.png")
    simulator.close()
