"""`tailo fit`: Lightning CLI for one stage, from the config its run has saved."""

from __future__ import annotations

import click

from tailo_pl.commands.options import PASS_ON, trusting


@click.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@trusting
def fit(arguments: tuple[str, ...]) -> None:
    """Train one stage: tailo fit --config RUN/policy/config.yaml."""
    from tailo_pl.training.fit import fit as fit_stage

    fit_stage(list(arguments))
