"""Measure the kitchen's demonstrator on the bundled data and write what was found beside the package's policies.

    python tools/measure_kitchen.py

For each subtask: in how many episodes it was asked for, in how many it was done in time, and how many steps it took
(the median, from the subtask before it). The data is made first where it is not there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.kitchen import Episode, KitchenRecipe, mixed_episodes
from tailo_pl.data.timeline import NEVER, first_done
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.kitchen import Kitchen
from tailo_pl.envs.kitchen_tasks import SUBTASKS

PATH = Path(__file__).parents[1] / "src" / "tailo_pl" / "experts" / "kitchen.json"


def success(trajectories: Trajectories, episodes: Sequence[Episode]) -> dict[str, Any]:
    """What became of each subtask, and of whole sequences."""
    first = first_done(trajectories, Kitchen())
    asked = {name: [at for at, one in enumerate(episodes) if name in one.order] for name in SUBTASKS}
    whole = [all(first[at, SUBTASKS.index(name)] != NEVER for name in one.order) for at, one in enumerate(episodes)]
    subtasks = {}
    for name, numbers in asked.items():
        taken = [_taken(first[at], episodes[at].order, name) for at in numbers]
        done = [steps for steps in taken if steps is not None]
        subtasks[name] = {
            "asked": len(numbers),
            "done": len(done),
            "median_steps": float(np.median(done)) if done else None,
        }
    return {"episodes": len(episodes), "sequences_done": int(sum(whole)), "subtasks": subtasks}


def _taken(first: Any, order: Sequence[str], name: str) -> int | None:
    """Steps from the subtask before to this one; None: it was not done."""
    step, place = int(first[SUBTASKS.index(name)]), order.index(name)
    if step == NEVER:
        return None
    before = int(first[SUBTASKS.index(order[place - 1])]) if place else 0
    return step - max(before, 0)


def main() -> None:
    part = Bundled("kitchen", KitchenRecipe(), seed=0).part("mixed")
    found = success(part, mixed_episodes(220, 10, seed=0))
    versions = {name: version(name) for name in ("gymnasium-robotics", "mujoco", "numpy")}
    PATH.write_text(json.dumps({**found, "versions": versions}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
