"""Pointmaze data: the scripted controller walks in all four directions."""

from __future__ import annotations

import numpy as np

from tailo_pl.data.recorder import record
from tailo_pl.data.sources.recipe import Part, Recipe, version_of
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.evaluation import episode_seeds

EPISODES = 148  # each way: 592 trajectories, about 53,000 steps
NOISE = 0.5
ROWS = 4


class PointMazeRecipe(Recipe):
    """One part, `directions`: as many trajectories to each side."""

    @property
    def parts(self) -> dict[str, Part]:
        return {"directions": Part(identity(), directions)}


def identity() -> dict[str, object]:
    """What decides the data besides its seed."""
    return {
        "maker": 2,
        "episodes": EPISODES,
        "rows": ROWS,  # noise is drawn for all rows at once
        "noise": NOISE,
        "mujoco": version_of("mujoco"),
        "gymnasium-robotics": version_of("gymnasium-robotics"),
    }


def directions(seed: int) -> Trajectories:
    """As many trajectories to each side, labelled with the direction."""
    from tailo_pl.envs.pointmaze import GOALS

    return Trajectories.stack([_one_way(direction, seed) for direction in GOALS])


def _one_way(direction: str, seed: int) -> Trajectories:
    from tailo_pl.envs.pointmaze import GOALS, PointMaze, controller  # here: to list data needs no simulator

    rng = np.random.default_rng([seed, list(GOALS).index(direction)])
    simulator = PointMaze(direction).simulator(ROWS)
    seeds = episode_seeds(seed, f"data/{direction}", EPISODES)
    try:
        recording = record(simulator, lambda states: controller(states, direction, NOISE, rng), seeds.tolist())
    finally:
        simulator.close()
    return Trajectories.of(recording, direction)
