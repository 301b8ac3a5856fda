"""Which subtasks were done and when: by the expert, in the trajectories that weigh most and least, by the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.timeline import NEVER, Timeline
from tailo_pl.report.figure import NEUTRAL, Figure, Series
from tailo_pl.report.findings import EXPERT, OTHER
from tailo_pl.report.reading import RunRecord
from tailo_pl.runs.summary import is_number

Steps = Mapping[str, int]
"""Subtasks that were done, and after how many steps."""
_SHOWN = 3  # trajectories of each kind
_EPISODES = 5


def subtask_rows(run: RunRecord) -> list[tuple[str, Steps, int]]:
    """What is shown: whose trajectory, what was done in it, and its colour."""
    rows = [(f"policy, episode {number}", steps, NEUTRAL) for number, steps in enumerate(_policy(run)[:_EPISODES], 1)]
    timeline = run.timeline
    if timeline is None:
        return rows
    ordered = [_steps(timeline, one) for one in timeline.ts if (one > 0).any()][:_SHOWN]
    shown = [(f"TS, trajectory {number}", steps, EXPERT) for number, steps in enumerate(ordered, 1)]
    return [*shown, *_by_weight(run, timeline), *rows]


def _by_weight(run: RunRecord, timeline: Timeline) -> list[tuple[str, Steps, int]]:
    stage, layout = run.weighting, run.layout
    if stage is None or stage.weights is None or layout is None or len(timeline.ta) != len(layout.lengths):
        return []
    heaviest = np.argsort(-layout.mean(stage.weights), kind="stable")
    most, least = heaviest[:_SHOWN], heaviest[::-1][:_SHOWN]
    return [
        *((f"TA, {_place(rank)} most weight", _steps(timeline, timeline.ta[at]), 0) for rank, at in enumerate(most)),
        *((f"TA, {_place(rank)} least", _steps(timeline, timeline.ta[at]), OTHER) for rank, at in enumerate(least)),
    ]


def _place(rank: int) -> str:
    return ("1st", "2nd", "3rd")[rank]


def _steps(timeline: Timeline, first: NDArray[np.int64]) -> Steps:
    return {name: int(step) for name, step in zip(timeline.names.tolist(), first, strict=True) if step != NEVER}


def _policy(run: RunRecord) -> list[Steps]:
    """The episodes of the last evaluation."""
    evaluations = run.summary.get("evaluations") or [{}]
    subtasks: Mapping[str, Sequence[Any]] = evaluations[-1].get("subtasks") or {}
    episodes = min(map(len, subtasks.values()), default=0)
    return [
        {name: int(steps[number]) for name, steps in subtasks.items() if is_number(steps[number])}
        for number in range(episodes)
    ]


def subtask_figure(rows: Sequence[tuple[str, Steps, int]], key: str) -> Figure:
    """How many subtasks were done after so many steps, a staircase for each trajectory."""
    end = max((step for _, steps, _ in rows for step in steps.values()), default=0) + 10
    series = []
    for name, steps, color in rows:
        ends = sorted(steps.values())
        x = np.concatenate([[0], np.repeat(ends, 2), [end]])
        y = np.repeat(np.arange(len(ends) + 1), 2)
        series.append(Series(name, x, y, color=color, thin=name.startswith("policy"), group=name.split(",")[0]))
    return Figure(
        f"{key}-subtasks",
        "Subtasks done",
        "steps",
        "subtasks done so far",
        series,
        caption="Each line is a trajectory; the table says which subtask each of its steps is. The policy's are of the "
        "last evaluation.",
    )


def subtask_table(rows: Sequence[tuple[str, Steps, int]]) -> list[list[str]]:
    """In which order the subtasks were done, with the steps."""
    lines = [[name, _told(steps)] for name, steps, _ in rows]
    return [["trajectory", "subtasks in their order, with the step at which each was done"], *lines]


def _told(steps: Steps) -> str:
    return " → ".join(f"{name} {steps[name]}" for name in sorted(steps, key=lambda name: steps[name])) or "none"
