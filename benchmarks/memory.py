"""Data larger than memory: train on many recorded steps and watch how much memory is not the files' own.

    python benchmarks/memory.py --steps 50000000 --folder /somewhere/with/15GB

Writes one HDF5 file of random walks (17 + 6 numbers per step, every hundredth trajectory the expert's) and one of the
expert's states, trains on them with few steps, and reports the largest RssAnon of the process: memory that is neither
shared nor backed by a file. The import into the cache is part of what is watched.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
from rich.console import Console
from rich.table import Table

LENGTH, STATES, ACTIONS = 1000, 17, 6
EXPERT_EVERY = 100
TARGET = 2e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    ts, ta = options.folder / "ts.hdf5", options.folder / f"ta-{options.steps}.hdf5"
    if not ts.exists():
        write(ts, 1, expert_every=1)
    if not ta.exists():
        write(ta, options.steps // LENGTH, expert_every=EXPERT_EVERY)

    overrides = [
        "source=files", f"source.ts={ts}", f"source.ta={ta}", "source.action_low=-1", "source.action_high=1",
        "preset.pretrain_steps=200", "preset.formal_steps=200", "preset.policy_steps=500",
        f"runs={options.folder / 'runs'}",
    ]  # fmt: skip
    table = Table(title=f"{options.steps:,} steps of {STATES} + {ACTIONS} numbers")
    for column in ("run", "seconds", "largest RssAnon", "target"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for name, method in (("tailo, with import", "tailo"), ("bc, from the cache", "bc")):
        command = [sys.executable, "-m", "tailo_pl.cli", "train", *overrides, f"method={method}"]
        seconds, largest = watched(command, options.folder)
        verdict = "below 2 GB" if largest < TARGET else "MISSED: below 2 GB"
        table.add_row(name, f"{seconds:.0f}", f"{largest / 1e9:.2f} GB", verdict)
    Console().print(table)


def write(path: Path, trajectories: int, expert_every: int) -> None:
    """Trajectories one after the other, a hundred at a time."""
    rng = np.random.default_rng(0)
    rows, scratch = trajectories * LENGTH, path.with_suffix(".part")
    with h5py.File(scratch, "w") as file:
        states = file.create_dataset("observations", (rows, STATES), np.float32)
        actions = file.create_dataset("actions", (rows, ACTIONS), np.float32)
        timeouts = file.create_dataset("timeouts", (rows,), bool)
        for first in range(0, trajectories, 100):
            count = min(100, trajectories - first)
            walk = rng.standard_normal((count, LENGTH, STATES), dtype=np.float32).cumsum(axis=1) * 0.1
            walk[:: min(expert_every, count)] += np.linspace(0, 5, LENGTH, dtype=np.float32)[:, None]
            span = slice(first * LENGTH, (first + count) * LENGTH)
            states[span] = walk.reshape(-1, STATES)
            actions[span] = rng.uniform(-1, 1, (count * LENGTH, ACTIONS)).astype(np.float32)
            timeouts[span] = np.tile(np.arange(LENGTH) == LENGTH - 1, count)
    os.replace(scratch, path)


def watched(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; seconds it took, and the largest RssAnon seen."""
    began, largest = time.perf_counter(), 0
    process = subprocess.Popen(command, env={**os.environ, "TAILO_HOME": str(folder / "home")})
    while process.poll() is None:
        largest = max(largest, rss_anon(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    return time.perf_counter() - began, largest * 1024.0


def rss_anon(pid: int) -> int:
    """Kilobytes, 0 for a process that has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


if __name__ == "__main__":
    main()
