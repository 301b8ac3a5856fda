"""Finished runs side by side: mean ± standard deviation over seeds, read from their summaries."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tailo_pl.envs.reference_scores import RAW
from tailo_pl.errors import UserError, printable
from tailo_pl.files import read_yaml
from tailo_pl.runs.grouping import group_key, in_short, outcome, seeds, telling_names, told
from tailo_pl.runs.summary import Summary, read_summary

Format = Literal["csv", "markdown", "json"]
log = logging.getLogger(__name__)
COLUMNS = (
    "env", "setting", "method", "preset", "options", "score", "verdict", "seeds", "failed", "held out", "CPU s", "data",
    "run",
)  # fmt: skip
_GROUPS = ("env", "setting", "method", "preset")
_MOST_SHOWN = 6  # values that set a row apart
_FORMULA = ("=", "+", "-", "@")  # with which a cell is code to a spreadsheet


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seed alone."""

    env: str
    setting: str
    method: str
    preset: str
    options: list[str]
    """what sets them apart from other rows of the same names, as it would be typed"""
    differs: str
    """the first of them in short, for people"""
    score: float | None
    score_std: float | None
    reference: str
    """where the returns that score 0 and 100 come from; empty without an environment"""
    verdicts: list[str]
    """good, doubtful or bad, for each seed"""
    seeds: list[int]
    failed: int
    """runs that ended in a numerical error; they count with score 0"""
    cpu_seconds: float
    data: str
    """fingerprint"""
    held_out: float | None
    """the policies' mean error on held-out actions; None: nothing was held out"""
    runs: list[str]
    """folders"""

    def cells(self) -> list[str]:
        """As printable text, one for each of `COLUMNS`."""
        spread = f" ± {self.score_std:.1f}" if self.score_std is not None and len(self.seeds) > 1 else ""
        unit = " (return)" if self.reference == RAW.source else ""
        score = "" if self.score is None else f"{self.score:.1f}{spread}{unit}"
        seeds = ",".join(map(str, self.seeds))
        names = [self.env, self.setting, self.method, self.preset, self.differs]
        held_out = "" if self.held_out is None else f"{self.held_out:.3g}"
        more = f" and {len(self.runs) - 1} more" if len(self.runs) > 1 else ""
        run = f"{Path(self.runs[0]).name}{more}"
        numbers = [str(self.failed or ""), held_out, f"{self.cpu_seconds:.0f}"]
        cells = [*names, score, _counted(self.verdicts), seeds, *numbers, self.data, run]
        return [printable(cell) for cell in cells]


def _counted(verdicts: list[str]) -> str:
    """`good` where all are alike, else `2 good, 1 bad`."""
    counts = Counter(verdicts)
    if len(counts) == 1:
        return verdicts[0]
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def gather(paths: Iterable[Path]) -> list[Row]:
    """The runs in these folders, at any depth, as rows.

    Runs that are not finished are left out, and so are those that cannot be read, with a line for each; but where
    none can be read, that is an error.
    """
    paths = list(paths)
    groups: dict[str, dict[str, tuple[Path, Summary]]] = defaultdict(dict)
    outcomes: dict[str, dict[str, Any]] = {}
    broken: list[UserError] = []
    for run_dir in _finished(paths):
        try:
            summary, config = read_summary(run_dir), _configuration(run_dir)
        except UserError as error:
            broken.append(error)
            continue
        group = group_key(config, summary["data"]["fingerprint"])
        outcomes[group] = outcome(config)
        groups[group][seeds(config)] = run_dir, summary  # a run done twice counts once
    for line in broken if groups else broken[1:]:
        log.warning("%s; this run is left out", line)
    if broken and not groups:
        raise broken[0]
    if not groups:
        raise UserError(f"{', '.join(map(str, paths))}: no finished run found, expected folders with a summary.json")
    options = dict(zip(outcomes, _options(list(outcomes.values())), strict=True))
    rows = [_row(list(group.values()), *options[name]) for name, group in groups.items()]
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
    several = ("options", "seeds", "verdicts", "runs")
    fields = [asdict(row) | {name: " ".join(map(str, getattr(row, name))) for name in several} for row in rows]
    writer.writerow(fields[0])
    writer.writerows(map(_inert, field.values()) for field in fields)
    return text.getvalue()


def _inert(value: Any) -> Any:
    """A cell that a spreadsheet takes for text or a number, never for a formula."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not re.fullmatch(r"[+-]?\d+", text) else text


def _finished(paths: Iterable[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path}: no such folder, expected a run or a folder of runs")
        for found in sorted(path.rglob("summary.json")):
            if found.resolve() not in seen:
                seen.add(found.resolve())
                yield found.parent


def _configuration(run_dir: Path) -> dict[str, Any]:
    """A run's configuration, with the names a row shows."""
    path = run_dir / "config.yaml"
    config = read_yaml(path, "a run's configuration")
    if not isinstance(config, dict):
        raise UserError(f"{path}: {type(config).__name__} found, expected keys and values")
    for group in _GROUPS:
        if not isinstance(config.get(group), dict) or not isinstance(config[group].get("name"), str):
            raise UserError(f"{path}: {group}.name: not there, expected text")
    return config


def _options(outcomes: list[dict[str, Any]]) -> list[tuple[list[str], str]]:
    """For each outcome the values in which others of the same env, setting, method and preset differ: as they would be
    typed, and for people."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    names = [tuple(values[f"{group}.name"] for group in _GROUPS) for values in outcomes]
    for values, name in zip(outcomes, names, strict=True):
        alike[name].append(values)
    telling = {name: telling_names(others) for name, others in alike.items()}
    short = {name: in_short(keys) for name, keys in telling.items()}
    return [
        (
            [f"{key}={values[key]}" for key in telling[name] if key in values],
            _few([told(key, values.get(key), short[name]) for key in telling[name]]),
        )
        for values, name in zip(outcomes, names, strict=True)
    ]


def _few(options: list[str]) -> str:
    """Runs of other versions differ in more than anybody reads."""
    more = [f"and {len(options) - _MOST_SHOWN} more"] if len(options) > _MOST_SHOWN else []
    return " ".join([*options[:_MOST_SHOWN], *more])


def _row(runs: list[tuple[Path, Summary]], options: list[str], differs: str) -> Row:
    summaries = [summary for _, summary in runs]
    first = summaries[0]
    errors = [one["stages"][-1]["quality"].get("held_out_error") for one in summaries]
    known = [error for error in errors if error is not None]
    scores = [summary["score"] for summary in summaries if summary["score"] is not None]
    return Row(
        env=first["env"],
        setting=first["setting"],
        method=first["method"],
        preset=first["preset"],
        options=options,
        differs=differs,
        score=float(np.mean(scores)) if scores else None,
        score_std=float(np.std(scores)) if scores else None,
        reference=first["reference"]["source"] if first["reference"] else "",
        verdicts=[summary["verdict"]["level"] for summary in sorted(summaries, key=lambda one: one["seed"])],
        seeds=sorted(summary["seed"] for summary in summaries),
        failed=sum(summary["failure"] is not None for summary in summaries),
        cpu_seconds=float(np.mean([sum(stage["cpu_seconds"] for stage in one["stages"]) for one in summaries])),
        data=first["data"]["fingerprint"],
        held_out=float(np.mean(known)) if known else None,
        runs=[str(path) for path, _ in runs],
    )
