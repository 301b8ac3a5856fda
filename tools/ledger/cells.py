"""The cells of the ledger: listed in a file, each measured once."""

from __future__ import annotations

import logging
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.data.cache import fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.files import write_json
from tailo_pl.paper.cells import combinations, read_entries
from tailo_pl.runs.comparison import trained
from tailo_pl.runs.evaluate import evaluate
from tailo_pl.runs.summary import read_summary

EPISODES = 100
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
    return list(dict.fromkeys(Cell(chosen) for entry in read_entries(path) for chosen in combinations(entry)))


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
    return measured(cell, experiment, trained(experiment))


def measured(cell: Cell, experiment: Experiment, run_dir: Path) -> dict[str, Any]:
    """What the ledger keeps of a cell's finished run."""
    summary = read_summary(run_dir)
    if failure := summary["failure"]:
        returns, evaluation = np.empty(0), Evaluation.failed(failure["step"], 0)
    else:
        played, evaluation = evaluate(run_dir, EPISODES)
        returns = played.returns
    keys = ("env", "setting", "method", "preset", "source", "seed", "data", "verdict", "versions")
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
        **({"subtasks": evaluation.subtasks} if evaluation.subtasks else {}),
        "returns": [round(float(value), 3) for value in returns],
        **{key: value for key, value in summary.items() if key in keys},
        "score_in_training": summary["score"],
        "failure": summary["failure"],
        "evaluations": summary["evaluations"],
        "chosen_step": summary["stages"][-1]["chosen_step"],
        "stages": [
            {key: value for key, value in stage.items() if key in ("stage", "steps", "stopped", "cpu_seconds")}
            for stage in summary["stages"]
        ],
        "config": fingerprint({key: value for key, value in experiment.config.items() if key not in ("name", "runs")}),
        "seconds": round(sum(stage["seconds"] for stage in summary["stages"]), 1),
        "cpu_seconds": round(sum(stage["cpu_seconds"] for stage in summary["stages"]), 1),
        "overrides": list(cell.overrides),
    }
