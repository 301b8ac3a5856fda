"""The ledger: one measured cell per file, and the tables that are made from them."""

from __future__ import annotations

import itertools
import json
import logging
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl import run
from tailo_pl.comparison import composed, trained
from tailo_pl.data.cache import fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml, write_json, write_text
from tailo_pl.ledger_tables import comparison_table, markdown_table

EPISODES = 100
DOCUMENTS = ("README.md", "docs/baselines.md")
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
    """Rewrite the parts of the documents that stand between markers: `results`, `comparison`.

    The README's results are those of TAILO and plain cloning; docs/results.md has all of them.
    """
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    own = [cell for cell in cells if cell["method"] in ("tailo", "bc")]
    tables = {"comparison": comparison_table(cells), "results": markdown_table(own)}
    for name in DOCUMENTS:
        path = root / name
        if not path.exists():
            continue
        text = path.read_text()
        for marker, table in tables.items():
            pattern = re.compile(rf"(<!-- {marker}:begin -->\n).*?(<!-- {marker}:end -->)", re.DOTALL)
            text = pattern.sub(partial(_between_markers, table), text)
        write_text(path, text)


def _between_markers(table: str, found: re.Match[str]) -> str:
    return f"{found.group(1)}{table}{found.group(2)}"
