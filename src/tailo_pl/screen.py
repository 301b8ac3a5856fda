"""Where commands write: rich tables on a terminal, plain text everywhere else."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tailo_pl.runs.launch import terminal

if TYPE_CHECKING:  # most mistakes are one line, which needs none of it
    from rich.console import Console
    from rich.table import Table

WIDE = 1000  # columns of plain text: whoever reads it cuts lines, if anyone


def is_plain(*, stderr: bool = False) -> bool:
    """Whether a stream is to get plain text: it is no terminal, or NO_COLOR is set to anything."""
    return bool(os.environ.get("NO_COLOR")) or not (terminal() if stderr else sys.stdout).isatty()


def console(*, stderr: bool = False) -> Console:
    """A console of standard output or standard error, without a single escape code where text is to be plain."""
    from rich.console import Console

    file = terminal() if stderr else None
    if not is_plain(stderr=stderr):
        return Console(file=file)
    return Console(file=file, color_system=None, highlight=False)


def show(table: Table) -> None:
    """Print a table: framed on a terminal, otherwise as columns set apart by spaces, one line per row."""
    from rich.console import Console

    if not is_plain():
        Console().print(table)
        return
    if table.title:  # apart, or the columns would be stretched to its width
        sys.stdout.write(f"{table.title}\n")
    table.box, table.pad_edge, table.title = None, False, None
    out = Console(color_system=None, highlight=False, width=WIDE)
    with out.capture() as text:
        out.print(table)
    for line in text.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")
