"""Sources of people's own recordings: TS and TA, each read once into the cache and memory-mapped from there."""

from __future__ import annotations

import glob
import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tailo_pl.data import cache
from tailo_pl.data.formats.columns import OPTION, Columns
from tailo_pl.data.formats.imports import Opener, import_files
from tailo_pl.data.formats.step_reader import Care, Ending
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, one_line

Patterns = str | list[str]
Choice = str | list[int]
# TS is states only; what else its files hold is not looked at.
IGNORED: dict[str, tuple[str, ...]] = {"ts": ("actions", "next_observations"), "ta": ()}
_IMPORTER = 2  # of the cache entries: count up when the same files would be written differently
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reading:
    """How the files of one part are read.

    Args:
        paths: the files.
        open_file: opens one.
        columns: which fields hold what.
        identity: what changes when the files or what is chosen of them does.
        ending: where trajectories end when no field names episodes; None: the importer's own.
        option: how the user says which fields play a role.
    """

    paths: Sequence[Path]
    open_file: Opener
    columns: Columns
    identity: Any
    ending: Ending | None = None
    option: str = OPTION


class Imported(Source):
    """TS and TA from files.

    Args:
        ts: where the expert's states are.
        ta: where the state-action trajectories are.
        action_low: lower bounds of the actions, one number for all dimensions or one each; None: see `known_bounds`.
        action_high: upper bounds.
        drop_nan: leave out steps with a NaN instead of refusing them.
        clip_actions: bring actions within the given bounds instead of refusing them.
    """

    kind: ClassVar[str]

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        action_low: float | list[float] | None,
        action_high: float | list[float] | None,
        drop_nan: bool,
        clip_actions: bool,
    ) -> None:
        self._patterns: dict[str, Patterns] = {"ts": ts, "ta": ta}
        if (action_low is None) != (action_high is None):
            raise UserError("source.action_low, source.action_high: only one of them given, expected both or neither")
        if clip_actions and action_low is None:
            raise UserError("source.clip_actions: true given, expected source.action_low and source.action_high too")
        self._low, self._high = action_low, action_high
        self._drop_nan, self._clip = drop_nan, clip_actions
        self._open: dict[str, Trajectories] = {}
        self._identities: dict[str, dict[str, object]] = {}
        self._bounds: Bounds | None = None

    @abstractmethod
    def reading(self, name: str) -> Reading:
        """How a part's files are read."""

    def known_bounds(self, width: int) -> tuple[str, Any, Any] | None:
        """Where TA's files state the range of the actions, lower ends, upper ends; None: nowhere."""
        return None

    def part(self, name: str) -> Trajectories:
        if name not in self._patterns:
            raise UserError(f"source {self.kind}: no part {name!r}, expected ts or ta (setting=given)")
        if name not in self._open:
            how = self.reading(name)
            clip = (self._low, self._high) if self._clip and name == "ta" else None
            self._identities[name] = {
                "source": self.kind,
                "importer": _IMPORTER,
                "part": name,
                "files": how.identity,
                "columns": asdict(how.columns),
                "drop_nan": self._drop_nan,
                "clip": clip,
            }
            care = Care(drop_nan=self._drop_nan, clip=clip)
            self._open[name] = cache.cached(
                f"{self.kind}-{name}",
                self._identities[name],
                lambda folder: import_files(
                    how.paths, how.open_file, folder, how.columns, ignored=IGNORED[name], ending=how.ending,
                    care=care, option=how.option, telling=self.telling,
                ),
            )  # fmt: skip
        return self._open[name]

    telling: ClassVar[bool] = False
    """whether fields that are left out are named"""

    def fingerprint(self, name: str) -> str:
        self.part(name)
        return cache.content_fingerprint(f"{self.kind}-{name}", self._identities[name])

    def action_bounds(self, name: str) -> Bounds | None:
        width = self.part(name).recording.actions
        if width is None:
            return None
        if self._low is not None and self._high is not None:
            return given_bounds(self._low, self._high, width.shape[1])
        if self._bounds is None and (known := self.known_bounds(width.shape[1])) is not None:
            where, low, high = known
            high = np.where(low < high, high, low + 1.0)  # a dimension that never moves still needs a range
            log.info("action bounds: from %s, low %s, high %s", where, listed(low), listed(high))
            self._bounds = tuple(low.tolist()), tuple(high.tolist())
        return self._bounds

    def describe(self) -> str:
        names = {part: patterns if isinstance(patterns, str) else ", ".join(patterns)
                 for part, patterns in self._patterns.items()}  # fmt: skip
        return f"{self.kind}: TS {names['ts']}, TA {names['ta']}"


def listed(numbers: Any) -> str:
    """Numbers for people."""
    return f"[{', '.join(f'{number:.4g}' for number in numbers)}]"


def places(option: str, patterns: Patterns, found_in: Callable[[Path], list[Path]], expected: str) -> list[Path]:
    """The files that paths, folders and patterns mean, in order, each once.

    Args:
        option: as the user calls it.
        patterns: what was given.
        found_in: the files that a folder means.
        expected: what should be there.
    """
    found: list[Path] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        path = Path(pattern).expanduser()
        if path.is_dir():
            matching = found_in(path)
        elif path.exists() or not glob.has_magic(pattern):
            matching = [path]
        else:
            matching = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
        if not matching:
            raise UserError(f"{option}: {pattern!r} given, but no file is there, expected {expected}")
        found += matching
    if not found:
        raise UserError(f"{option}: an empty list given, expected at least one file")
    return list(dict.fromkeys(found))


def file_identity(path: Path) -> list[object]:
    """What changes when a file does."""
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def chosen_numbers(option: str, given: Choice | None) -> list[int] | None:
    """Numbers of episodes from a list, or from text such as `0:50,60` (0 to 49, and 60)."""
    if given is None or isinstance(given, list):
        return given
    numbers: list[int] = []
    for part in given.split(","):
        first, colon, last = part.strip().partition(":")
        if not first.isdecimal() or (colon and not last.isdecimal()) or len(part) > 20:
            raise UserError(f"{option}: {one_line(repr(given))} given, expected numbers and ranges such as 0:50,60")
        numbers += range(int(first), min(int(last), int(first) + (1 << 24))) if colon else [int(first)]
    return numbers


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
