"""`tailo prepare`: what a cluster's job does once before all its processes start."""

from __future__ import annotations

import click

from tailo_pl.commands.completion import complete_override
from tailo_pl.commands.jobs import made
from tailo_pl.commands.options import composing


@click.command()
@click.argument(
    "overrides", nargs=-1, metavar="[KEY=VALUE]...", help="As of `tailo train`.", shell_complete=complete_override
)
@composing
def prepare(overrides: tuple[str, ...]) -> None:
    """All of `train` but the training, for clusters.

    Every process of the cluster's job then does its part: srun tailo run RUN
    """
    from tailo_pl.commands.console import show_data, show_names
    from tailo_pl.config.compose import composed

    run_dir, experiment = made(composed(overrides))
    show_names(experiment.names, experiment.config["seed"])
    show_data(experiment, run_dir)
