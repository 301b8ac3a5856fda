"""Rollouts against a loop over one environment: steps per second, side by side.

    python benchmarks/rollouts.py

Both sides act with the same untrained policy network, ours for all episodes at once, the loop as one writes it first:
gymnasium's environment, one torch call per step. Ratios are medians of several rounds that take turns.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Callable

import gymnasium
import torch
from rows import Row, show

from tailo_pl.envs.evaluation import play
from tailo_pl.envs.locomotion import Locomotion
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.acting import actor

IDS = {"hopper": "Hopper-v4", "halfcheetah": "HalfCheetah-v4", "walker2d": "Walker2d-v4", "ant": "Ant-v4"}
TARGET = 2.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10, help="episodes side by side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each side in each round")
    options = parser.parse_args()
    torch.set_num_threads(1)
    show(rows(options.rounds, options.episodes, options.seconds), f"steps/s, {options.episodes} episodes at once")


def rows(rounds: int, episodes: int = 10, seconds: float = 1.0) -> list[Row]:
    """How many times faster episodes are played side by side."""
    found = []
    for task in IDS:
        ours, loop = sides(task, episodes)
        speeds = [(rate(ours, seconds), rate(loop, seconds)) for _ in range(rounds)]
        fast, slow = (statistics.median(column) for column in zip(*speeds, strict=True))
        ratio = statistics.median(one / other for one, other in speeds)
        note = f"{fast:,.0f} against {slow:,.0f} steps/s"
        found.append(Row(f"evaluation of {task} vs the loop", ratio, target=TARGET, note=note))
    return found


def sides(task: str, episodes: int) -> tuple[Callable[[], int], Callable[[], int]]:
    """Two functions that make some steps each and say how many."""
    environment = Locomotion(task)
    torch.manual_seed(0)
    policy = WeightedBCPolicy(environment.observation_dim, environment.action_low, environment.action_high).eval()
    act = actor(policy)
    simulator = environment.simulator(episodes)
    moments = play(simulator, act, itertools.count())
    with warnings.catch_warnings(action="ignore"):  # gymnasium would rather have the -v5 tasks, which D4RL is not
        alone = gymnasium.make(IDS[task])
    state = {"observation": alone.reset(seed=0)[0]}

    def ours() -> int:
        return sum(len(next(moments).episodes) for _ in range(20))

    def loop() -> int:
        for _ in range(100):
            observation, _, terminated, truncated, _ = alone.step(act(state["observation"][None])[0])
            state["observation"] = alone.reset()[0] if terminated or truncated else observation
        return 100

    return ours, loop


def rate(side: Callable[[], int], seconds: float) -> float:
    """Steps per second over at least so long."""
    began, steps = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        steps += side()
    return steps / passed


if __name__ == "__main__":
    main()
