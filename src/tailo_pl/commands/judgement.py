"""What is shown of a run's verdict."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from tailo_pl.runs.summary import VerdictPart
from tailo_pl.runs.verdict import NAMES, in_words
from tailo_pl.screen import console, show

_COLOURS = {"good": "green", "doubtful": "yellow", "bad": "red"}


def show_verdict(verdict: VerdictPart) -> None:
    """The numbers behind a verdict, then the verdict in words."""
    if verdict["numbers"]:
        table = Table(title="without a simulator", show_header=False)
        table.add_column("", justify="left")
        table.add_column("", justify="right")
        for name, value in verdict["numbers"].items():
            table.add_row(NAMES.get(name, escape(name)), in_words(name, value))
        show(table)
    colour = _COLOURS.get(verdict["level"], "bold")
    console().print(
        f"verdict [{colour}]{escape(verdict['level'])}[/]: {escape(verdict['text'])}", highlight=False, soft_wrap=True
    )
