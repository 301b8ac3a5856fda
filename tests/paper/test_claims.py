"""Claims are decided by numbers: each rule against scores given by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.cells import FAST, result, results, scores
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.errors import UserError
from tailo_pl.paper.claims import FAILS, HOLDS, IN_PART, OPEN, SO_FAR, Verdict, judge
from tailo_pl.paper.figures import Claim, read_figures
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.scores import scores_of

FIGURES = read_figures()
HOPPER, WALKER = "hopper standard", "walker2d standard"


def verdict(name: str, found: dict[tuple[str, str], float | list[float]], number: int = 0) -> Verdict:
    figure = FIGURES[name]
    return judge(figure.claims[number], figure, scores(figure, found))


def test_best_counts_panels_and_names_those_that_say_otherwise() -> None:
    assert verdict("standard", {}).level == OPEN
    assert verdict("standard", {(HOPPER, "tailo"): 100.0}).level == OPEN  # nothing to compare with
    found: dict[tuple[str, str], float | list[float]] = {(HOPPER, "tailo"): [99.0, 101.0], (HOPPER, "bc"): 97.0}
    said = verdict("standard", found)
    assert (said.level, said.text) == (
        SO_FAR,
        "holds so far in 1 of 1 (hopper standard 100.0, best other bc 97.0, 4 others not measured); 3 not measured",
    )
    every = {(panel, line.name): 90.0 for panel in (HOPPER, WALKER, "halfcheetah standard", "ant standard")
             for line in FIGURES["standard"].lines}  # fmt: skip
    ahead = {**every, **{key: 100.0 for key in every if key[1] == "tailo"}}
    assert verdict("standard", ahead).level == HOLDS  # everything the claim is about was measured
    del ahead["ant standard", "oril"]
    assert verdict("standard", ahead).level == SO_FAR
    level = verdict("standard", {**found, (HOPPER, "bc"): 101.5})  # within two points: not behind, but not ahead
    assert level.level == IN_PART and level.text.startswith("holds in part, in 1 of 1, level in 1 of them (hopper")
    said = verdict("standard", {**found, (WALKER, "tailo"): 50.0, (WALKER, "oril"): 60.0})
    assert (
        said.level == IN_PART and "holds in part, in 1 of 2 (walker2d standard 50.0, best other oril 60.0" in said.text
    )
    assert verdict("standard", {(HOPPER, "tailo"): 10.0, (HOPPER, "bc"): 20.0}).level == FAILS
    kitchen = {("kitchen mixed", "tailo"): 50.0, ("kitchen mixed", "bc"): 54.0}
    assert verdict("standard", kitchen, 1).level == SO_FAR  # as good as the best is all that is claimed there


def test_far_better_takes_a_distance_and_a_figure_may_leave_lines_apart() -> None:
    close = {("hopper", "tailo"): 100.0, ("hopper", "recoil"): 96.0, ("hopper", "bc"): 0.0}
    assert verdict("recoil_rfe", close).level == FAILS
    assert verdict("recoil_rfe", {**close, ("hopper", "recoil"): 95.0}).level == SO_FAR
    assert verdict("recoil_rfe", {("hopper", "tailo"): 100.0, ("hopper", "bc"): 0.0}).level == OPEN  # not about BC
    kitchen = {("kitchen complete", "tailo"): 40.0, ("kitchen complete", "bc"): 60.0}
    assert verdict("kitchen_complete", kitchen).level == OPEN  # the claim is about the others
    assert verdict("kitchen_complete", {**kitchen, ("kitchen complete", "oril"): 10.0}).level == SO_FAR


def test_robust_worse_below_nearest_and_lowest() -> None:
    alpha = {(HOPPER, "alpha=1.25"): 100.0, (HOPPER, "alpha=0.5"): 81.0, (HOPPER, "alpha=2.0"): 79.0}
    assert verdict("alpha", alpha).text.startswith(
        "does not hold (hopper standard alpha=1.25 100.0, lowest alpha=2.0 79.0"
    )
    assert verdict("alpha", {**alpha, (HOPPER, "alpha=2.0"): 80.0}).level == SO_FAR
    beta = {(HOPPER, "beta_1=0.8"): 100.0, (HOPPER, "beta_1=0.3"): 50.0, (HOPPER, "beta_1=0.9"): 99.0}
    assert verdict("beta_1", beta).level == verdict("beta_1", beta, 1).level == SO_FAR  # 0.3 is let off
    kitchen = "kitchen mixed"
    assert verdict("standard", {(kitchen, "tailo"): 55.0, (kitchen, "bc"): 61.0}, 2).level == FAILS
    variants = {
        (HOPPER, "ours"): 100.0,
        (HOPPER, "ours-V1"): 60.0,
        (HOPPER, "ours-V2"): 95.0,
        (HOPPER, "ours-V3"): 50.0,
    }
    assert verdict("oril", variants, 1).level == SO_FAR and verdict("oril", variants, 2).level == OPEN
    assert verdict("oril", {**variants, (HOPPER, "ORIL-01-V1"): 55.0}, 2).level == FAILS


def test_steady_and_mean_best_look_at_all_panels() -> None:
    found = {("hopper every=2", "tailo"): 95.0, ("hopper every=20", "tailo"): 100.0, ("ant every=2", "tailo"): 90.0}
    assert verdict("incomplete_ta", found, 1).text == "holds so far (tailo: hopper 95.0 to 100.0)"
    assert verdict("incomplete_ta", {**found, ("ant every=3", "tailo"): 60.0}, 1).level == FAILS
    table = {("hopper medium", "tailo"): 50.0, ("hopper medium", "mopo"): 60.0, ("hopper medium-replay", "mopo"): 0.0}
    assert verdict("offline_rl", table).text == "does not hold (tailo 50.0, mopo 60.0 over 1)"
    assert verdict("offline_rl", {**table, ("hopper medium-replay", "tailo"): 50.0}).level == SO_FAR


def curves(
    name: str, title: str, line: str, number: int, found: dict[str, list[float]], failure: int | None = None
) -> Verdict:
    """The verdict on curves that were kept of a line, each over the steps 0, 1, 2, ..."""
    figure = FIGURES[name]
    made = results(figure, {(title, line): 50.0})
    ((cell, _),) = made.items()
    drawn = {key: [list(map(float, range(len(value)))), value] for key, value in found.items()}
    made[cell] = result(cell, 50.0, curves=drawn, failure=failure)
    return judge(figure.claims[number], figure, scores_of(figure, Asked([figure], FAST), made))


def test_a_value_that_grows_tenfold_or_is_lost_has_run_away() -> None:
    flat = [1.0] * 20

    def value(every: int, number: int, found: list[float], failure: int | None = None) -> Verdict:
        kept = {"value_max": found}
        return curves("divergence", f"walker2d every={every}", "smodice kl", number, kept, failure)

    assert value(5, 0, flat).level == FAILS
    assert value(5, 0, [*flat, 11.0]).level == HOLDS
    assert value(5, 0, flat, failure=7).text.endswith("at the end 1, then not finite)")
    assert value(3, 1, flat).level == HOLDS
    assert value(3, 0, flat).level == OPEN  # the claim is of every=5


def test_weights_that_reach_back_and_are_smoother_than_scores() -> None:
    wave = [0.0, 1.0] * 10
    found = {
        "all expert W": [0.9] * 20,
        "all non-expert W": [0.1] * 20,
        "expert W": list(np.linspace(1, 0, 20)),
        "expert R": wave,
    }
    assert curves("weights", "pointmaze examples", "tailo", 0, found).level == SO_FAR
    assert curves("weights", "pointmaze examples", "tailo", 1, found).level == SO_FAR
    found |= {"all non-expert W": [0.5] * 20, "expert W": wave}
    assert curves("weights", "pointmaze examples", "tailo", 0, found).level == FAILS
    assert curves("weights", "pointmaze examples", "tailo", 1, found).level == FAILS


def test_an_unknown_rule_is_said() -> None:
    figure = replace(FIGURES["standard"], claims=(Claim("x", "loveliest", {}),))
    with pytest.raises(UserError, match="rule 'loveliest' found, expected one of below, best"):
        judge(figure.claims[0], figure, scores(figure, {}))


@given(st.lists(st.floats(0, 120), min_size=2, max_size=6), st.floats(0, 20))
def test_more_points_never_turn_a_verdict_for_tailo_against_it(found: list[float], more: float) -> None:
    names = [line.name for line in FIGURES["standard"].lines][: len(found)]
    measured: dict[tuple[str, str], float | list[float]] = {
        (HOPPER, name): score for name, score in zip(names, found, strict=True)
    }
    before = verdict("standard", measured)
    after = verdict("standard", {**measured, (HOPPER, "tailo"): found[0] + more})
    assert not (before.level == HOLDS and after.level != HOLDS)
