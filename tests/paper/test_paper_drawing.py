"""Figures in the paper's layout: a panel for each task, curves or bars for each line, gaps shown as gaps."""

from __future__ import annotations

import math
from pathlib import Path

from helpers.cells import FAST, result, results

from tailo_pl.paper.drawing import draw
from tailo_pl.paper.figures import read_figures
from tailo_pl.paper.plan import Asked

FIGURES = read_figures()


def test_a_panel_for_each_task_and_a_gap_where_nothing_was_measured(tmp_path: Path) -> None:
    figure = FIGURES["offline_rl"]
    asked = Asked([figure], FAST)
    assert draw(figure, asked, {}, tmp_path) is None and not list(tmp_path.iterdir())
    found = results(figure, {("hopper medium", "tailo"): [50.0, 60.0], ("hopper medium", "bc"): 40.0})
    path = draw(figure, asked, found, tmp_path)
    assert path == tmp_path / "offline_rl.svg"
    text = path.read_text()
    assert all(f">{figure.title_of(panel)}<" in text for panel in figure.panels)
    assert text.count(">not measured<") == len(figure.panels) - 1
    assert ">55<" in text and ">40<" in text and ">tailo<" in text
    assert text.count(">–<") == 2 and ">morel<" in text  # nothing but what the paper prints of it
    again = draw(figure, asked, found, tmp_path / "again")
    assert again is not None and again.read_text() == text


def test_curves_with_a_band_where_runs_were_evaluated_often_enough(tmp_path: Path) -> None:
    figure = FIGURES["mismatch"]
    found = results(figure, {("ant", "tailo"): [50.0, 60.0]})
    for cell, record in found.items():
        record["evaluations"] = [[step, 10.0 * step + cell.seed, 1.0] for step in (1, 2, 3 + cell.seed)]
    path = draw(figure, Asked([figure], FAST), found, tmp_path)
    assert path is not None
    text = path.read_text()
    assert "FillBetweenPolyCollection" in text or "PolyCollection" in text
    assert ">55<" not in text  # no bars, then


def test_panels_of_an_environment_have_one_scale_that_begins_at_zero(tmp_path: Path) -> None:
    figure = FIGURES["offline_rl"]
    found = results(figure, {("hopper medium", "tailo"): 1.0, ("hopper medium-expert", "tailo"): 50.0})
    path = draw(figure, Asked([figure], FAST), found, tmp_path)
    assert path is not None
    assert path.read_text().count(">120<") == 2  # in both panels, because the paper prints 111.5 in one of them


def test_trajectories_have_a_row_for_r_and_one_for_w(tmp_path: Path) -> None:
    figure = FIGURES["weights"]
    found = results(figure, {("pointmaze examples", "tailo"): 50.0})
    (cell,) = found
    wave = [[float(step), math.sin(step)] for step in range(9)]
    kept = {name: [list(part) for part in zip(*wave, strict=True)] for name in figure.curves}
    path = draw(figure, Asked([figure], FAST), {cell: result(cell, 50.0, curves=kept)}, tmp_path)
    assert path is not None
    text = path.read_text()
    assert ">pointmaze examples: R<" in text and ">pointmaze examples: W<" in text
    assert ">all non-expert<" in text and text.count(">not measured<") == 4
