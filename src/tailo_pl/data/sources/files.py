"""Source `files`: people's own recordings, TS and TA from files of their own."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tailo_pl.data import cache
from tailo_pl.data.formats import SUFFIXES, open_file
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.imports import import_files
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

Patterns = str | list[str]
# TS is states only; what else its files hold is not looked at.
_IGNORED = {"ts": ("actions", "next_observations"), "ta": ()}


class Files(Source):
    """Recordings in files, imported once into the cache and memory-mapped from there.

    Args:
        ts: the expert's states: a file, a folder, a pattern such as `logs/*.csv`, or a list of these.
        ta: state-action trajectories, likewise.
        columns: which fields of the files hold what.
        ts_columns: the same for TS; None: as `columns`.
        action_low: lower bounds of the actions, one number for all dimensions or one each.
        action_high: upper bounds.
    """

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        columns: Columns | None = None,
        ts_columns: Columns | None = None,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
    ) -> None:
        columns = columns or Columns()
        self._patterns: dict[str, Patterns] = {"ts": ts, "ta": ta}
        self._columns = {"ts": ts_columns or columns, "ta": columns}
        if (action_low is None) != (action_high is None):
            raise UserError("source.action_low, source.action_high: only one of them given, expected both or neither")
        self._low, self._high = action_low, action_high
        self._open: dict[str, Trajectories] = {}
        self._identities: dict[str, dict[str, object]] = {}

    def part(self, name: str) -> Trajectories:
        if name not in self._patterns:
            raise UserError(f"source files: no part {name!r}, expected ts or ta (setting=given)")
        if name not in self._open:
            paths = expand(f"source.{name}", self._patterns[name])
            columns = self._columns[name]
            self._identities[name] = {
                "source": "files",
                "importer": 1,
                "part": name,
                "files": [_identity(path) for path in paths],
                "columns": asdict(columns),
            }
            self._open[name] = cache.cached(
                f"files-{name}",
                self._identities[name],
                lambda folder: import_files(paths, open_file, folder, columns, ignored=_IGNORED[name]),
            )
        return self._open[name]

    def fingerprint(self, name: str) -> str:
        self.part(name)
        return cache.content_fingerprint(f"files-{name}", self._identities[name])

    def action_bounds(self, name: str) -> Bounds | None:
        if self._low is None or self._high is None:
            return None
        return given_bounds(self._low, self._high, self.part(name).actions.shape[1])

    def describe(self) -> str:
        names = {part: patterns if isinstance(patterns, str) else ", ".join(patterns)
                 for part, patterns in self._patterns.items()}  # fmt: skip
        return f"files: TS {names['ts']}, TA {names['ta']}"


def expand(option: str, patterns: Patterns) -> list[Path]:
    """The files that paths, folders and patterns mean, in order, each once."""
    found: list[Path] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        path = Path(pattern).expanduser()
        if path.is_dir():
            matching = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
        elif path.exists() or not glob.has_magic(pattern):
            matching = [path]
        else:
            matching = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        if not matching:
            raise UserError(f"{option}: {pattern!r} given, but no file is there, expected {', '.join(SUFFIXES)}")
        found += matching
    if not found:
        raise UserError(f"{option}: an empty list given, expected at least one file")
    return list(dict.fromkeys(found))


def _identity(path: Path) -> list[object]:
    """What changes when a file does."""
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def given_bounds(low: float | Sequence[float], high: float | Sequence[float], width: int) -> Bounds:
    """Bounds of `width` actions from what the user gave: one number for all dimensions, or one each."""
    lows, highs = _per_dimension("low", low, width), _per_dimension("high", high, width)
    for dimension, (lower, upper) in enumerate(zip(lows, highs, strict=True)):
        if not lower < upper:
            raise UserError(
                f"source.action_low, source.action_high: {lower:g} and {upper:g} given for dimension {dimension}, "
                "expected low < high"
            )
    return lows, highs


def _per_dimension(name: str, value: float | Sequence[float], width: int) -> tuple[float, ...]:
    values = [value] * width if isinstance(value, (int, float)) else list(value)
    if len(values) != width or not np.isfinite(values).all():
        raise UserError(f"source.action_{name}: {values} given, expected {width} finite numbers as TA has actions")
    return tuple(float(one) for one in values)
