"""Which runs belong together: those that differ in their seed alone, on tasks that have the same data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.report.reading import RunRecord
from tailo_pl.runs.grouping import group_key, in_short, outcome, seeds, telling_names, told

_TASK = ("env", "source", "setting")  # groups of a configuration that make the task; all else makes the arm
_TASK_NAMES, _ARM_NAMES = ("env", "setting"), ("method", "preset")
_MOST_SHOWN = 3
Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one task and one arm (method, preset and whatever else decides the outcome), one per seed."""

    task: str
    arm: str
    runs: Sequence[RunRecord]

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the finished runs."""
        return np.array([run.score for run in self.runs if run.score is not None])


def group_runs(runs: Sequence[RunRecord]) -> list[Group]:
    """Groups in the order of their first run. Labels name what differs where names alone do not tell groups apart."""
    grouped: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        grouped[group_key(run.config, run.data.get("fingerprint"))].append(run)
    tasks: dict[str, Values] = {}
    arms: dict[str, dict[str, Values]] = defaultdict(dict)  # of each task
    for group, members in grouped.items():
        tasks[group], arm = _task_and_arm(members[0])
        arms[repr(tasks[group])][group] = arm
    task_labels = _labels(tasks, _TASK_NAMES)
    arm_labels = {group: label for rivals in arms.values() for group, label in _labels(rivals, _ARM_NAMES).items()}
    return [Group(task_labels[group], arm_labels[group], members) for group, members in grouped.items()]


def only_once(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Of runs that are the same and have the same seeds, the one that got furthest."""
    best: dict[tuple[str, str], RunRecord] = {}
    for run in runs:
        known = group_key(run.config, run.data.get("fingerprint")), seeds(run.config)
        if known not in best or (run.summary and not best[known].summary):
            best[known] = run
    return list(best.values())


def _task_and_arm(run: RunRecord) -> tuple[Values, Values]:
    """What decides a run's outcome, by dotted name."""
    task: Values = {"data.fingerprint": run.data.get("fingerprint")}
    arm: Values = {}
    for name, value in outcome(run.config).items():
        (task if name.split(".")[0] in _TASK else arm)[name] = value
    return task, arm


def _names(values: Values, named: tuple[str, ...]) -> list[str]:
    """The names of a member; where there is no environment, the source that the data is of."""
    names = [str(values.get(f"{part}.name", "?")) for part in named]
    if named == _TASK_NAMES and names[0] == "none":
        names = [f"data of source {values.get('source.name', '?')}", *(name for name in names[1:] if name != "given")]
    return names


def _labels(members: Mapping[str, Values], named: tuple[str, ...]) -> dict[str, str]:
    """A label for each member: its names, and what tells it from others of the same names."""
    base = {key: " · ".join(_names(values, named)) for key, values in members.items()}
    twins: dict[str, list[Values]] = defaultdict(list)
    for key, values in members.items():
        twins[base[key]].append(values)
    telling = {name: telling_names(alike)[:_MOST_SHOWN] for name, alike in twins.items()}
    labels = {}
    for key, values in members.items():
        names = telling[base[key]]
        shown = [told(name, values.get(name), in_short(names)) for name in names]
        labels[key] = ", ".join([base[key], *shown])
    return labels
