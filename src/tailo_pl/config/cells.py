"""Cells: experiments by their overrides, written down as lists of combinations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml


class PaperCell(NamedTuple):
    """One cell of the paper's experiments."""

    figure: str
    overrides: tuple[str, ...]


def paper_cells() -> list[PaperCell]:
    """The cells of the paper, in its order."""
    path = Path(str(files("tailo_pl.configs"))) / "paper_cells.yaml"
    cells = []
    for entry in read_entries(path):
        figure = str(entry["figure"])
        rest = {key: value for key, value in entry.items() if key != "figure"}
        cells += [PaperCell(figure, overrides) for overrides in combinations(rest)]
    return cells


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a list of cells: overrides as keys."""
    entries = read_yaml(path, "a list of cells")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: expected a list of entries, each with overrides as keys")
    return entries


def combinations(entry: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """All combinations of an entry: each key has a value or a list of values; keys with a comma vary together."""
    values = [value if isinstance(value, list) else [value] for value in entry.values()]
    for chosen in itertools.product(*values):
        overrides: list[str] = []
        for key, value in zip(entry, chosen, strict=True):
            names = key.split(",")
            overrides += [
                f"{name}={one}" for name, one in zip(names, value if len(names) > 1 else [value], strict=True)
            ]
        yield tuple(overrides)
