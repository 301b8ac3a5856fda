"""Results of cells: one file of JSON lines for each figure, one line for each cell and seed, in order.

Lines of two people's files merge as text does: a line is a whole result, and where one cell is there twice the later
line holds. A cell that several figures show is kept with the first of them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from tailo_pl.errors import UserError, one_line
from tailo_pl.files import write_text
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import PaperFigure
from tailo_pl.runs.summary import Data

OTHERS = "others"  # the file of cells that no figure shows
Curve = list[list[float]]
"""Positions, then values."""


class Always(TypedDict):
    """What is kept of every cell and seed."""

    cell: str
    """its overrides without the seed, as one would type them"""
    seed: int
    env: str
    setting: str
    method: str
    preset: str
    source: str
    score: float
    """of the trained policy over fresh episodes"""
    score_std: float
    episodes: int
    success: float | None
    evaluations: list[list[float]]
    """step, score and its deviation over episodes, while the policy was trained"""
    failure: int | None
    """the step at which a number was no longer finite"""
    stages: dict[str, list[Any]]
    """steps, why it ended, CPU seconds"""
    cpu_seconds: float
    seconds: float
    data: dict[str, Any]
    """fingerprint, recipe, and trajectories and steps of TS and TA"""
    config: str
    """fingerprint of the configuration"""
    verdict: str | None
    """good, doubtful, bad or unknown: what the run is to be thought of without a simulator"""
    versions: dict[str, str]


class Record(Always, total=False):
    """What is kept of one cell and seed."""

    preload: list[str]
    """libraries loaded before all others, with which CPU seconds are no longer those of other cells"""
    subtasks: dict[str, float]
    """share of the episodes in which each was done"""
    numbers: dict[str, float]
    """what the run said of itself without a simulator"""
    curves: dict[str, Curve]
    """what some figures show beside scores"""


def cell_of(record: Record) -> Cell:
    """The cell of a record."""
    return Cell(tuple(shlex.split(record["cell"])), record["seed"])


def read_records(folder: Path) -> dict[Cell, Record]:
    """All results of a folder, by cell."""
    found: dict[Cell, Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        found |= _read(path)
    return found


def add_record(folder: Path, figures: Iterable[PaperFigure], record: Record) -> Path:
    """Write a result among the others of its figure, in the place of an older one of the same cell.

    Args:
        folder: of the results.
        figures: all there are; the first that shows the cell has it in its file.
        record: the result.

    Returns:
        The file.
    """
    cell = cell_of(record)
    home = next((figure.name for figure in figures if shows(figure, cell)), OTHERS)
    older = (path for path in sorted(folder.glob("*.jsonl"), reverse=True) if cell in _read(path))
    path = next(older, folder / f"{home}.jsonl")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = _read(path) if path.exists() else {}
        there[cell] = record
        write_text(path, "".join(f"{_line(there[one])}\n" for one in sorted(there)))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
    return path


def data_part(data: Data) -> dict[str, Any]:
    """What a record says of its data."""
    ts, ta = data["ts"], data["ta"]
    return {
        "fingerprint": data["fingerprint"],
        "recipe": data["recipe"],
        "ts": [ts["trajectories"], ts["states"]],
        "ta": [ta["trajectories"], ta["steps"]],
    }


def shares_done(subtasks: dict[str, list[int | None]]) -> dict[str, float]:
    """Share of the episodes in which each subtask was done."""
    return {name: round(sum(step is not None for step in steps) / len(steps), 3) for name, steps in subtasks.items()}


def shows(figure: PaperFigure, cell: Cell) -> bool:
    """Whether a figure shows a cell, whatever its preset, source and budget."""
    given = set(cell.overrides)
    return any(
        set(panel.overrides) | set(line.overrides) <= given and _nothing_else(panel.overrides + line.overrides, cell)
        for panel in figure.panels
        for line in figure.lines
    )


def _nothing_else(shown: Sequence[str], cell: Cell) -> bool:
    """A cell with options of task or method that the figure does not name is another one."""
    rest = [one for one in cell.overrides if one not in shown]
    return not any(one.startswith(("env.", "setting.", "method.")) for one in rest)


def _read(path: Path) -> dict[Cell, Record]:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({one_line(error)}), expected results") from error
    found = {}
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number}: {one_line(line[:40])!r} found, expected a line of JSON") from error
        missing = Record.__required_keys__ - (record.keys() if isinstance(record, Mapping) else set())
        if missing:
            raise UserError(f"{path}:{number}: {min(missing)}: not there, expected a result of a cell")
        found[cell_of(record)] = record
    return found


def _line(record: Record) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
