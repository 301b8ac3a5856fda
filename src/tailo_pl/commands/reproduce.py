"""`tailo reproduce`: the paper's figures, run, drawn and judged."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from click.exceptions import Exit

from tailo_pl.commands.options import PATH, composing
from tailo_pl.errors import UserError


@click.command()
@click.argument(
    "arguments", nargs=-1, metavar="[FIGURE...]", help="Figures of --list, all without any; key=value for every cell."
)
@click.option("--seeds", type=click.IntRange(1), help="How many; as many as the list says.", show_default=False)
@click.option("--preset", default="fast", help="Budget: fast, or paper.")
@click.option("--source", type=click.Choice(["bundled", "d4rl"]), default="bundled", help="Data: made here, or D4RL's.")
@click.option("--only", multiple=True, metavar="KEY=VALUE", help="Only cells with this override, e.g. env=hopper.")
@click.option("--hours", type=click.FloatRange(0), help="Begin no cell that would end later than this.")
@click.option("--jobs", type=click.IntRange(1), help="Cells at once; as many as there are cores.", show_default=False)
@click.option("--launcher", metavar="NAME", help="Cells as jobs of a Hydra launcher, e.g. submitit_slurm.")
@click.option("--episodes", type=click.IntRange(1), default=100, help="That each trained policy plays.")
@click.option("--runs", type=PATH, default=Path("runs"), help="Folder of the runs.")
@click.option("--results", type=PATH, default=Path("results/cells"), help="Folder of the results.")
@click.option("--out", type=PATH, default=Path("figures"), help="Folder of the figures.")
@click.option("--cells", type=PATH, help="A list of your own, as configs/paper_cells.yaml is.")
@click.option("--list", "listed", is_flag=True, help="Only say what there is, what is done and what is left.")
@click.option("--commands", "commanded", is_flag=True, help="Only print a `tailo train` line for every missing cell.")
@composing
def reproduce(
    arguments: tuple[str, ...],
    seeds: int | None,
    preset: str,
    source: str,
    only: tuple[str, ...],
    hours: float | None,
    jobs: int | None,
    launcher: str | None,
    episodes: int,
    runs: Path,
    results: Path,
    out: Path,
    cells: Path | None,
    listed: bool,
    commanded: bool,
) -> None:
    """Run, draw and judge the paper's figures.

    What has a result is not run again; what was interrupted is gone on with. For example: tailo reproduce standard
    examples --hours 1

    With --launcher its settings are given as hydra.launcher.KEY=VALUE, and results are kept when all jobs have ended.
    """
    from tailo_pl.config.overrides import readable
    from tailo_pl.paper.figures import PAPER, chosen
    from tailo_pl.paper.plan import Asked
    from tailo_pl.paper.records import read_records

    names = [argument for argument in arguments if "=" not in argument]
    settings = [argument for argument in arguments if argument.startswith("hydra.")]
    given = [argument for argument in arguments if "=" in argument and argument not in settings]
    if settings and launcher is None:
        raise UserError(f"reproduce: {settings[0]!r} given, expected it together with --launcher")
    if launcher is not None and (hours is not None or jobs is not None):
        raise UserError(f"reproduce: --launcher {launcher} given with --hours or --jobs, expected it alone")
    for argument in given:
        if argument.split("=")[0] in ("env", "setting", "method", "seed", "name", "runs", "resume", "preset", "source"):
            raise UserError(f"reproduce: {argument!r} given, expected a figure, an option, or an override of all cells")
    path = cells or PAPER
    figures = chosen(names, path)
    common = (f"preset={preset}", f"source={source}", *given)
    readable(common)
    asked = Asked(figures, common, seeds, only, path)
    if not asked.cells():
        raise UserError(f"--only: {' '.join(only)} given, expected an override that a cell has")
    if commanded:
        for cell in asked.missing(read_records(results)):
            if not cell.unknown_method:
                click.echo(f"{cell.command} name={cell.run_name}" + (f" runs={runs}" if runs != Path("runs") else ""))
        return
    from tailo_pl.commands.overview import Overview, show_cells, show_left, show_list, show_outcome

    if listed:
        (show_cells if names else show_list)(asked, read_records(results))
        return
    from tailo_pl.paper import reproduce as running
    from tailo_pl.paper.drawing import draw, require_matplotlib

    require_matplotlib()
    at_once = jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    try:
        with Overview(common) as overview:
            if launcher is not None:
                from tailo_pl.commands.cell_jobs import launched

                state = launched(asked, results, runs, launcher, settings, episodes=episodes, watch=overview.watch)
            else:
                state = running.reproduce(
                    asked, results, runs, jobs=at_once, hours=hours, episodes=episodes, watch=overview.watch
                )
    except KeyboardInterrupt as stop:  # what was at work has been saved
        sys.stderr.write("tailo: interrupted; the same command goes on\n")
        raise Exit(130) from stop
    drawn = [(figure, draw(figure, asked, state.records, out)) for figure in figures]
    for figure, picture in drawn:
        show_outcome(figure, asked, state.records, picture)
    show_left(state)
    if failed := {reason for cell, reason in state.failed.items() if not cell.unknown_method}:
        for reason in sorted(failed)[:-1]:
            sys.stderr.write(f"tailo: {reason}\n")
        raise UserError(max(failed))
