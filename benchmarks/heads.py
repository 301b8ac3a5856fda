"""What the heads and networks of a policy cost: CPU seconds of 1,000 policy steps as a run trains them.

    python benchmarks/heads.py [ROUNDS]

Batches of 512 rows per member, hopper's sizes, one thread, 32 bits. Ratios are medians of rounds that take turns.
"""

from __future__ import annotations

import logging
import statistics
import sys

import torch
from rows import Row, in_turns, ratio, show
from steps import made_up_task, ours

BATCH, STEPS = 512, 150
BASE = "gaussian"
KINDS = {
    BASE: ("head=gaussian",),
    "censored": ("head=censored",),
    "regression": ("head=regression",),
    "regression, huber": ("head=regression", "head.loss=huber"),
    "mixture of 4 regressions": ("head=mixture",),
    "mixture of 4 Gaussians": ("head=mixture", "head.of.class_path=tailo_pl.models.heads.Gaussian"),
    "regression, norm layer": ("head=regression", "preset.network.norm=layer"),
    "regression, 3 members": ("head=regression", "preset.network.members=3"),
    "regression, 3 members of 171 rows": ("head=regression", "preset.network.members=3", "preset.policy_batch=171"),
    "regression, 3 members, norm layer": (
        "head=regression", "preset.network.members=3", "preset.network.norm=layer",
    ),
}  # fmt: skip
AGAINST = {name: "regression" for name in KINDS if name.startswith("regression,")}


def main() -> None:
    torch.set_num_threads(1)
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(f"{package}.utilities.rank_zero").setLevel(logging.ERROR)
    show(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 5), "1,000 policy steps, one thread")


def rows(rounds: int) -> list[Row]:
    """Seconds of each kind, and how many times those of the kind it is compared with."""
    task = made_up_task()
    sides = {name: ours(task, "policy", BATCH, STEPS, "32-true", *overrides) for name, overrides in KINDS.items()}
    taken = in_turns(sides, rounds)
    found = []
    for name in KINDS:
        other = AGAINST.get(name, BASE)
        note = "" if name == other else f"{ratio(taken, name, other):.2f} x {other}"
        found.append(Row(name, 1000 * statistics.median(taken[name]), "CPU s", note=note))
    return found


if __name__ == "__main__":
    main()
