"""Finished runs side by side: mean ± standard deviation over seeds, read from their summaries."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tailo_pl.data.cache import fingerprint
from tailo_pl.differences import telling_names
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml
from tailo_pl.run import read_summary

Format = Literal["csv", "markdown", "json"]
COLUMNS = ("env", "setting", "method", "preset", "options", "score", "seeds", "failed", "CPU s", "data")
_APART = ("name", "runs", "seed", "discriminator_seed", "schema")  # what runs of one group may differ in


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seed alone."""

    env: str
    setting: str
    method: str
    preset: str
    options: str
    """what sets them apart from other rows of the same names"""
    score: float | None
    score_std: float | None
    seeds: list[int]
    failed: int
    """runs that ended in a numerical error; they count with score 0"""
    cpu_seconds: float
    data: str
    """fingerprint"""

    def cells(self) -> list[str]:
        """As text, one for each of `COLUMNS`."""
        spread = f" ± {self.score_std:.1f}" if len(self.seeds) > 1 else ""
        score = "" if self.score is None else f"{self.score:.1f}{spread}"
        seeds = ",".join(map(str, self.seeds))
        names = [self.env, self.setting, self.method, self.preset, self.options]
        return [*names, score, seeds, str(self.failed or ""), f"{self.cpu_seconds:.0f}", self.data]


def gather(paths: Iterable[Path]) -> list[Row]:
    """The runs in these folders, at any depth, as rows; runs that are not finished are left out."""
    paths = list(paths)
    groups: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    configs: dict[str, dict[str, Any]] = {}
    for run_dir in _finished(paths):
        summary = read_summary(run_dir)
        config = _without_seeds(read_yaml(run_dir / "config.yaml", "a run's configuration"))
        group = fingerprint([config, summary["data"]["fingerprint"]])
        configs[group] = config
        groups[group][summary["seed"]] = summary  # a run done twice counts once
    if not groups:
        raise UserError(f"{', '.join(map(str, paths))}: no finished run found, expected folders with a summary.json")
    options = dict(zip(configs, _options(list(configs.values())), strict=True))
    rows = [_row(list(group.values()), options[name]) for name, group in groups.items()]
    return sorted(rows, key=lambda row: (row.env, row.setting, row.method, row.preset, row.options))


def written(rows: list[Row], how: Format) -> str:
    """Rows as text for a file."""
    if how == "json":
        return json.dumps([asdict(row) for row in rows], indent=1) + "\n"
    if how == "markdown":
        lines = [COLUMNS, ["---"] * len(COLUMNS), *(row.cells() for row in rows)]
        return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = [asdict(row) | {"seeds": " ".join(map(str, row.seeds))} for row in rows]
    writer.writerow(fields[0])
    writer.writerows(field.values() for field in fields)
    return text.getvalue()


def _finished(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path}: no such folder, expected a run or a folder of runs")
        for found in sorted(path.rglob("summary.json")):
            if found.resolve() not in seen:
                seen.add(found.resolve())
                yield found.parent


def _without_seeds(config: Any) -> dict[str, Any]:
    """A run's configuration as flat names and values, without what tells runs of one group apart."""
    flat = dict(_flat({key: value for key, value in config.items() if key not in _APART}))
    return {key: value for key, value in flat.items() if not key.endswith(".seed") or key == "source.seed"}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _options(configs: list[dict[str, Any]]) -> list[str]:
    """For each configuration the values in which others of the same env, setting, method and preset differ."""
    names = [tuple(config[f"{group}.name"] for group in ("env", "setting", "method", "preset")) for config in configs]
    options = []
    for config, name in zip(configs, names, strict=True):
        others = [other for other, theirs in zip(configs, names, strict=True) if theirs == name]
        options.append(" ".join(f"{key}={config[key]}" for key in telling_names(others) if key in config))
    return options


def _row(summaries: list[dict[str, Any]], options: str) -> Row:
    first = summaries[0]
    scores = [summary["score"] for summary in summaries if summary["score"] is not None]
    return Row(
        **{key: first[key] for key in ("env", "setting", "method", "preset")},
        options=options,
        score=float(np.mean(scores)) if scores else None,
        score_std=float(np.std(scores)) if scores else None,
        seeds=sorted(summary["seed"] for summary in summaries),
        failed=sum(summary["failure"] is not None for summary in summaries),
        cpu_seconds=float(np.mean([sum(stage["cpu_seconds"] for stage in one["stages"]) for one in summaries])),
        data=first["data"]["fingerprint"],
    )
