"""The first lines of a report: what came out, in a sentence, and what the letters mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tailo_pl.report.groups import Group
from tailo_pl.report.reading import RunRecord, table
from tailo_pl.runs.summary import is_number

TERMS = (
    ("TS", "the expert's states: what was watched, without actions"),
    ("TA", "your logs: state-action trajectories of unknown quality"),
    ("R(s)", "the score of a state: how much more it looks like the expert's than not"),
    ("W(s, a)", "the weight of a step in cloning: what R says of all that follows it"),
)


def lead(groups: Sequence[Group]) -> str:
    """What came out of these runs."""
    scored = [group for group in groups if len(group.scores)]
    if not scored:
        return _unscored([run for group in groups for run in group.runs])
    sentences = []
    for task in dict.fromkeys(group.task for group in scored):
        best, *others = sorted((group for group in scored if group.task == task), key=lambda one: -one.scores.mean())
        sentence = f"On {task}, {best.arm} scores {_score(best)}"
        if others:
            sentence += "; next " + ", ".join(f"{other.arm} ({_score(other)})" for other in others[:3])
            sentence += f" and {len(others) - 3} more" if len(others) > 3 else ""
        sentences.append(f"{sentence}.")
    if len(sentences) > 4:
        return f"{len(scored)} methods and variants on {len(sentences)} tasks; the table has every score."
    return " ".join(sentences)


def _score(group: Group) -> str:
    scores = group.scores
    if len(scores) > 1:
        return f"{scores.mean():.1f} ± {scores.std():.1f} over {len(scores)} seeds"
    return f"{scores[0]:.1f}"


def _unscored(runs: Sequence[RunRecord]) -> str:
    """Without an environment nothing was played: what is known is the verdict and how well actions are predicted."""
    errors = [value for run in runs if (value := quality(run, "held_out_error")) is not None]
    verdicts = [table(run.summary, "verdict") for run in runs if table(run.summary, "verdict")]
    if not errors and not verdicts:
        return "No stage of these runs is finished: there is no score yet and nothing held out."
    said = []
    if len(verdicts) == 1:
        said.append(f"the verdict is {verdicts[0].get('level')} ({verdicts[0].get('text')})")
    elif verdicts:
        counts = Counter(str(one.get("level")) for one in verdicts)
        said.append(f"the verdicts are {', '.join(f'{count} {level}' for level, count in counts.items())}")
    if errors:
        said.append(
            f"the policy predicts held-out actions with a weighted squared error of {np.mean(errors):.3g} "
            "(actions scaled to -1 to 1)"
        )
    sentence = " and ".join(said)
    return f"Nothing was played, there is no environment: {sentence}."


def quality(run: RunRecord, name: str) -> float | None:
    """A number that the last stage with such a number reports of itself."""
    found = [table(stage.result, "quality").get(name) for stage in run.stages.values()]
    known = [float(value) for value in found if is_number(value)]
    return known[-1] if known else None


def quality_table(groups: Sequence[Group]) -> list[list[str]]:
    """What is known of runs without a score, a row for each group."""
    rows = [["method", "held-out error", "weight where TS goes", "preset", "seeds"]]
    for group in groups:
        cells = []
        for name, digits in (("held_out_error", 3), ("followed", 2)):
            values = [value for run in group.runs if (value := quality(run, name)) is not None]
            spread = f" ± {np.std(values):.2g}" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.{digits}g}{spread}" if values else "—")
        method, _, preset = group.arm.partition(" · ")
        rows.append([method, *cells, preset, ", ".join(str(run.seed) for run in group.runs)])
    return rows
