"""Which runs belong together: those that differ in their seed alone, on tasks that have the same data."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.differences import telling_names
from tailo_pl.report.reading import RunRecord

_TASK = ("env", "source", "setting")
_ARM = ("method", "preset")
_MOST_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one task and one arm (method and preset), one per seed."""

    task: str
    arm: str
    runs: Sequence[RunRecord]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the finished runs."""
        return np.array([run.score for run in self.runs if run.score is not None])


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Groups in the order of their first run. Labels name what differs where names alone do not tell groups apart."""
    grouped: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for run in runs:
        grouped[_identity(run, _TASK), _identity(run, _ARM)].append(run)
    tasks = _labels({task: _leaves_of(members[0], _TASK) for (task, _), members in grouped.items()}, ("env", "setting"))
    arms: dict[tuple[str, str], str] = {}
    for one in tasks:
        leaves = {arm: _leaves_of(members[0], _ARM) for (task, arm), members in grouped.items() if task == one}
        arms |= {(one, arm): label for arm, label in _labels(leaves, _ARM).items()}
    return [Group(tasks[task], arms[task, arm], members) for (task, arm), members in grouped.items()]


def _identity(run: RunRecord, parts: tuple[str, ...]) -> str:
    return json.dumps(sorted(_leaves_of(run, parts).items()))


def _leaves_of(run: RunRecord, parts: tuple[str, ...]) -> dict[str, str]:
    """The values of a part of the configuration by dotted name, without the seeds of training."""
    leaves = {name: value for part in parts for name, value in _leaves(run.config.get(part), part)}
    return {name: value for name, value in leaves.items() if not name.startswith("method.") or name[-5:] != ".seed"}


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}")
    else:
        yield name, str(value)


def _labels(members: Mapping[str, dict[str, str]], named: tuple[str, ...]) -> dict[str, str]:
    """A label for each member: its names, and what tells it from others of the same names."""
    base = {key: " · ".join(leaves.get(f"{part}.name", "?") for part in named) for key, leaves in members.items()}
    labels = {}
    for key, leaves in members.items():
        twins = [members[other] for other in members if base[other] == base[key]]
        telling = telling_names(twins)[:_MOST_SHOWN]
        shown = [f"{name.split('.', 1)[1]}={leaves.get(name, 'none')}" for name in telling]
        labels[key] = ", ".join([base[key], *shown])
    return labels
