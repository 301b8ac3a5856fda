"""A row of a benchmark's outcome, and how rows are shown and kept."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One measured number.

    Args:
        name: what was measured.
        value: the number; ratios are how many times faster or larger.
        unit: of the value, `x` for ratios.
        target: what it should be; None: only reported.
        at_most: the target is an upper limit rather than a lower one.
        note: what limits it, or how it was measured.
    """

    name: str
    value: float
    unit: str = "x"
    target: float | None = None
    at_most: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return bool(self.value <= self.target if self.at_most else self.value >= self.target)


def show(rows: list[Row], title: str) -> None:
    """Print rows as a table."""
    table = Table(title=title)
    for column, side in (("what", "left"), ("value", "right"), ("target", "right"), ("", "left"), ("note", "left")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for row in rows:
        target = "" if row.target is None else f"{'≤' if row.at_most else '≥'} {row.target:g}"
        verdict = {None: "", True: "met", False: "MISSED"}[row.met]
        table.add_row(row.name, f"{row.value:.3g} {row.unit}", target, verdict, row.note)
    Console().print(table)


def keep(rows: list[Row], path: Path, about: Mapping[str, object]) -> None:
    """Write rows to a JSON file, with what is known of the machine."""
    listed = [asdict(row) | {"value": float(f"{row.value:.4g}"), "met": row.met} for row in rows]
    path.write_text(json.dumps({**about, "rows": listed}, indent=1) + "\n")


def clock() -> float:
    """Seconds. With one thread those of this process alone, which others on the machine disturb least."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def in_turns(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Let every side measure once, then again: what disturbs the machine disturbs all of them."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            taken[name].append(side())
    return taken


def ratio(taken: Mapping[str, list[float]], slow: str, fast: str) -> float:
    """How many times faster one side was: the median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(taken[slow], taken[fast], strict=True))
