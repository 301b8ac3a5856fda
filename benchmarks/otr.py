"""OTR's rewards for data of the paper's size: 1M steps in 45,000 short trajectories and 40 long ones.

    python benchmarks/otr.py

Random numbers stand for the states of hopper; how long it takes does not depend on them.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console

from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.inputs.transport import Transport, transport_rewards

SHORT, LONG, STEPS, DIM = 45_000, 40, 1_000_000, 11
TARGET = 300.0  # seconds


def main() -> None:
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.choice(np.arange(1, STEPS), SHORT - 1, replace=False))
    starts = np.concatenate([[0], cuts, STEPS + 1000 * np.arange(LONG)])
    states = rng.standard_normal((STEPS + 1000 * LONG, DIM), dtype=np.float32)
    ta = Trajectories.of(Recording(states, starts))
    ts = Trajectories.of(Recording(rng.standard_normal((1000, DIM), dtype=np.float32), np.zeros(1, dtype=np.int64)))
    began = time.perf_counter()
    transport_rewards(Task(ts, ta), Transport(), ordered=True)
    seconds = time.perf_counter() - began
    met = "met" if seconds < TARGET else "MISSED"
    Console().print(f"{ta.steps:,} steps in {len(ta):,} trajectories: {seconds:.0f} s, below {TARGET:.0f} {met}")


if __name__ == "__main__":
    main()
