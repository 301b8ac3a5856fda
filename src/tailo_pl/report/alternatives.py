"""What to choose without ground truth: what other values of beta_1, alpha and gamma would have made of the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.layout import Layout
from tailo_pl.inputs.scores import rank_correlation
from tailo_pl.inputs.weights import trajectory_weights
from tailo_pl.report.figure import Control, Curve, Figure, Mark, Series, Variant, percent, picked
from tailo_pl.report.findings import EXPERT, OTHER, Findings, weight_by_origin
from tailo_pl.report.reading import RunRecord, table
from tailo_pl.runs.summary import is_number

BETA_1 = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ALPHA = (0.5, 1.0, 1.25, 1.5, 2.0)
GAMMA = (0.0, 0.95, 0.98, 0.99, 0.998, 0.999)
_BINS = 50
_POINTS = 80
_SHARES = np.array([0, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 40, 50, 75, 100]) / 100


def negatives_figure(run: RunRecord, key: str) -> Figure | None:
    """The mean R' of TA's trajectories, with the beta_1-quantile below which they are safe negatives."""
    stage = run.choosing
    scores, layout = run.scores_of(stage, "negatives"), run.layout
    if stage is None or scores is None or layout is None:
        return None
    means, options = layout.mean(scores), stage.input("negatives")
    beta_1 = options.get("beta_1")
    if not is_number(beta_1) or not 0 < beta_1 < 1:
        return None
    control = _control("beta_1", BETA_1, float(beta_1))
    own = means < np.quantile(means, control.values[control.start])
    variants = {str(index): _negatives(layout, means, beta, own) for index, beta in enumerate(control.values)}
    chosen = variants[str(control.start)]
    return Figure(
        f"{key}-negatives",
        "Mean score of each trajectory, and the safe negatives",
        f"mean R'(s) of the trajectory (stage {options['scores']})",
        "share of trajectories of its kind (%)",
        _histograms(layout, means),
        kind="histogram",
        marks=chosen.marks or [],
        shade=chosen.shade,
        facts=chosen.facts,
        controls=[control],
        variants=variants,
        caption="Trajectories whose mean lies below the beta_1-quantile (shaded) are what the second discriminator "
        "takes for non-expert. A good beta_1 leaves the expert's hump out of the shade and most of the rest in it. "
        "The slider starts at the run's own value; other values are recomputed from the stored scores.",
    )


def _negatives(layout: Layout, means: NDArray[np.float64], beta_1: float, own: NDArray[np.bool_]) -> Variant:
    quantile = float(np.quantile(means, beta_1))
    safe = means < quantile
    facts = [
        ("safe negatives", f"{int(safe.sum()):,} of {len(means):,} trajectories"),
        ("their steps", f"{int(layout.lengths[safe].sum()):,} ({percent(layout.lengths[safe].sum() / layout.steps)})"),
        ("as in this run", percent(float((safe == own).mean())) + " of trajectories"),
    ]
    if (experts := layout.experts) is not None:
        wrong = int((safe & experts).sum())
        facts.append(("expert trajectories among them", f"{wrong:,} of {int(experts.sum()):,}"))
    mark = Mark("x", quantile, f"← safe negatives ({beta_1:g}-quantile)")
    return Variant(marks=[mark], shade=(float(means.min()), quantile), facts=facts)


def _histograms(layout: Layout, means: NDArray[np.float64]) -> list[Series]:
    edges = np.histogram_bin_edges(means, _BINS)
    classes = [("all of TA", np.ones(len(means), dtype=bool), 0)]
    if (experts := layout.experts) is not None:
        classes = [("non-expert", ~experts, OTHER), ("expert", experts, EXPERT)]
    return [
        Series(name, edges, 100 * np.histogram(means[part], edges)[0] / part.sum(), color=color)
        for name, part, color in classes
    ]


def scores_figure(found: Findings, key: str) -> Figure:
    """The mean R of TA's trajectories, as the weights see them."""
    return Figure(
        f"{key}-scores",
        "Mean R(s) of each trajectory, as the weights see it",
        f"mean R(s) of the trajectory (stage {found.options['scores']})",
        "share of trajectories of its kind (%)",
        _histograms(found.layout, found.layout.mean(found.rewards)),
        kind="histogram",
        caption="Two humps well apart mean that the discriminator is sure. One hump means that TA holds one kind of "
        "behaviour, or that the discriminator cannot tell.",
    )


def weights_figures(found: Findings, key: str) -> list[Figure]:
    """W along the shown trajectories, and how concentrated the weight is, for other values of alpha and gamma."""
    logit = found.options["kind"] == "logit"
    alpha = _control("alpha", ALPHA if logit else (), float(found.options["alpha"]))
    gamma = _control("gamma", GAMMA, float(found.options["gamma"]))
    layout = found.layout
    rows = [layout.offsets[number] + picked(int(layout.lengths[number]), _POINTS) for _, number, _ in found.examples]
    own = layout.mean(found.weights)
    along: dict[str, Variant] = {}
    concentration: dict[str, Variant] = {}
    for first, a in enumerate(alpha.values):
        for second, g in enumerate(gamma.values):
            weights = trajectory_weights(found.logits, layout.offsets, alpha=a, gamma=g, kind=found.options["kind"])
            at = f"{first},{second}"
            along[at] = Variant(y=[weights[row] for row in rows], facts=_facts(layout, weights, own))
            concentration[at] = Variant(y=[_concentration(weights)])
    start = f"{alpha.start},{gamma.start}"
    series = [
        Series(f"{name} (trajectory {number:,})", row - layout.offsets[number], y, color=color)
        for (name, number, color), row, y in zip(found.examples, rows, along[start].y or [], strict=True)
    ]
    recomputed = "Recomputed from the stored scores; the sliders start at the run's own values."
    return [
        Figure(
            f"{key}-choice",
            "W(s, a) with other alpha and gamma",
            "step of the trajectory",
            "W(s, a), share of the largest",
            series,
            facts=along[start].facts,
            controls=[alpha, gamma],
            variants=along,
            caption="gamma carries the weight of later states back to earlier ones, alpha sharpens the difference "
            f"between states. {recomputed}",
        ),
        Figure(
            f"{key}-concentration",
            "How concentrated the weight is",
            "heaviest steps of TA (%)",
            "weight they carry (%)",
            [Series("weight", 100 * _SHARES, _only(concentration[start].y))],
            follows=f"{key}-choice",
            variants=concentration,
            caption="The diagonal would be behaviour cloning. A curve that jumps at once means that few steps decide, "
            "and the policy sees little else.",
        ),
    ]


def _only(curves: Sequence[Curve] | None) -> Curve:
    assert curves is not None
    return curves[0]


def _concentration(weights: NDArray[np.float32]) -> NDArray[np.float64]:
    carried = np.cumsum(np.sort(weights)[::-1], dtype=np.float64)
    counts = np.round(_SHARES * len(weights)).astype(np.int64)
    return np.asarray(100 * np.append(0.0, carried)[counts] / carried[-1])


def _facts(layout: Layout, weights: NDArray[np.float32], own: NDArray[np.float64]) -> list[tuple[str, str]]:
    total, squares = weights.sum(dtype=np.float64), np.square(weights, dtype=np.float64).sum()
    agreement = rank_correlation(layout.mean(weights), own)
    facts = [
        ("effective share of steps", percent(float(total**2 / squares / len(weights)))),
        ("rank correlation of trajectories with this run", "—" if agreement is None else f"{agreement:.3f}"),
    ]
    shares = weight_by_origin(layout, weights)
    if len(shares) > 1:
        facts += [(f"weight on {origin}", percent(weight)) for origin, (_, weight) in list(shares.items())[:4]]
    return facts


def prior_table(run: RunRecord) -> list[list[str]]:
    """What each discriminator takes for the expert's, beside the eta_p it was told."""
    rows = [
        ["stage", "eta_p", "steps with R > 0", "trajectories with mean R > 0", "rank correlation with stage before"]
    ]
    before: NDArray[np.float64] | None = None
    for stage in run.stages.values():
        if stage.scores is None or run.layout is None:
            continue
        means = run.layout.mean(stage.scores)
        agreement = None if before is None else rank_correlation(before, means)
        eta_p = table(stage.config, "model").get("eta_p")
        above = [percent(float((values > 0).mean())) for values in (stage.scores, means)]
        shown = ["—" if eta_p is None else str(eta_p), *above, "—" if agreement is None else f"{agreement:.3f}"]
        rows.append([stage.name, *shown])
        before = means
    return rows if len(rows) > 1 else []


def _control(name: str, grid: Sequence[float], own: float) -> Control:
    values = sorted({*grid, own})
    return Control(name, values, values.index(own))
