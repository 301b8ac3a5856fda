"""Loading D4RL's largest kind of file: first time, and from the cache.

    python benchmarks/loading.py

Writes 1.2 million transitions of hopper as D4RL ships them (gzip-chunked HDF5 with `next_observations` and `infos/*`;
random numbers, which compress worst) to a temporary folder and loads them through source `d4rl`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from rows import Row, show

from tailo_pl.data.sources.d4rl import D4RL

STEPS, EPISODE = 1_200_000, 1000


def main() -> None:
    show(rows(3), f"{STEPS:,} transitions")


def rows(rounds: int) -> list[Row]:
    """Seconds to load, first time and from the cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["D4RL_DATASET_DIR"] = name
        write(folder / "hopper_expert-v2.hdf5")
        times: dict[str, list[float]] = {"first time": [], "from the cache": []}
        for number in range(rounds):
            os.environ["TAILO_HOME"] = str(folder / f"home-{number}")
            for label in times:
                began = time.perf_counter()
                part = D4RL().part("hopper-expert-v2")
                assert part.steps == STEPS
                times[label].append(time.perf_counter() - began)
        del os.environ["TAILO_HOME"], os.environ["D4RL_DATASET_DIR"]
    return [
        Row(f"loading {STEPS / 1e6:g}M transitions, {label}", statistics.median(seconds), "s", target, at_most=True)
        for (label, seconds), target in zip(times.items(), (3.0, 0.3), strict=True)
    ]


def write(path: Path) -> None:
    rng = np.random.default_rng(0)
    widths = {"observations": 11, "next_observations": 11, "actions": 3, "infos/qpos": 6, "infos/qvel": 6}
    ends = np.arange(STEPS) % EPISODE == EPISODE - 1
    with h5py.File(path, "w") as file:
        for field, width in widths.items():
            values = rng.standard_normal((STEPS, width), dtype=np.float32)
            file.create_dataset(field, data=np.tanh(values) if field == "actions" else values, compression="gzip")
        file.create_dataset("rewards", data=rng.standard_normal(STEPS, dtype=np.float32), compression="gzip")
        file.create_dataset("timeouts", data=ends, compression="gzip")
        file.create_dataset("terminals", data=np.zeros(STEPS, dtype=bool), compression="gzip")


if __name__ == "__main__":
    main()
