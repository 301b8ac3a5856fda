"""`tailo run`: all stages of a prepared run, as one process of it. `launch`, torchrun or SLURM's srun start several."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting
from tailo_pl.runs.launch import end_with_parent


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a prepared run.")
@trusting
def run(run_dir: Path) -> None:
    """One process of a prepared run (what srun starts)."""
    end_with_parent()

    from tailo_pl.runs.execute import join

    join(run_dir)
