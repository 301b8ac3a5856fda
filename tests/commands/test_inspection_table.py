"""An inspection as tables: what a reader finds in them."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.recordings import of_states, walk_and_jump
from rich.console import Console

from tailo_pl.commands import inspection_table
from tailo_pl.commands.inspection_table import tables
from tailo_pl.data.inspection import Inspection, inspect
from tailo_pl.data.trajectories import Recording, Trajectories


def shown(found: Inspection) -> str:
    console = Console(width=160)
    with console.capture() as capture:
        for table in tables(found):
            console.print(table)
    return capture.get()


def test_what_is_shown() -> None:
    text = shown(inspect(walk_and_jump(), [-1], [1]))
    for line in (
        "steps 6",
        "trajectories 2",
        "lengths 2 · 2.5 · 3 · 3.5 · 4 (least, quartiles, most), mean 3",
        "returns 4 · 10.5 · 17 · 23.5 · 30 (least, quartiles, most), mean 17",
        "ends 1 terminal, 0 by time limit, 1 unmarked",
        "duplicated states 1 (16.7%)",
        "walk 1 4",
        "0 0 4 1.667 1.491",
        "1 7 7 7 0 constant",
        "dimension min max mean std at the given bounds",
        "0 -1 1 0.08333 0.6236 33.3%",
    ):
        assert line in words(text)


def test_states_only_with_numbers_that_are_none() -> None:
    states = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.inf]])
    text = words(shown(inspect(of_states(states))))
    assert "returns not recorded" in text and "ends not recorded" in text and "at the" not in text
    assert "1 - - - - 2 NaN, 1 infinite, first in row 0 (counted from 0)" in text
    assert "origin unknown" in text


def test_labels_are_shown_as_they_are() -> None:
    named = Trajectories.of(Recording(np.zeros((2, 1)), np.arange(2)), ["[red]a[/red]", "[/b]"])
    text = shown(inspect(named))
    assert "[red]a[/red]" in text and "[/b]" in text


def test_many_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_table, "MOST_DIMENSIONS", 2)
    text = shown(inspect(of_states(np.zeros((2, 3)))))
    assert "states, the first 2 of 3 dimensions" in text


def words(text: str) -> str:
    return " ".join("".join(" " if char in "│┃┏┓┗┛┡┩└┘━─┳┴┬╇" else char for char in text).split())
