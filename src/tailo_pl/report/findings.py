"""What the discriminator found in TA and where the weight went: figures of one run, trajectory by trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.layout import Layout
from tailo_pl.inputs.scores import ScoreKind
from tailo_pl.report.figure import NEUTRAL, Figure, Series, averaged, picked
from tailo_pl.report.reading import RunRecord
from tailo_pl.runs.summary import is_number

EXPERT, OTHER = 1, 2  # colours, as in the paper: red for the expert, green for the others
_MOST_ORIGINS = 8
_LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Findings:
    """A run's scores and weights with what is known of its trajectories.

    Args:
        layout: of TA.
        logits: D(s) of every step.
        rewards: R(s): the logits, or 10*c(s) where the method says so.
        weights: W(s, a).
        options: alpha, gamma and kind that made the weights.
        examples: name, number and colour of the trajectories that are shown.
    """

    layout: Layout
    logits: NDArray[np.float32]
    rewards: NDArray[Any]
    weights: NDArray[np.float32]
    options: dict[str, Any]
    examples: list[tuple[str, int, int]]


def find(run: RunRecord) -> Findings | str:
    """The findings of a run, or why it has none."""
    stage = run.weighting
    if stage is None:
        return f"Method {run.named('method')} has no discriminator: it weights every step of TA alike."
    logits, layout = run.scores_of(stage, "weights"), run.layout
    if logits is None or stage.weights is None or layout is None:
        return "The scores, the weights or the layout of this run's trajectories are not there (see what is missing)."
    options = {"kind": "logit", **stage.input("weights")}
    alpha, gamma = options.get("alpha"), options.get("gamma")
    if options["kind"] not in get_args(ScoreKind) or not is_number(alpha) or not is_number(gamma) or not 0 <= gamma < 1:
        return f"The weights of stage {stage.name} were made in a way this version does not know: {options}."
    rewards: NDArray[Any] = logits if options["kind"] == "logit" else 10 / (1 + np.exp(-logits))
    return Findings(layout, logits, rewards, stage.weights, options, _examples(layout, layout.mean(rewards)))


def _examples(layout: Layout, means: NDArray[np.float64]) -> list[tuple[str, int, int]]:
    """A typical expert trajectory and a typical other one; where nobody knows, the best and the worst of all."""
    experts = layout.experts
    if experts is None:
        best, worst = int(np.argmax(means)), int(np.argmin(means))
        found = [("highest mean R", best, EXPERT), ("lowest mean R", worst, OTHER)]
        return found if best != worst else found[:1]
    return [
        (name, _median(np.flatnonzero(part), means), color)
        for name, part, color in (("expert", experts, EXPERT), ("non-expert", ~experts, OTHER))
    ]


def _median(rows: NDArray[np.int64], means: NDArray[np.float64]) -> int:
    return int(rows[np.argsort(means[rows], kind="stable")[len(rows) // 2]])


def trajectory_figures(found: Findings, key: str, points: int) -> list[Figure]:
    """R(s) and W(s, a) along two trajectories of TA, with the averages over all."""
    layout, experts = found.layout, found.layout.experts
    classes = [("all of TA", np.ones(len(layout.lengths), dtype=bool), NEUTRAL)]
    if experts is not None:
        classes = [("all expert", experts, EXPERT), ("all non-expert", ~experts, OTHER)]
    position = np.arange(layout.steps) - np.repeat(layout.offsets[:-1], layout.lengths)
    how = "of typical (median mean R) trajectories" if experts is not None else "of the two extremes"
    caption = (
        f"Solid: along one trajectory each, {how}. Dashed: average at each step over all that reach it, while at least "
        f"{_LEAST_SHARE:.0%} do."
    )
    figures = []
    for name, label, values in (
        ("reward", "R(s), the score of a state", found.rewards),
        ("weight", "W(s, a), share of the largest", found.weights),
    ):
        series = [_along(layout, values, *example, points) for example in found.examples]
        for title, part, color in classes:
            steps = np.repeat(part, layout.lengths)
            sums, counts = np.bincount(position[steps], weights=values[steps]), np.bincount(position[steps])
            enough = counts >= _LEAST_SHARE * part.sum()  # at the end the average would be that of a few
            x, y = averaged(np.flatnonzero(enough), sums[enough] / counts[enough], points)
            series.append(Series(title, x, y, color=color, dash="dashed"))
        title = f"{label.split(',')[0]}{', a)' if name == 'weight' else ''} along trajectories of TA"
        figures.append(Figure(f"{key}-{name}", title, "step of the trajectory", label, series, caption=caption))
    return figures


def _along(layout: Layout, values: NDArray[np.float32], name: str, number: int, color: int, points: int) -> Series:
    begin = int(layout.offsets[number])
    rows = picked(int(layout.lengths[number]), points)
    return Series(f"{name} (trajectory {number:,})", rows, np.asarray(values[begin + rows]), color=color)


def origin_figures(found: Findings, key: str) -> list[Figure]:
    """How much of TA each origin makes up, and how much of the weight; none where there is one origin only."""
    shares = weight_by_origin(found.layout, found.weights)
    if len(shares) < 2:
        return []
    series = [
        Series("share of steps", [], [100 * steps for steps, _ in shares.values()], color=0),
        Series("share of weight", [], [100 * weight for _, weight in shares.values()], color=EXPERT),
    ]
    figure = Figure(
        f"{key}-origins",
        "Share of the weight by origin",
        "share of TA (%)",
        "",
        series,
        kind="bars",
        categories=list(shares),
        caption="Origins are labels of the data source, which training never sees. Weight on the expert's origin means "
        "the discriminator found it.",
    )
    return [figure]


def weight_by_origin(layout: Layout, weights: NDArray[np.float32]) -> dict[str, tuple[float, float]]:
    """For each origin its share of the steps and of the weight; rare ones together as `others`."""
    sums = np.add.reduceat(weights, layout.offsets[:-1], dtype=np.float64)
    steps = np.bincount(layout.codes, weights=layout.lengths) / layout.steps
    weight = np.bincount(layout.codes, weights=sums) / sums.sum()
    order = np.argsort(-weight, kind="stable")
    shares = {layout.labels[row]: (float(steps[row]), float(weight[row])) for row in order[:_MOST_ORIGINS]}
    if len(rest := order[_MOST_ORIGINS:]):
        shares[f"{len(rest)} others"] = (float(steps[rest].sum()), float(weight[rest].sum()))
    return shares
