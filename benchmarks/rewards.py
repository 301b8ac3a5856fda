"""Rewards of OTR and of SEABO for data of the paper's size: 1M steps in 45,000 short trajectories and 40 long ones.

    python benchmarks/rewards.py [otr|seabo]

Random numbers stand for the states and actions of hopper; how long it takes does not depend on them. CPU time of one
thread: a busy machine counts little.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from rows import Row, show

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.inputs.neighbours import NeighbourRewards, neighbour_rewards
from tailo_pl.inputs.transport import TransportRewards, transport_rewards

SHORT, LONG, STEPS, DIM, ACTION_DIM = 45_000, 40, 1_000_000, 11, 3
TARGETS = {"otr": 300.0, "seabo": 60.0}  # seconds


def main() -> None:
    torch.set_num_threads(1)
    task = made_up_task()
    found = []
    for method in sys.argv[1:] or TARGETS:
        began = time.process_time()
        if method == "otr":
            transport_rewards(task, TransportRewards(), ordered=True)
        else:
            neighbour_rewards(task, NeighbourRewards())
        seconds = time.process_time() - began
        found.append(Row(f"rewards of {method}", seconds, "CPU s", TARGETS[method], at_most=True))
    show(found, f"{task.ta.steps:,} steps in {len(task.ta):,} trajectories, {task.ts.steps:,} states of TS")


def made_up_task() -> Task:
    """TA of the paper's size, and one trajectory of the expert."""
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.choice(np.arange(1, STEPS), SHORT - 1, replace=False))
    starts = np.concatenate([[0], cuts, STEPS + 1000 * np.arange(LONG)])
    steps = STEPS + 1000 * LONG
    states = rng.standard_normal((steps, DIM), dtype=np.float32)
    actions = rng.uniform(-1, 1, (steps, ACTION_DIM)).astype(np.float32)
    expert = rng.standard_normal((1000, DIM), dtype=np.float32)
    ts = Trajectories.of(Recording(expert, np.zeros(1, dtype=np.int64)))
    return Task(ts, Trajectories.of(Recording(states, starts, actions=actions)))


if __name__ == "__main__":
    main()
