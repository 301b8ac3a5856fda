"""The ledger: one measured cell per file, and the tables that are made from them."""

from __future__ import annotations

import itertools
import json
import logging
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl import run
from tailo_pl.comparison import composed, trained
from tailo_pl.data.cache import fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml, write_json, write_text

EPISODES = 100
TABLES = ("README.md",)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cell:
    """One experiment to measure: its overrides, and the name that follows from them."""

    overrides: tuple[str, ...]

    @property
    def name(self) -> str:
        """File name of the cell: its overrides, made safe."""
        return "_".join(re.sub(r"[^\w.-]+", "-", override.replace("=", "-")) for override in self.overrides)

    @property
    def command(self) -> str:
        """What reproduces the cell's run."""
        return "tailo train " + " ".join(shlex.quote(override) for override in self.overrides)


def read_cells(path: Path) -> list[Cell]:
    """The cells of a list: each entry maps overrides to a value or a list of values, and means all combinations."""
    entries = read_yaml(path, "a list of cells")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: expected a list of entries, each with overrides as keys")
    return list(dict.fromkeys(cell for entry in entries for cell in _expand(entry)))


def _expand(entry: dict[str, Any]) -> Iterator[Cell]:
    values = [value if isinstance(value, list) else [value] for value in entry.values()]
    for combination in itertools.product(*values):
        yield Cell(tuple(f"{key}={value}" for key, value in zip(entry, combination, strict=True)))


def run_missing(cells: Path, only: str = "") -> None:
    """Run and measure every cell that the ledger lacks; each is written as soon as it is measured."""
    wanted = [cell for cell in read_cells(cells) if only in cell.name]
    for cell in wanted:
        path = cells.parent / f"{cell.name}.json"
        if path.exists():
            continue
        log.info("measuring %s", cell.name)
        write_json(path, measure(cell))


def measure(cell: Cell) -> dict[str, Any]:
    """Train a cell (or take up a finished run of it) and play its policy for fresh episodes."""
    experiment = composed([*cell.overrides, f"name={cell.name}"])
    run_dir = trained(experiment)
    summary = run.read_summary(run_dir)
    if summary["failure"]:
        returns, evaluation = np.empty(0), Evaluation.failed(summary["failure"]["step"], 0)
    else:
        played, evaluation = run.evaluate(run_dir, EPISODES)
        returns = played.returns
    keys = ("env", "setting", "method", "preset", "source", "seed", "data", "versions")
    return {
        "schema": 1,
        "cell": cell.name,
        "command": cell.command,
        "score": evaluation.score,
        "score_std": evaluation.score_std,
        "return": evaluation.mean_return,
        "length": evaluation.mean_length,
        "success": evaluation.success,
        "episodes": evaluation.episodes,
        "returns": [round(float(value), 3) for value in returns],
        **{key: summary[key] for key in keys},
        "score_in_training": summary["score"],
        "failure": summary["failure"],
        "evaluations": summary["evaluations"],
        "chosen_step": summary["stages"][-1]["chosen_step"],
        "config": fingerprint({key: value for key, value in experiment.config.items() if key not in ("name", "runs")}),
        "seconds": round(sum(stage["seconds"] for stage in summary["stages"]), 1),
        "cpu_seconds": round(sum(stage["cpu_seconds"] for stage in summary["stages"]), 1),
        "overrides": list(cell.overrides),
    }


def write_tables(folder: Path, root: Path = Path()) -> None:
    """Rewrite the part of each document that stands between the `results` markers."""
    table = markdown_table([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])
    for name in TABLES:
        path = root / name
        if not path.exists():
            continue
        text = path.read_text()
        pattern = re.compile(r"(<!-- results:begin -->\n).*?(<!-- results:end -->)", re.DOTALL)
        if not pattern.search(text):
            continue
        write_text(path, pattern.sub(lambda found: f"{found.group(1)}{table}{found.group(2)}", text))


def markdown_table(cells: list[dict[str, Any]]) -> str:
    """Mean ± standard deviation over seeds, one row for each group of cells that differ in their seed alone.

    Cells measured on other data are another group, whatever their overrides.
    """
    groups: dict[tuple[tuple[str, ...], str], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        overrides = tuple(override for override in cell["overrides"] if not override.startswith("seed="))
        groups[overrides, cell["data"]["fingerprint"]].append(cell)
    lines = [
        "| env | setting | method | preset | score | seeds | CPU s per run | command |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (overrides, _), group in sorted(groups.items()):
        scores = [cell["score"] for cell in group]
        seeds = ",".join(str(cell["seed"]) for cell in sorted(group, key=lambda cell: cell["seed"]))
        first = group[0]
        command = f"tailo train -m {' '.join(overrides)} seed={seeds}"
        lines.append(
            f"| {first['env']} | {first['setting']} | {first['method']} | {first['preset']} "
            f"| {np.mean(scores):.1f}{f' ± {np.std(scores):.1f}' if len(scores) > 1 else ''} | {len(scores)} "
            f"| {np.mean([cell['cpu_seconds'] for cell in group]):.0f} | `{command}` |"
        )
    return "\n".join(lines) + "\n"
