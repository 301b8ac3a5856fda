"""Measure what scores 0 and 100 on pointmaze: random actions and the scripted controller, 1,000 episodes each."""

from __future__ import annotations

import numpy as np

from tailo_pl.data.sources.pointmaze import NOISE
from tailo_pl.envs.evaluation import episode_seeds, run_episodes
from tailo_pl.envs.pointmaze import PointMaze, controller

EPISODES = 1000


def main() -> None:
    environment = PointMaze()
    simulator = environment.simulator(environment.rows)
    rng = np.random.default_rng(0)
    actors = {
        "random actions": lambda states: rng.uniform(-1, 1, (len(states), 2)),
        "scripted controller": lambda states: controller(states, "left", NOISE, rng),
    }
    for name, actor in actors.items():
        played = run_episodes(simulator, actor, episode_seeds(0, f"reference/{name}", EPISODES))
        print(f"{name}: mean return {played.returns.mean():.4f}, mean length {played.lengths.mean():.1f}")
    simulator.close()


if __name__ == "__main__":
    main()
