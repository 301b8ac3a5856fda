"""`tailo compare`: several methods on the same task; what is missing is run, then shown and reported."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tailo_pl.commands.options import PATH, composing
from tailo_pl.errors import UserError


@click.command()
@click.argument(
    "overrides",
    nargs=-1,
    required=True,
    metavar="KEY=VALUE...",
    help="methods=a,b (a:key=value for variants), seeds=3, env=..., ...",
)
@click.option("--out", type=PATH, default=Path("report.html"), help="The report.")
@composing
def compare(overrides: tuple[str, ...], out: Path) -> None:
    """Run what is missing of several methods, then table and report.

    For example: tailo compare env=hopper methods=tailo,bc,smodice seeds=3
    """
    from tailo_pl.commands.console import show_report
    from tailo_pl.commands.making import making_data
    from tailo_pl.commands.runs_table import show_table
    from tailo_pl.report.writing import require_writable, write_report
    from tailo_pl.runs import comparison
    from tailo_pl.runs.table import gather

    require_writable(out)
    folders, failed = comparison.compare(comparison.Comparison.of(overrides), making_data)
    if folders:
        show_table(gather(folders))
        with making_data():
            show_report(write_report(folders, out))
    for line in failed[:-1]:
        sys.stderr.write(f"tailo: {line}\n")
    if failed:
        raise UserError(failed[-1])
