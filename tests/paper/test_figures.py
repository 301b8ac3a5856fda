"""The list of the paper's figures: complete, without repetition, and of experiments that can be composed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tailo_pl.config.compose import composed, composed_config
from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.claims import OPEN, judge
from tailo_pl.paper.figures import Line, chosen, read_figures
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.scores import scores_of

FIGURES = read_figures()


def told_apart(found: Iterable[tuple[str, ...]], parts: Callable[[tuple[str, ...]], set[str]]) -> list[tuple[str, ...]]:
    """Of many overrides as few as have every part: combinations of parts need no look each."""
    seen: set[str] = set()
    kept = []
    for overrides in found:
        if not parts(overrides) <= seen:
            kept.append(overrides)
            seen |= parts(overrides)
    return kept


def of_panel(overrides: tuple[str, ...]) -> set[str]:
    values = dict(one.split("=") for one in overrides)
    return {f"{values['env']} {values['setting']}", *(f"{values['setting']} {one}" for one in overrides if "." in one)}


def of_line(overrides: tuple[str, ...]) -> set[str]:
    return {overrides[0], *(f"{overrides[0]} {one.split('=')[0]}" for one in overrides)}


PANELS = told_apart((panel.overrides for figure in FIGURES.values() for panel in figure.panels), of_panel)
LINES = told_apart((line.overrides for figure in FIGURES.values() for line in figure.lines), of_line)
THERE = [line for line in LINES if Cell.of(line).unknown_method is None]


def test_every_figure_with_scores_and_the_table_are_there_with_all_their_panels_and_lines() -> None:
    numbers = {int(figure.place.split()[1]) for figure in FIGURES.values() if figure.place.startswith("Figure")}
    assert numbers == set(range(2, 30)) - {9}  # 1 explains the method, 9 shows the environments
    assert {name: (len(figure.panels), len(figure.lines)) for name, figure in FIGURES.items()} == {
        "standard": (6, 6), "incomplete_ta": (20, 6), "incomplete_ts": (20, 6), "examples": (4, 6), "mismatch": (3, 6),
        "smodice": (4, 7), "offline_rl": (9, 4), "kitchen_complete": (1, 6), "recoil_rfe": (4, 3), "recoil_me": (4, 3),
        "dwbc_smodice": (4, 5), "dwbc_standard": (4, 5), "weights": (3, 1), "alpha": (6, 6), "beta_1": (6, 7),
        "beta_2": (3, 2), "eta_p": (6, 5), "gamma": (6, 6), "gamma_zero": (10, 2), "oril": (6, 8),
        "oril_mismatch": (1, 2), "no_pu": (2, 2), "chi2": (4, 3), "divergence": (2, 1), "lipschitz": (1, 2),
        "batch_standard": (4, 8), "batch_ta": (20, 8), "batch_ts": (20, 8), "later": (4, 5),
    }  # fmt: skip
    for figure in FIGURES.values():
        cells = figure.cells(("preset=fast",), 1)
        assert len(set(cells)) == len(cells) == len(figure.panels) * len(figure.lines)
        assert len({line.name for line in figure.lines}) == len(figure.lines)
        assert len({figure.title_of(panel) for panel in figure.panels}) == len(figure.panels)
        assert all(len(printed) == len(figure.panels) for printed in figure.printed.values())


@pytest.mark.parametrize("panel", PANELS, ids=" ".join)
def test_a_panel_composes_to_what_it_says(panel: tuple[str, ...]) -> None:
    experiment = composed(panel)
    given = dict(override.split("=") for override in panel)
    assert (experiment.names["env"], experiment.names["setting"]) == (given["env"], given["setting"])
    parameters = {f"setting.{key}": str(value) for key, value in vars(experiment.setting).items()}
    assert {key: value for key, value in given.items() if key.startswith("setting.")}.items() <= parameters.items()


@pytest.mark.parametrize("line", THERE, ids=" ".join)
def test_a_line_composes_to_what_it_says(line: tuple[str, ...]) -> None:
    config = composed_config(["env=hopper", *line])
    for key, value in (override.split("=") for override in line if "." in override):
        group, *names = key.split(".")
        found = config[group]
        for name in names:
            found = found[name]
        assert str(found) == value


def test_a_default_is_called_by_its_true_value() -> None:
    for figure in FIGURES.values():
        for line in figure.lines:
            told = re.fullmatch(r"(\w+)=([\d.]+)", line.name)
            if told and len(line.overrides) == 1:
                config = composed_config([*figure.panels[0].overrides, *line.overrides])
                assert float(config["method"][told[1]]) == float(told[2]), (figure.name, line.name)


def test_the_papers_mean_scores_are_those_of_its_table() -> None:
    printed = FIGURES["offline_rl"].printed
    assert {name: round(sum(scores) / 9, 1) for name, scores in printed.items()} == {
        "morel": 72.9, "mopo": 42.1, "tailo": 74.3,
    }  # fmt: skip
    assert FIGURES["offline_rl"].title_of(FIGURES["offline_rl"].panels[3]) == "halfcheetah medium-replay"


def test_a_method_that_is_not_there_is_named_and_every_claim_has_a_rule() -> None:
    cell = FIGURES["standard"].cell(FIGURES["standard"].panels[0], Line("x", ("method=nothing",)), ())
    assert cell.unknown_method == "nothing"
    for figure in FIGURES.values():
        scores = scores_of(figure, Asked([figure], ("preset=fast",)), {})
        assert all(judge(claim, figure, scores).level == OPEN for claim in figure.claims)
        assert figure.claims or figure.place == "not in the paper"


def test_cells_are_the_same_in_any_order_and_later_overrides_hold() -> None:
    one = Cell.of(["preset=fast", "method=tailo", "setting.every=3", "env=hopper", "setting=incomplete_ta"], 1)
    other = Cell.of(["env=hopper", "setting=incomplete_ta", "setting.every=2", "setting.every=3", "method=tailo",
                     "source=bundled", "preset=fast"], 1)  # fmt: skip
    assert one == other and one.run_name == other.run_name
    assert one.command == "tailo train env=hopper setting=incomplete_ta setting.every=3 method=tailo preset=fast seed=1"
    assert one.run_name != Cell.of(one.overrides, 2).run_name != Cell.of([*one.overrides, "method.alpha=2"], 2).run_name
    assert one.stem == Cell.of([*one.overrides, "method.alpha=2"], 1).stem != Cell.of(one.overrides, 2).stem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("figure: x", "expected a list"),
        ("- {figure: x, place: p, title: t, panels: []}", "lines: not there"),
        ("- {figure: x, place: p, title: t, panels: [], lines: [], color: red}", "unknown key 'color'"),
        ("- {figure: x, place: p, title: t, panels: [], lines: [], kind: pie}", "kind 'pie' found"),
    ],
)
def test_a_list_that_is_none_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "cells.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"cells\.yaml.*{said}"):
        read_figures(path)


def test_an_unknown_figure_gets_a_hint() -> None:
    with pytest.raises(UserError, match=r"'exmples' given.*did you mean examples"):
        chosen(["exmples"])
