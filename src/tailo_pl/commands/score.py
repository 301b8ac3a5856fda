"""`tailo score`: R and W of a trained run's discriminator for new logs, written to a file."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, STATES_ONLY, columns, opened, recordings, trusting


@click.command()
@recordings
@click.option("--run", "run_dir", type=PATH, required=True, metavar="RUN", help="Folder of a finished run.")
@click.option("--out", type=PATH, default=Path("scores.csv"), help="Also .npz and .parquet.")
@columns
@trusting
def score(data: tuple[str, ...], run_dir: Path, out: Path, columns: tuple[str, ...], features: tuple[str, ...]) -> None:
    """Score new logs with a trained run's discriminator."""
    from tailo_pl.commands.console import show_scores
    from tailo_pl.runs import scoring

    trajectories = opened(data, columns, features, ignored=STATES_ONLY, remembered=scoring.layout_of(run_dir))
    scores = scoring.score(run_dir, trajectories)
    scoring.write_scores(scores, out)
    show_scores(scores, trajectories, f"{' '.join(data)}, scored by {run_dir}", out)
