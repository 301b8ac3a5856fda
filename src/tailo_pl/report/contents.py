"""Contents: everything a report shows, in order, before it becomes a page or files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tailo_pl.files import yaml_text
from tailo_pl.report.alternatives import negatives_figure, prior_table, scores_figure, weights_figures
from tailo_pl.report.figure import Figure
from tailo_pl.report.findings import find, origin_figures, trajectory_figures
from tailo_pl.report.groups import Group, group_runs
from tailo_pl.report.lead import lead, quality_table
from tailo_pl.report.maze import maze_figures
from tailo_pl.report.outcomes import comparison, score_figures, score_table
from tailo_pl.report.reading import RunRecord, table
from tailo_pl.report.subtasks import subtask_figure, subtask_rows, subtask_table
from tailo_pl.report.training import training_figures
from tailo_pl.runs.summary import is_number
from tailo_pl.runs.verdict import NAMES, in_words

_POINTS = 6000  # of a curve, divided among the runs: what keeps the page small


@dataclass(frozen=True)
class Block:
    """Something under one heading.

    Args:
        key: its anchor.
        heading: one line.
        text: before the figures.
        figures: in order.
        tables: title and rows, the first of which is the head.
        code: a file as it is, folded away.
    """

    key: str
    heading: str
    text: str = ""
    figures: Sequence[Figure] = ()
    tables: Sequence[tuple[str, list[list[str]]]] = ()
    code: str = ""


@dataclass(frozen=True)
class RunPart:
    """What a report shows of one run."""

    name: str
    missing: Sequence[str]
    blocks: Sequence[Block]
    folder: str = ""
    """name of the run's folder"""


@dataclass(frozen=True)
class Contents:
    """All of a report."""

    title: str
    blocks: Sequence[Block]
    runs: Sequence[RunPart]
    lead: str = ""
    """what came out, in a sentence"""

    @property
    def file_names(self) -> dict[str, str]:
        """What each figure's files are called: those of a run begin with its folder's name."""
        names: dict[str, str] = {}
        for number, run in enumerate(self.runs):
            known = [other.folder for other in self.runs]
            own = run.folder if known.count(run.folder) == 1 else f"{run.folder}-{number}"
            for block in run.blocks:
                names |= {figure.key: f"{own}-{figure.key.partition('-')[2]}" for figure in block.figures}
        return names

    @property
    def figures(self) -> Iterator[Figure]:
        """All figures, in order."""
        parts = (self.blocks, *(run.blocks for run in self.runs))
        return (figure for blocks in parts for block in blocks for figure in block.figures)


def contents_of(runs: Sequence[RunRecord], title: str = "") -> Contents:
    """What there is to show of these runs.

    Args:
        runs: one or more.
        title: of the report; empty: the tasks' names.
    """
    groups = group_runs(runs)
    scored = any(run.evaluations or run.score is not None for run in runs)
    blocks = [_scores(groups) if scored else _held_out(groups)]
    if len(runs) > 1 and (compared := comparison(groups)):
        blocks.append(Block("comparison", "Comparison of methods", figures=compared))
    points = max(60, min(400, _POINTS // len(runs)))
    parts = [
        _part(run, group, number, points)
        for number, (group, run) in enumerate((group, run) for group in groups for run in group.runs)
    ]
    tasks = list(dict.fromkeys(group.task for group in groups))
    several = f"{len(runs)} runs on {len(tasks)} tasks"
    return Contents(title or ("; ".join(tasks) if len(tasks) < 4 else several), blocks, parts, lead(groups))


def _scores(groups: Sequence[Group]) -> Block:
    return Block(
        "scores",
        "Score",
        "Scores are returns normalised so that 0 is the task's low reference and 100 the high one; "
        "where a task has no references they are the returns themselves.",
        score_figures(groups),
        [("Mean ± standard deviation over seeds", score_table(groups))],
    )


def _held_out(groups: Sequence[Group]) -> Block:
    return Block(
        "held-out",
        "Judged by the data alone",
        "The held-out error is that of the actions of a few trajectories that training did not see, weighted as in "
        "training. Weight where TS goes is the share of it in logs that come near at least half of TS's states.",
        tables=[("Over seeds", quality_table(groups))],
    )


def _part(run: RunRecord, group: Group, number: int, points: int) -> RunPart:
    key = f"r{number}"
    training = training_figures(run, key, points)
    blocks = [
        *_verdict(run, key),
        *_found(run, group, key, points),
        *_subtasks(run, key),
        *([Block(f"{key}-training", "Training", figures=training)] if training else []),
        _record(run, key),
    ]
    if run is group.runs[0] and (maze := maze_figures(run, find(run), key, points)):
        text = "Seen from above, for tasks whose states begin with x and y; of several seeds the first."
        blocks.insert(0, Block(f"{key}-maze", "On the floor", text, maze))
    return RunPart(f"{group.task} · {group.arm}, seed {run.seed}", run.missing, blocks, run.path.name)


def _verdict(run: RunRecord, key: str) -> list[Block]:
    """What is to be thought of the run without a simulator, with the numbers behind it."""
    verdict = table(run.summary, "verdict")
    if not verdict:
        return []
    numbers = table(verdict, "numbers")
    known = [(name, value) for name, value in numbers.items() if is_number(value)]
    rows = [["number", "value"], *([NAMES.get(name, str(name)), in_words(name, value)] for name, value in known)]
    tables = [("Without a simulator", rows)] if numbers else []
    text = f"{verdict.get('level')}: {verdict.get('text')}"
    return [Block(f"{key}-verdict", "Verdict", text, tables=tables)]


def _found(run: RunRecord, group: Group, key: str, points: int) -> list[Block]:
    heading = "What the discriminator found"
    found = find(run)
    negatives = negatives_figure(run, key)
    distribution = [negatives] if negatives else []
    priors = prior_table(run)
    tables = [("What each discriminator takes for the expert's", priors)] if priors else []
    if isinstance(found, str):
        return [Block(f"{key}-found", heading, found, distribution, tables)]
    first = next(other for other in group.runs if not isinstance(find(other), str))
    choices = weights_figures(found, key) if run is first else []
    seed = "" if choices else f" The sliders for alpha and gamma are shown for seed {first.seed}."
    return [
        Block(
            f"{key}-found",
            heading,
            figures=[*trajectory_figures(found, key, points), *origin_figures(found, key), scores_figure(found, key)],
        ),
        Block(
            f"{key}-choices",
            "What to choose without ground truth",
            "These are what other values would make of this run's own scores. eta_p acts while the discriminator is "
            "trained, so another value needs another run; what can be said here is how much of TA each discriminator "
            f"takes for the expert's, beside the eta_p it was told.{seed}",
            [*distribution, *choices],
            tables,
        ),
    ]


def _subtasks(run: RunRecord, key: str) -> list[Block]:
    rows = subtask_rows(run)
    if not rows:
        return []
    tables = [("Order of the subtasks", subtask_table(rows))]
    return [Block(f"{key}-subtasks-done", "Subtasks", figures=[subtask_figure(rows, key)], tables=tables)]


def _record(run: RunRecord, key: str) -> Block:
    """Data, timings, versions and configuration."""
    tables = [
        ("Data", _data(run)),
        ("Stages", _stages(run)),
        ("Versions", [["package", "version"], *([str(a), str(b)] for a, b in table(run.summary, "versions").items())]),
    ]
    of = f". Source of the data: {run.data.get('source')} (fingerprint {run.data.get('fingerprint')})"
    return Block(
        f"{key}-record",
        "Data, configuration, versions, timings",
        f"Run folder: {run.path}{of if run.data else ''}",
        tables=[(title, rows) for title, rows in tables if len(rows) > 1],
        code=yaml_text(dict(run.config)),
    )


def _data(run: RunRecord) -> list[list[str]]:
    ts, ta = table(run.data, "ts"), table(run.data, "ta")
    rows = [["part", "trajectories", "steps", "mean return"]]
    if ts:
        rows.append(["TS (states only)", _count(ts.get("trajectories")), _count(ts.get("states")), "—"])
    if ta:
        rows.append(["TA", _count(ta.get("trajectories")), _count(ta.get("steps")), "—"])
    for origin in table(ta, "origins"):
        part = table(ta, "origins", origin)
        mean = part.get("mean_return")
        shown = f"{mean:,.1f}" if is_number(mean) else "—"
        rows.append([f"TA, {origin}", _count(part.get("trajectories")), _count(part.get("steps")), shown])
    return rows


def _stages(run: RunRecord) -> list[list[str]]:
    rows = [["stage", "steps", "ended by", "chosen step", "seconds", "CPU seconds", "last loss", "quality"]]
    for stage in run.stages.values():
        result, quality = stage.result, table(stage.result, "quality")
        name = stage.name + (f" (taken over from {result['reused_from']})" if result.get("reused_from") else "")
        numbers = [_number(result.get(field)) for field in ("seconds", "cpu_seconds", "loss")]
        if not result:
            name += " (not finished)"
        shown = ", ".join(f"{field} {_number(value)}" for field, value in quality.items())
        steps, chosen = (_count(result.get(field)) for field in ("steps", "chosen_step"))
        rows.append([name, steps, str(result.get("stopped", "—")), chosen, *numbers, shown])
    return rows


def _count(value: Any) -> str:
    return f"{value:,.0f}" if is_number(value) else "—"


def _number(value: Any) -> str:
    return "—" if not is_number(value) else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
