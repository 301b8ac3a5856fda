"""Where commands write: rich tables on a terminal, plain text everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection

from rich import box
from rich.console import Console
from rich.table import Table

WIDE = 1000  # columns of plain text: lines are cut by whoever reads them, not here


def is_plain() -> bool:
    """Whether standard output is to get plain text: it is no terminal, or NO_COLOR is set (to anything)."""
    return bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()


def console(*, stderr: bool = False) -> Console:
    """A console of standard output or standard error; without a single escape code where the text is to be plain."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        return Console(stderr=stderr)
    width = None if stream.isatty() or "COLUMNS" in os.environ or stderr else WIDE
    return Console(stderr=stderr, color_system=None, highlight=False, width=width)


def table(title: str, *columns: str, left: Collection[str] = (), fold: bool = False) -> Table:
    """An empty table: with a frame on a terminal, columns set apart by spaces in plain text.

    Args:
        title: above it.
        columns: their names; numbers stand to the right.
        left: names of the columns that stand to the left.
        fold: break long entries instead of shortening them.
    """
    plain = is_plain()
    made = Table(
        title=title,
        box=None if plain else box.HEAVY_HEAD,
        title_justify="left" if plain else "center",
        pad_edge=not plain,
        min_width=len(title) if plain else None,  # or a long title is broken to the width of the columns
    )
    for column in columns:
        made.add_column(column, justify="left" if column in left else "right", overflow="fold" if fold else "ellipsis")
    return made
