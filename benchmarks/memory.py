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
from rows import Row, show

LENGTH, STATES, ACTIONS = 1000, 17, 6
EXPERT_EVERY = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    found = [measure(options.folder, options.steps, method) for method in ("tailo", "bc")]
    rows = [
        Row(f"{method}: {what}", value, unit, target, at_most=True)
        for method, (seconds, largest) in zip(("tailo, with import", "bc, from the cache"), found, strict=True)
        for what, value, unit, target in (("run", seconds, "s", None), ("RssAnon", largest / 1e9, "GB", 2.0))
    ]
    show(rows, f"{options.steps:,} steps of {STATES} + {ACTIONS} numbers")


def growth(folder: Path) -> list[Row]:
    """How time and memory grow with the data, import included: a hundred times as much in two steps of ten."""
    counts = (100_000, 1_000_000, 10_000_000)
    found = [measure(folder, count, "tailo") for count in counts]
    (few, some, many), memory = [seconds for seconds, _ in found], [largest for _, largest in found]
    data = counts[-1] * (STATES + ACTIONS) * 4
    return [
        *(Row(f"run on {count / 1e6:g}M transitions", seconds, "s", note=f"RssAnon {largest / 1e9:.2f} GB")
          for count, (seconds, largest) in zip(counts, found, strict=True)),
        Row("seconds per added transition, 1M to 10M vs 0.1M to 1M", (many - some) / 9e6 / ((some - few) / 9e5), "x",
            1.2, at_most=True, note="1: linear"),
        Row("RssAnon vs the data, 10M transitions", memory[-1] / data, "x", 2.0, at_most=True),
    ]  # fmt: skip


def measure(folder: Path, steps: int, method: str) -> tuple[float, float]:
    """Seconds and largest RssAnon of a run with few training steps."""
    folder.mkdir(parents=True, exist_ok=True)
    ts, ta = folder / "ts.hdf5", folder / f"ta-{steps}.hdf5"
    if not ts.exists():
        write(ts, 1, expert_every=1)
    if not ta.exists():
        write(ta, steps // LENGTH, expert_every=EXPERT_EVERY)
    overrides = [
        "source=files", f"source.ts={ts}", f"source.ta={ta}", "source.action_low=-1", "source.action_high=1",
        "preset.pretrain_steps=200", "preset.formal_steps=200", "preset.policy_steps=500",
        f"runs={folder / 'runs'}", f"method={method}",
    ]  # fmt: skip
    return watched([sys.executable, "-m", "tailo_pl.cli", "train", *overrides], folder)


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
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env={**os.environ, "TAILO_HOME": str(folder / "home")}, **quiet)
    while process.poll() is None:
        largest = max(largest, rss_anon(process.pid))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: status {process.returncode}")
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
