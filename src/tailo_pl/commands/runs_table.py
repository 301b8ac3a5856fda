"""The outcome of `tailo table` on the screen, whatever its width."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

from tailo_pl.runs.table import COLUMNS, Row
from tailo_pl.screen import console, is_plain, show

_NUMBERS = ("score", "failed", "held out", "CPU s")
_OUTCOME = ("score", "verdict", "failed", "held out")
_TELLING = ("env", "setting", "method", "preset", "options", "seeds")
_FRAME = 3  # a line and two spaces
Lines = Sequence[Sequence[str]]


def show_table(rows: Sequence[Row]) -> None:
    """What is the same in all rows stands above them, and columns that say nothing are left out.

    Where the rest does not fit side by side, the name of a run and what sets it apart share a column, which may take
    several lines: no name or number is torn.
    """
    cells = [row.cells() for row in rows]
    same = [at for at in range(4) if len({line[at] for line in cells}) == 1 and (len(rows) > 1 or not is_plain())]
    hidden = {"data"}
    if all(row.score is not None and set(row.verdicts) == {"good"} for row in rows):
        hidden.add("verdict")
    shown = [
        at
        for at, column in enumerate(COLUMNS)
        if column not in hidden and at not in same and any(line[at] for line in cells)
    ]
    title = ", ".join(f"{COLUMNS[at]} {cells[0][at]}" for at in same) or None
    columns = [COLUMNS[at] for at in shown]
    lines = [[line[at] for at in shown] for line in cells]
    show(_side_by_side(title, columns, lines) if is_plain() else _fitting(title, columns, lines, console().width))


def _fitting(title: str | None, columns: Sequence[str], lines: Lines, width: int) -> Table:
    """All columns where they fit, else without the seconds, else the run and what sets it apart in one."""
    for left_out in ((), ("CPU s",)):
        kept = [at for at, column in enumerate(columns) if column not in left_out]
        names, rest = [columns[at] for at in kept], [[line[at] for at in kept] for line in lines]
        widths = [max(map(cell_len, column)) for column in zip(names, *rest, strict=True)]
        if sum(widths) + _FRAME * len(widths) + 1 <= width:
            return _side_by_side(title, names, rest)
    return _stacked(title, columns, lines)


def _side_by_side(title: str | None, columns: Sequence[str], lines: Lines) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=True)
    for line in lines:
        table.add_row(*map(escape, line))
    return table


def _stacked(title: str | None, columns: Sequence[str], lines: Lines) -> Table:
    outcome = [column for column in columns if column in _OUTCOME]
    table = Table(title=title, show_lines=True)
    table.add_column("run, and what sets it apart", overflow="fold")
    for column in outcome:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=column != "verdict")
    telling = [name for name in _TELLING if name in columns]
    if "seeds" in columns and len({line[columns.index("seeds")] for line in lines}) == 1:
        telling.remove("seeds")
    for line in lines:
        of = dict(zip(columns, line, strict=True))
        apart = " ".join(f"seed {of[name]}" if name == "seeds" else of[name] for name in telling if of[name])
        table.add_row(f"[bold]{escape(of['run'])}[/]\n{escape(apart)}", *(escape(of[column]) for column in outcome))
    return table
