"""`tailo evaluate`: play a finished run's policy for fresh episodes."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a finished run.")
@click.option("--episodes", type=int, default=100, help="How many are played.")
@click.option("--seed", type=int, help="Decides the initial states.  [default: the run's seed]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@trusting
def evaluate(run_dir: Path, episodes: int, seed: int | None, as_json: bool) -> None:
    """Play a finished run's policy: tailo evaluate RUN."""
    from tailo_pl.commands.console import show_evaluation
    from tailo_pl.runs.evaluate import evaluate

    _, evaluation = evaluate(run_dir, episodes, seed)
    show_evaluation(evaluation, run_dir, as_json=as_json)
