"""What `make bench` runs: every benchmark but the times to a score, side by side, ratios and medians.

    python benchmarks/bench.py

Prints a table and writes `benchmarks/results.json`. Takes some minutes; wants the machine for itself.
"""

from __future__ import annotations

import argparse
import datetime
import logging
import platform
import tempfile
from pathlib import Path

import loading
import memory
import method_steps
import rollouts
import steps
import torch
import weighing
from rows import Row, keep, show

from tailo_pl.runs.describe import versions
from tailo_pl.training.precision import precision_for

ALL = ("steps", "methods", "weights", "loading", "rollouts", "growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=ALL, nargs="+", default=ALL)
    parser.add_argument("--rounds", type=int, default=5, help="repeats, of which the median counts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(f"{package}.utilities.rank_zero").setLevel(logging.ERROR)
    bf16 = precision_for("cpu") == "bf16-mixed"
    found: list[Row] = []
    for part in options.only:
        if part == "steps":
            found += steps.rows(options.rounds, bf16)
        elif part == "methods":
            found += method_steps.rows(3)
        elif part == "weights":
            found += weighing.rows(options.rounds)
        elif part == "loading":
            found += loading.rows(3)
        elif part == "rollouts":
            found += rollouts.rows(options.rounds)
        else:
            with tempfile.TemporaryDirectory() as folder:
                found += memory.growth(Path(folder))
        show(found, f"{options.threads} thread(s)")
    about = {"date": f"{datetime.date.today()}", "machine": machine(), "threads": options.threads, **versions()}
    keep(found, options.out, about)


def machine() -> str:
    """Processor, cores and what they can multiply."""
    has = torch.cpu.get_capabilities()
    kinds = [kind for kind in ("avx2", "avx512_f", "avx512_bf16", "amx_bf16") if has.get(kind)]
    return f"{has.get('cpu_name', platform.machine())}, {has.get('num_logical_cores')} cores, {', '.join(kinds)}"


if __name__ == "__main__":
    main()
