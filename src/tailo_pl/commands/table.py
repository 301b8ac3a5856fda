"""`tailo table`: finished runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...", help="Runs, or folders of runs.")
@click.option("--format", "form", type=click.Choice(["rich", "csv", "markdown", "json"]), default="rich")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@trusting
def table(runs: tuple[Path, ...], form: Literal["rich", "csv", "markdown", "json"]) -> None:
    """Finished runs side by side, mean ± std over seeds."""
    from tailo_pl.commands.runs_table import show_table
    from tailo_pl.runs.table import gather, written

    rows = gather(list(runs))
    if form == "rich":
        show_table(rows)
    else:
        sys.stdout.write(written(rows, form))
