"""What came out: score over steps and time, the table over seeds, and how methods compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tailo_pl.report.figure import Dash, Figure, Mark, Series, colors
from tailo_pl.report.groups import Group
from tailo_pl.report.reading import RunRecord
from tailo_pl.report.statistics import Estimate, interquartile_estimate, probability_of_improvement

Table = list[list[str]]


def score_figures(groups: Sequence[Group]) -> list[Figure]:
    """For each task, score against policy steps and against time, where something was scored more than once."""
    figures = []
    tasks = list(dict.fromkeys(group.task for group in groups))
    for number, task in enumerate(tasks):
        members = [group for group in groups if group.task == task]
        looks = list(zip(members, colors(len(members)), strict=True))
        for by_time in (False, True):
            series = [one for group, (color, dash) in looks for one in _curves(group, by_time, color, dash)]
            figures.append(
                Figure(
                    key=f"score-{'time' if by_time else 'steps'}-{number}",
                    title=f"{task}: score against {'wall time' if by_time else 'policy steps'}",
                    x_label="wall time, all stages (s)" if by_time else "policy training steps",
                    y_label="normalised score",
                    series=series,
                    marks=_references(members) if series else [],
                    caption=_score_caption(by_time),
                )
            )
    return [figure for figure in figures if any(len(one.x) > 1 for one in figure.series)]


def _score_caption(by_time: bool) -> str:
    how = (
        "Thin lines are seeds, the thick line is their mean at the steps all of them have, the band one standard "
        "deviation over seeds (of one seed alone: over its episodes). 100 is the task's reference score."
    )
    if by_time:
        how += (
            " Time counts all stages, those taken over from another run too; within a stage it is taken to grow "
            "evenly with the steps."
        )
    return how


def _curves(group: Group, by_time: bool, color: int, dash: Dash) -> list[Series]:
    curves = []  # of each seed: steps, positions, scores, deviations
    for run in group.runs:
        if not run.evaluations:
            continue
        steps, scores, deviations = map(np.array, zip(*run.evaluations, strict=True))
        places = _seconds_at(run, steps) if by_time else steps.astype(float)
        if places is not None:
            curves.append((run, steps, places, scores, deviations))
    if not curves:
        return []
    if len(curves) == 1:
        _, _, places, scores, deviations = curves[0]
        low, high = scores - deviations, scores + deviations
        return [Series(group.arm, places, scores, low, high, color, dash)]
    thin = [
        Series(f"{group.arm}, seed {run.seed}", places, scores, color=color, thin=True, group=group.arm)
        for run, _, places, scores, _ in curves
    ]
    shared = sorted(set.intersection(*[set(steps.tolist()) for _, steps, *_ in curves]))
    if not shared:
        return thin
    rows = [np.searchsorted(steps, shared) for _, steps, *_ in curves]
    scores = np.array([curve[3][row] for curve, row in zip(curves, rows, strict=True)])
    places = np.mean([curve[2][row] for curve, row in zip(curves, rows, strict=True)], axis=0)
    mean, spread = scores.mean(0), scores.std(0)
    whole = Series(group.arm, places, mean, mean - spread, mean + spread, color, dash, group=group.arm)
    return [*thin, whole]


def _seconds_at(run: RunRecord, steps: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Seconds since the run's first stage began, at steps of its last stage."""
    *before, last = run.stages.values()
    total = last.result.get("steps")
    seconds = [stage.seconds for stage in (*before, last)]
    known = [value for value in seconds if value is not None]
    if len(known) < len(seconds) or not isinstance(total, int) or total < 1:
        return None
    return np.asarray(sum(known[:-1]) + known[-1] * steps / total)


def _references(members: Sequence[Group]) -> list[Mark]:
    """Lines for the expert in the data, and for behaviour cloning where it is among the runs."""
    marks = []
    expert = next((run.expert_score for group in members for run in group.runs if run.expert_score is not None), None)
    if expert is not None:
        marks.append(Mark("y", expert, f"expert data {expert:.1f}"))
    for group in members:
        if group.runs[0].named("method") == "bc" and len(group.scores):
            marks.append(Mark("y", float(group.scores.mean()), f"BC {group.scores.mean():.1f}"))
            break
    return marks


def score_table(groups: Sequence[Group]) -> Table:
    """Mean ± standard deviation over seeds, a row for each group."""
    rows = [["method", "score", "env", "setting", "preset", "seeds", "seconds per run"]]
    for group in groups:
        first, scores = group.runs[0], group.scores
        score = "—" if not len(scores) else f"{scores.mean():.1f}"
        spread = f" ± {scores.std():.1f}" if len(scores) > 1 else ""
        seeds = ", ".join(str(run.seed) for run in group.runs)
        unfinished = len(group.runs) - len(scores)
        spent = [sum(stage.seconds or 0.0 for stage in run.stages.values()) for run in group.runs]
        env, setting = _with_difference(group.task, first.named("env"), first.named("setting"))
        method, preset = _with_difference(group.arm, first.named("method"), first.named("preset"))
        seeds += f" ({unfinished} without a score)" if unfinished else ""
        diverged = sum(bool(run.summary.get("failure")) for run in group.runs)
        seeds += f" ({diverged} ended in a numerical error)" if diverged else ""
        rows.append([method, score + spread, env, setting, preset, seeds, f"{np.mean(spent):,.0f}"])
    return rows


def _with_difference(label: str, one: str, other: str) -> tuple[str, str]:
    """The two names of a label, the second with what the label says beyond them."""
    return one, other + label.removeprefix(f"{one} · {other}")


def comparison(groups: Sequence[Group]) -> list[Figure]:
    """Interquartile mean of each method over tasks and seeds, and how likely one improves on another.

    Of one run each on one task the table says it all: what is likely takes several seeds, or several tasks.
    """
    arms: dict[str, dict[str, NDArray[np.float64]]] = {}
    for group in groups:
        if len(group.scores):
            arms.setdefault(group.arm, {})[group.task] = group.scores
    means = {arm: interquartile_estimate(list(tasks.values())) for arm, tasks in arms.items()}
    pairs: dict[str, Estimate] = {}
    names = list(arms)
    for index, ours in enumerate(names):
        for theirs in names[index + 1 :]:
            shared = [task for task in arms[ours] if task in arms[theirs]]
            if sum(len(arms[one][task]) for one in (ours, theirs) for task in shared) > 2:
                better, worse = _ordered(ours, theirs, [(arms[ours][task], arms[theirs][task]) for task in shared])
                pairs[f"{better}  >  {worse}"] = probability_of_improvement(
                    [arms[better][task] for task in shared], [arms[worse][task] for task in shared]
                )
    runs = {arm: _counted(sum(map(len, tasks.values())), len(tasks)) for arm, tasks in arms.items()}
    figures = [
        _intervals(
            "comparison-iqm", "Interquartile mean over tasks and seeds", "normalised score", means, [],
            caption="Mean of the middle half of all scores of a method; the bar is a 95 % interval from 2,000 "
            "bootstrap draws of the seeds within each task (Agarwal et al., 2021). Fewer than four scores: plain mean. "
            f"Compare methods only where they ran on the same tasks: {_each(runs)}.",
        ),
        _intervals(
            "comparison-improvement", "Probability of improvement", "probability that the first scores higher", pairs,
            [Mark("x", 0.5, "no difference")], (0.0, 1.0),
            caption="How likely a run of the first method scores above a run of the second on the same task, ties "
            "half; 95 % interval as above. An interval that leaves out 0.5 speaks for a difference.",
        ),
    ]  # fmt: skip
    return [figure for figure in figures if figure.series]


def _each(runs: dict[str, str]) -> str:
    """How many runs each method has, in few words where all have as many."""
    if len(set(runs.values())) == 1 and len(runs) > 1:
        return f"each has {next(iter(runs.values()))}"
    return "; ".join(f"{arm}: {count}" for arm, count in runs.items())


def _ordered(
    ours: str, theirs: str, scores: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> tuple[str, str]:
    """Two methods, the one that scores higher more often first."""
    chance = probability_of_improvement([one for one, _ in scores], [other for _, other in scores], replicates=1).value
    return (ours, theirs) if chance >= 0.5 else (theirs, ours)


def _counted(runs: int, tasks: int) -> str:
    return f"{runs} run{'s' * (runs != 1)} on {tasks} task{'s' * (tasks != 1)}"


def _intervals(
    key: str,
    title: str,
    label: str,
    estimates: dict[str, Estimate],
    marks: list[Mark],
    x_range: tuple[float, float] | None = None,
    *,
    caption: str,
) -> Figure:
    values = [estimate.value for estimate in estimates.values()]
    bounds = [estimate.interval or (estimate.value, estimate.value) for estimate in estimates.values()]
    low, high = ([bound[side] for bound in bounds] for side in (0, 1))
    series = [Series(title, [], values, low, high)] if estimates else []
    without = [name for name, estimate in estimates.items() if estimate.interval is None]
    if without:
        whose = "" if len(without) == len(estimates) else f": {', '.join(without)}"
        caption += f" One seed per task gives no interval{whose}."
    named = [
        name if one.interval is None else f"{name}: {one.value:.3g} ({one.interval[0]:.3g} to {one.interval[1]:.3g})"
        for name, one in estimates.items()
    ]
    return Figure(
        key, title, label, "", series, kind="intervals", caption=caption, categories=named, marks=marks,
        x_range=x_range,
    )  # fmt: skip
