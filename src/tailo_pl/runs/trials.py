"""Trials of policies on the real thing, and which to try next: a bandit whose prior is what the runs' numbers say.

What was tried is kept in a file, so trials may go on for days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailo_pl.errors import UserError, one_line
from tailo_pl.files import read_json, write_json
from tailo_pl.runs.summary import is_number

PRIOR = 2.0  # trials that the numbers of a run count as
_SCHEMA = 1


@dataclass(frozen=True)
class Candidate:
    """A policy and what is known of it.

    Args:
        run: its run.
        promise: how well its numbers let one hope, from 0 to 1.
        trials: how many.
        successes: of them; a trial may be a part of one.
    """

    run: str
    promise: float
    trials: float = 0.0
    successes: float = 0.0

    @property
    def mean(self) -> float:
        """Expected success of the next trial."""
        return self._good / (self._good + self._bad)

    @property
    def hope(self) -> float:
        """Expected success and one standard deviation: what is worth trying next is what may be good."""
        total = self._good + self._bad
        return self.mean + math.sqrt(self._good * self._bad / (total**2 * (total + 1)))

    @property
    def _good(self) -> float:
        return 0.5 + PRIOR * self.promise + self.successes

    @property
    def _bad(self) -> float:
        return 0.5 + PRIOR * (1 - self.promise) + self.trials - self.successes


def in_order(candidates: list[Candidate]) -> list[Candidate]:
    """Which to try first; of equals the one that was tried less, then the one that was named first."""
    return sorted(candidates, key=lambda one: (-one.hope, one.trials))


def parse_trial(text: str) -> tuple[str, float]:
    """`RUN=success` with a success from 0 to 1."""
    run, equals, value = text.rpartition("=")
    try:
        success = float(value)
    except ValueError:
        success = math.nan
    if not equals or not run or not 0 <= success <= 1:
        raise UserError(f"--trial: {one_line(text)!r} given, expected RUN=success with a success from 0 to 1")
    return run, success


def read_trials(path: Path) -> dict[str, list[float]]:
    """The outcomes of each run's trials; none where there is no file."""
    if not path.exists():
        return {}
    found = read_json(path, "the trials of `tailo advise`")
    known = found.get("trials") if isinstance(found, Mapping) and found.get("schema") == _SCHEMA else None
    if not isinstance(known, dict):
        raise UserError(f"{path}: no trials of schema {_SCHEMA} found, expected what `tailo advise --trial` writes")
    for run, outcomes in known.items():
        if not isinstance(outcomes, list) or not all(is_number(one) and 0 <= one <= 1 for one in outcomes):
            raise UserError(f"{path}: trials.{one_line(run)}: expected a list of numbers from 0 to 1")
    return known


def write_trials(path: Path, trials: Mapping[str, list[float]]) -> None:
    """Keep the trials, whole or not at all."""
    try:
        write_json(path, {"schema": _SCHEMA, "trials": dict(trials)})
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from error
