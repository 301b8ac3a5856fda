"""The list of figures in `configs/paper_cells.yaml`: panels, lines, and what the paper claims of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tailo_pl.config.choices import folders
from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell, combinations, read_entries

KINDS = ("curves", "table", "trajectories", "quantities")
TRAJECTORIES = ("expert", "non-expert", "all expert", "all non-expert")  # along which R and W are drawn
_KEYS = {"figure", "place", "title", "kind", "seeds", "columns", "panels", "lines", "printed", "quantities", "claims"}
_BUDGET = ("preset.", "callbacks")  # of a panel: what its title need not say


@dataclass(frozen=True)
class Panel:
    """One small picture of a figure: a task."""

    overrides: tuple[str, ...]

    @property
    def env(self) -> str:
        """Name of its environment."""
        return dict(one.split("=", 1) for one in self.overrides)["env"]  # type: ignore[arg-type]

    @property
    def words(self) -> tuple[str, ...]:
        """What it is called by: environment, setting, and the setting's options."""
        told = (one for one in Cell.of(self.overrides).overrides if not one.startswith(_BUDGET))
        return tuple(re.sub(r"^(setting\.dataset=|setting[.=]|env=)", "", one) for one in told)


@dataclass(frozen=True)
class Line:
    """One curve of a panel: a method with its options."""

    name: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """What the paper says of a figure, and the rule that decides whether it holds.

    Args:
        says: one sentence.
        rule: name of a function of `claims`.
        options: its arguments.
    """

    says: str
    rule: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class PaperFigure:
    """A figure, or a table, of the paper.

    Args:
        name: what one asks for it by.
        place: where it stands in the paper.
        title: one line.
        kind: how it is drawn, one of `KINDS`.
        seeds: how many the project measures.
        columns: panels side by side; None: as many as there are, up to four.
        panels: in order.
        lines: in order.
        printed: scores that the paper prints, by line, one for each panel.
        quantities: columns of metrics.csv that are kept beside scores, of the last stage that has them.
        claims: what the paper says of it.
    """

    name: str
    place: str
    title: str
    kind: str
    seeds: int
    columns: int | None
    panels: tuple[Panel, ...]
    lines: tuple[Line, ...]
    printed: Mapping[str, Sequence[float]]
    quantities: Sequence[str]
    claims: tuple[Claim, ...]

    def cell(self, panel: Panel, line: Line, common: Iterable[str], seed: int = 0) -> Cell:
        """The cell of a panel and a line, with overrides that all cells have."""
        return Cell.of((*panel.overrides, *line.overrides, *common), seed)

    def cells(self, common: Sequence[str], seeds: int | None = None) -> list[Cell]:
        """All cells, seed by seed."""
        return [
            self.cell(panel, line, common, seed)
            for seed in range(seeds or self.seeds)
            for panel in self.panels
            for line in self.lines
        ]

    @property
    def curves(self) -> list[str]:
        """What it shows of its cells beside their scores."""
        if self.kind == "trajectories":
            return [f"{part} {what}" for what in ("R", "W") for part in TRAJECTORIES]
        return list(self.quantities)

    def title_of(self, panel: Panel) -> str:
        """What a panel is called: what it does not share with all others, its environment always."""
        shared = set.intersection(*(set(one.words) for one in self.panels)) if len(self.panels) > 1 else set()
        told = (word for word in panel.words if word == panel.env or word not in shared)
        return " ".join(word.removeprefix(f"{panel.env}_") for word in told)


PAPER = folders()[0] / "paper_cells.yaml"


@cache
def read_figures(path: Path = PAPER) -> dict[str, PaperFigure]:
    """The figures of a list, by name; without one, the paper's."""
    return {figure.name: figure for figure in (_figure(path, entry) for entry in read_entries(path))}


def chosen(names: Sequence[str], path: Path = PAPER) -> list[PaperFigure]:
    """The figures of these names; of none, all."""
    there = read_figures(path)
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UserError(f"reproduce: {name!r} given, expected one of {', '.join(there)}{hint}")
    return [there[name] for name in names or there]


def _figure(path: Path, entry: Mapping[str, Any]) -> PaperFigure:
    name = str(entry.get("figure"))
    if unknown := sorted(set(entry) - _KEYS):
        raise UserError(f"{path}: {name}: unknown key {unknown[0]!r}, expected one of {', '.join(sorted(_KEYS))}")
    if missing := [key for key in ("figure", "place", "title", "panels", "lines") if key not in entry]:
        raise UserError(f"{path}: {name}: {missing[0]}: not there, expected a value")
    kind = entry.get("kind", "curves")
    if kind not in KINDS:
        raise UserError(f"{path}: {name}: kind {kind!r} found, expected one of {', '.join(KINDS)}")
    lines = [line for one in entry["lines"] for line in _lines(one)]
    claims = [
        Claim(one["says"], one["rule"], {key: value for key, value in one.items() if key not in ("says", "rule")})
        for one in entry.get("claims", ())
    ]
    return PaperFigure(
        name=name,
        place=entry["place"],
        title=entry["title"],
        kind=kind,
        seeds=entry.get("seeds", 1),
        columns=entry.get("columns"),
        panels=tuple(Panel(overrides) for one in entry["panels"] for overrides in combinations(one)),
        lines=tuple(lines),
        printed=entry.get("printed", {}),
        quantities=entry.get("quantities", ()),
        claims=tuple(claims),
    )


def _lines(entry: Mapping[str, Any]) -> list[Line]:
    given = {key: value for key, value in entry.items() if key != "name"}
    return [Line(entry.get("name") or _called(overrides), overrides) for overrides in combinations(given)]


def _called(overrides: Sequence[str]) -> str:
    """A method with its options: `smodice kl`; numbers with their names, and TAILO by them alone: `alpha=0.5`."""
    options = []
    for key, value in (override.split("=", 1) for override in overrides if not override.startswith("method=")):
        number = value.replace(".", "").isdigit()
        options.append(f"{key.rpartition('.')[2]}={value}" if number else value)
    method = next(one.removeprefix("method=") for one in overrides if one.startswith("method="))
    return " ".join(options if method == "tailo" and options else [method, *options])
