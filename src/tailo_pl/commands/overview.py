"""What `tailo reproduce` shows: how far it is while it runs, and what came out."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tailo_pl.errors import counted
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.claims import judge
from tailo_pl.paper.figures import PaperFigure
from tailo_pl.paper.plan import Asked, Times
from tailo_pl.paper.records import Record
from tailo_pl.paper.reproduce import State
from tailo_pl.paper.scores import scores_of
from tailo_pl.screen import console, is_plain, show

_WIDTH = 80  # of text
_LINES = 8  # of what has happened, that stay in sight


class Overview:
    """Cells done, running and left with the time expected: a live picture on a terminal, lines elsewhere.

    Args:
        common: overrides that all cells have, and that are not said of each.
    """

    def __init__(self, common: Sequence[str] = ()) -> None:
        self._console, self._common = console(stderr=True), common
        self._live = None if is_plain(stderr=True) else Live(console=self._console, refresh_per_second=2)
        self._happened: list[str] = []

    def __enter__(self) -> Overview:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, state: State, line: str | None) -> None:
        """Show how far it is; `line` says what has happened."""
        if line is not None:
            self._happened.append(line)
        if self._live is not None:
            self._live.update(self._picture(state))
        elif line is not None:
            ended = len(state.done) + len(state.failed)
            where = f"{ended} of {ended + state.left}, {_time(state.expected)} left"
            self._console.print(f"{where}: {line}", highlight=False, markup=False, soft_wrap=True)

    def _picture(self, state: State) -> Group:
        done, failed = len(state.done), len(state.failed)
        total = done + failed + state.left
        head = Table.grid(padding=(0, 1))
        without = f", {failed} without a result" if failed else ""
        head.add_row(
            ProgressBar(total=total, completed=done + failed, width=24),
            f"{done} done{without}, {len(state.running)} running, {len(state.waiting)} left,",
            f"about {_time(state.expected)}",
        )
        running = Table.grid(padding=(0, 1))
        for cell, since in state.running.items():
            running.add_row(
                "  ",
                Text(cell.called(self._common), overflow="ellipsis", no_wrap=True),
                _time(time.monotonic() - since),
            )
        past = [Text(f"  {line}", overflow="ellipsis", no_wrap=True, style="dim") for line in self._happened[-_LINES:]]
        return Group(*past, head, running)


def show_list(asked: Asked, records: Mapping[Cell, Record]) -> None:
    """Every figure: where it stands in the paper, cells there are, done and left, and the time they would take."""
    table = Table(title=f"the paper's figures, {' '.join(asked.common)}")
    for column in ("figure", "in the paper", "cells", "done", "left", "time of one core"):
        table.add_column(column, justify="left" if column in ("figure", "in the paper") else "right")
    times = Times(records.values())
    for figure in asked.figures:
        alone = replace(asked, figures=[figure])
        missing = alone.missing(records)
        cells = len(alone.cells())
        time_left = sum(map(times.expected, missing))
        table.add_row(
            figure.name, figure.place, str(cells), str(cells - len(missing)), str(len(missing)), _time(time_left)
        )
    show(table)
    every, missing = asked.cells(), asked.missing(records)
    console().print(f"{counted(len(every), 'cell')} in all (some are in several figures), {len(missing)} left")


def show_cells(asked: Asked, records: Mapping[Cell, Record]) -> None:
    """Every cell of some figures, with its score or why there is none."""
    table = Table()
    for column in ("cell", "score"):
        table.add_column(column, justify="left" if column == "cell" else "right", overflow="fold")
    missing = set(asked.missing(records))
    for cell in sorted(asked.cells()):
        record = records.get(cell)
        state = f"{record['score']:.1f}" if record else "no such method" if cell.unknown_method else "missing"
        if record and cell in missing:
            state += " (curves missing)"
        table.add_row(escape(cell.called(asked.common)), state)
    show(table)


def show_outcome(figure: PaperFigure, asked: Asked, records: Mapping[Cell, Record], path: Path | None) -> None:
    """The scores of a figure, beside those that the paper prints, and whether its claims hold."""
    scores = scores_of(figure, asked, records)
    table = Table(title=f"{figure.title} ({figure.place})")
    table.add_column("")
    for line in figure.lines:
        table.add_column(line.name, justify="right", overflow="fold")
        if line.name in figure.printed:
            table.add_column("paper", justify="right")
    for panel in figure.panels:
        table.add_row(*map(escape, scores.row(panel)))
    show(table)
    out = console()
    for claim in figure.claims:
        verdict = judge(claim, figure, scores)
        for words in textwrap.wrap(f"{claim.says}: {verdict.text}", _WIDTH, subsequent_indent="  "):
            out.print(words, highlight=False, markup=False, soft_wrap=True)
    if path is not None:
        out.print(f"figure {path}", highlight=False, markup=False, soft_wrap=True)


def show_left(state: State) -> None:
    """What is still to be done, and what cannot be."""
    out = console(stderr=True)
    for method in sorted({cell.unknown_method for cell in state.failed if cell.unknown_method}):
        count = sum(cell.unknown_method == method for cell in state.failed)
        out.print(f"{counted(count, 'cell')} not run: there is no method {method} yet", highlight=False)
    if state.left:
        out.print(
            f"{counted(state.left, 'cell')} left, about {_time(state.expected)}; the same command goes on",
            highlight=False,
        )


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
