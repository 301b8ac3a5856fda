"""Figures of scores and weights, on trajectories small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.layout import Layout
from tailo_pl.report.alternatives import negatives_figure, prior_table, weights_figures
from tailo_pl.report.figure import averaged, picked, short
from tailo_pl.report.findings import Findings, find, origin_figures, trajectory_figures, weight_by_origin
from tailo_pl.report.reading import RunRecord, StageRecord

LAYOUT = Layout(np.array([0, 2, 5, 6]), np.array(["expert", "random", "random"]), np.array(["expert"]))
SCORES = np.array([1, 3, -1, -2, -3, -4], dtype=np.float32)
WEIGHTS = np.array([1, 0.5, 0.25, 0.125, 0.125, 0], dtype=np.float32)
NEGATIVES = {"scores": "pretrain", "beta_1": 0.5}
WEIGHTING = {"scores": "formal", "alpha": 1.0, "gamma": 0.0, "kind": "logit"}


def recorded(layout: Layout | None = LAYOUT, weighting: dict[str, object] = WEIGHTING) -> RunRecord:
    model = {"eta_p": 0.2}
    stages = {
        "pretrain": StageRecord("pretrain", {"model": model}, {}, {}, SCORES, None),
        "formal": StageRecord("formal", {"model": model, "inputs": {"negatives": NEGATIVES}}, {}, {}, -SCORES, None),
        "policy": StageRecord("policy", {"inputs": {"weights": weighting}}, {}, {}, None, WEIGHTS),
    }
    return RunRecord(Path("run"), {"method": {"name": "mine"}}, {}, {}, stages, layout)


def found(layout: Layout = LAYOUT, **weighting: object) -> Findings:
    findings = find(recorded(layout, {**WEIGHTING, "scores": "pretrain", **weighting}))
    assert isinstance(findings, Findings)
    return findings


def test_curves_along_trajectories_and_their_averages() -> None:
    reward, weight = trajectory_figures(found(), "r0", 100)
    curves = {series.name: (list(series.x), list(series.y)) for series in reward.series}
    assert curves["expert (trajectory 0)"] == ([0, 1], [1, 3])
    assert curves["non-expert (trajectory 1)"] == ([0, 1, 2], [-1, -2, -3])  # the median of means -2 and -4
    assert curves["all non-expert"] == ([0, 1, 2], [-2.5, -2, -3])  # of (-1, -4), (-2), (-3)
    assert list(weight.series[0].y) == [1, 0.5]


def test_without_labels_the_extremes_are_shown_and_one_average() -> None:
    unknown = Layout(LAYOUT.offsets, np.array(["a", "a", "a"]), np.array(["b"]))
    reward, _ = trajectory_figures(found(unknown), "r0", 100)
    assert [series.name for series in reward.series] == [
        "highest mean R (trajectory 0)", "lowest mean R (trajectory 2)", "all of TA",
    ]  # fmt: skip


def test_the_ablations_score_is_ten_times_the_probability() -> None:
    assert found(kind="probability").rewards == pytest.approx(10 / (1 + np.exp(-SCORES)))


def test_share_of_weight_by_origin() -> None:
    assert weight_by_origin(LAYOUT, WEIGHTS) == {"expert": (2 / 6, 0.75), "random": (4 / 6, 0.25)}
    (figure,) = origin_figures(found(), "r0")
    one_label = Layout(LAYOUT.offsets, np.array(["a", "a", "a"]), np.array(["b"]))
    assert origin_figures(found(one_label), "r0") == []
    assert figure.categories == ["expert", "random"] and [list(one.y) for one in figure.series][1] == [75, 25]


def test_many_origins_are_put_together() -> None:
    layout = Layout(np.arange(13), np.array([f"o{n:02}" for n in range(12)]), np.array(["x"]))
    shares = weight_by_origin(layout, np.arange(12, 0, -1).astype(np.float32))
    assert list(shares) == [f"o{n:02}" for n in range(8)] + ["4 others"]
    assert shares["4 others"] == pytest.approx((4 / 12, 10 / 78))


def test_safe_negatives_move_with_beta_1() -> None:
    figure = negatives_figure(recorded(), "r0")
    assert figure is not None and figure.controls[0].values == [0.3, 0.5, 0.7, 0.8, 0.9, 0.95]
    assert figure.controls[0].start == 1 and figure.marks[0].value == -2  # means 2, -2, -4
    facts = dict(figure.facts)
    assert facts["safe negatives"] == "1 of 3 trajectories" and facts["their steps"] == "1 (16.7 %)"
    wider = dict(figure.variants["3"].facts)  # the 0.8-quantile lies between -2 and 2
    assert wider["safe negatives"] == "2 of 3 trajectories" and wider["as in this run"] == "66.7 % of trajectories"
    assert wider["expert trajectories among them"] == "0 of 1"
    assert [sum(series.y) for series in figure.series] == [100, 100]  # type: ignore[arg-type]


def test_weights_are_recomputed_for_other_alpha_and_gamma() -> None:
    along, concentration = weights_figures(found(), "r0")
    alpha, gamma = along.controls
    assert alpha.values[alpha.start] == 1.0 and gamma.values[gamma.start] == 0.0
    own = along.variants[f"{alpha.start},{gamma.start}"]
    assert own.y is not None and own.y[0] == pytest.approx(np.exp([-2, 0])) and own.facts == along.facts
    sharp = along.variants[f"{alpha.values.index(2.0)},{gamma.start}"]
    assert sharp.y is not None and sharp.y[0] == pytest.approx(np.exp([-4, 0]))
    assert concentration.follows == along.key and set(concentration.variants) == set(along.variants)
    curve = concentration.series[0].y
    assert curve[0] == 0 and curve[-1] == pytest.approx(100)


def test_priors_stand_beside_what_is_taken_for_the_expert() -> None:
    _, pretrain, formal = prior_table(recorded())
    assert pretrain == ["pretrain", "0.2", "33.3 %", "33.3 %", "—"]
    assert formal == ["formal", "0.2", "66.7 %", "66.7 %", "-1.000"]


def test_a_run_without_weights_says_why() -> None:
    assert find(recorded(None)) == (
        "The scores, the weights or the layout of this run's trajectories are not there (see what is missing)."
    )
    plain = RunRecord(Path("run"), {"method": {"name": "bc"}}, {}, {}, {}, LAYOUT)
    assert find(plain) == "Method bc has no discriminator: it weights every step of TA alike."
    for odd in ({"kind": "unheard of"}, {"alpha": "much"}, {"gamma": None}, {"gamma": 1.0}):
        assert "does not know" in str(find(recorded(LAYOUT, {**WEIGHTING, **odd})))


def test_long_curves_are_shortened() -> None:
    x, y = averaged(np.arange(6), np.array([0.0, 2, 4, 6, 8, 10]), 3)
    assert x.tolist() == [0.5, 2.5, 4.5] and y.tolist() == [1, 5, 9]
    assert (
        picked(1000, 3).tolist() == [0, 500, 999] and picked(2, 80).tolist() == [0, 1] and picked(1, 5).tolist() == [0]
    )
    assert short(float("nan")) is None and short(1234567.0) == 1234600 and short(0.123456789) == 0.12346
