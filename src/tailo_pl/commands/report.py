"""`tailo report`: one self-contained page about runs, and their figures."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...", help="Folders of runs.")
@click.option("--out", type=PATH, default=Path("report.html"), help="The page.")
@click.option("--figures", type=PATH, help="Folder for the figures as PNG and SVG.")
@click.option("--title", default="", help="Of the page.  [default: the runs' tasks]", show_default=False)
@click.option("--video", type=PATH, help="An episode to embed: mp4, webm or gif.")
@trusting
def report(runs: tuple[Path, ...], out: Path, figures: Path | None, title: str, video: Path | None) -> None:
    """Write one page about runs, to open in a browser."""
    from tailo_pl.commands.console import show_report
    from tailo_pl.commands.making import making_data
    from tailo_pl.report.writing import write_report

    with making_data():  # of runs that did not record how theirs is laid out
        written = write_report(list(runs), out, title=title, figures=figures, video=video)
    show_report(written)
