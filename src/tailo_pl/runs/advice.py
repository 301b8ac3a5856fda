"""Which of several runs to choose without a simulator, by their verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.config.experiment import Experiment
from tailo_pl.errors import UserError
from tailo_pl.inputs.scores import rank_correlation
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.summary import Summary, VerdictPart, read_summary

_LEVELS = {"good": 0, "unknown": 1, "doubtful": 1, "bad": 2}
AS_GOOD = 0.03  # of the weight: a smaller gain is none
_CLOSER = 0.1  # of a held-out error: a smaller gain is none


@dataclass(frozen=True)
class Judged:
    """A run, with what its verdict is worth beside others."""

    path: Path
    summary: Summary

    @property
    def promise(self) -> float:
        """How well its verdict lets one hope."""
        return promise(self.summary["verdict"])

    @property
    def beside_bc(self) -> float:
        """Held-out error as a share of that of cloning all of TA alike."""
        return beside_bc(self.summary["verdict"]["numbers"])


def promise(verdict: VerdictPart) -> float:
    """From 0 to 1: the share of the weight in logs that go where TS goes, less where the verdict is worse."""
    return where_ts_goes(verdict["numbers"]) * {0: 1.0, 1: 0.75}.get(_LEVELS.get(verdict["level"], 1), 0.1)


def where_ts_goes(numbers: Mapping[str, float]) -> float:
    """The share of the weight in logs that go where TS goes, or of the weight of first steps where that is smaller; a
    half where neither is known."""
    return min(numbers.get("followed", 0.5), numbers.get("followed_at_first", 1.0))


def beside_bc(numbers: Mapping[str, float]) -> float:
    """Held-out error as a share of that of cloning all of TA alike, which predicts scores better than as a share of the
    mean action's (docs/evidence.md); 1 where it is not known."""
    usual = numbers.get("held_out_bc", 0.0)
    return numbers.get("held_out_error", usual) / usual if usual else 1.0


def place(verdict: VerdictPart) -> tuple[float, float]:
    """What runs are ordered by, the smallest first: their promise; between equals the held-out error decides."""
    return -round(promise(verdict) / AS_GOOD), beside_bc(verdict["numbers"])


def judged(paths: Sequence[Path]) -> list[Judged]:
    """Finished runs, the most promising first."""
    return sorted((Judged(path, read_summary(path)) for path in paths), key=_place)


@dataclass(frozen=True)
class Told:
    """What the numbers of runs that differ in one thing say of it.

    Args:
        name: what differs.
        values: of it, the most promising first.
        why: what speaks for the first; empty: the numbers do not tell them apart.
    """

    name: str
    values: list[str]
    why: str


def told_apart(runs: Sequence[Judged], chosen: Sequence[Mapping[str, str]]) -> list[Told]:
    """For everything in which runs differ that are alike in all else, which value their numbers speak for.

    Args:
        runs: some.
        chosen: what was chosen of each (`chosen_of`).
    """
    found = []
    for name in dict.fromkeys(name for one in chosen for name in one):
        groups: dict[str, dict[str, Judged]] = defaultdict(dict)
        for run, own in zip(runs, chosen, strict=True):
            if name in own:
                # What only one of two methods knows is not a difference beside that of the methods.
                rest = {
                    key: value for key, value in own.items() if key != name and (name != "method" or "." not in key)
                }
                best = groups[repr(rest)]
                best[own[name]] = min(best.get(own[name], run), run, key=_place)
        told = [_told(name, best) for best in groups.values() if len(best) > 1]
        if told:
            agreed = len({one.values[0] for one in told}) == 1 and all(one.why for one in told)
            found.append(told[0] if agreed else replace(told[0], why=""))
    return found


def _told(name: str, best: Mapping[str, Judged]) -> Told:
    """Of the best run with each value."""
    values = sorted(best, key=lambda value: _place(best[value]))
    return Told(name, values, _why(*(best[value].summary["verdict"] for value in values[:2])))


def _place(run: Judged) -> tuple[float, float]:
    return place(run.summary["verdict"])


def chosen_of(run_dir: Path) -> dict[str, str]:
    """What people choose of a run, by the names they choose it with."""
    config = load_run(run_dir).config
    own = {f"method.{name}": str(value) for name, value in config["method"].items() if not isinstance(value, dict)}
    method = own.pop("method.name")
    head = config["head"]["class_path"].rpartition(".")[2].lower()
    return {"method": method, "head": head, "preset": config["preset"]["name"], **own}


def _why(one: VerdictPart, other: VerdictPart) -> str:
    """What speaks for one of two runs, where anything does."""
    if place(one)[0] != place(other)[0]:
        if one["level"] != other["level"]:
            return f"verdict {one['level']}, not {other['level']}"
        shares = (where_ts_goes(verdict["numbers"]) for verdict in (one, other))
        return "{:.0%} of the weight where TS goes, not {:.0%}".format(*shares)
    errors = [beside_bc(verdict["numbers"]) for verdict in (one, other)]
    if errors[1] - errors[0] > _CLOSER * errors[1]:
        return "held-out error {:.0%} of that of cloning all alike, not {:.0%}".format(*errors)
    return ""


def agreement(one: Path, other: Path) -> float | None:
    """Spearman's correlation of the logs' mean scores of two runs on the same data; None: it cannot be told."""
    experiments = [load_run(one), load_run(other)]
    if experiments[0].fingerprint != experiments[1].fingerprint:
        return None
    ta = experiments[0].task.ta
    means = [
        ta.mean(stored_scores(path, each, each.weights.scores))
        for path, each in zip((one, other), experiments, strict=True)
        if each.weights is not None and scores_path(path, each.weights.scores).exists()  # not where it diverged before
    ]
    return rank_correlation(*means) if len(means) == 2 else None


def scores_path(run_dir: Path, stage: str) -> Path:
    """Where a stage's scores of TA are."""
    return run_dir / stage / "scores.npy"


def stored_scores(run_dir: Path, experiment: Experiment, stage: str) -> NDArray[Any]:
    """The scores that a stage of a run gave every step of TA."""
    path = scores_path(run_dir, stage)
    try:
        scores = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from error
    if scores.shape != (experiment.task.ta.steps,) or not np.isfinite(scores).all():
        raise UserError(
            f"{path}: shape {scores.shape} found, expected {experiment.task.ta.steps} finite numbers as in TA"
        )
    return np.asarray(scores)
