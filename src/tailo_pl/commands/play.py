"""`tailo play`: film a finished run's policy at work."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a finished run.")
@click.option("--out", type=PATH, default=Path("play.mp4"), help="The film; also .gif.")
@click.option("--episodes", type=int, default=1, help="How many are filmed.")
@click.option("--seed", type=int, help="Decides the initial states.  [default: the run's seed]")
@click.option("--side-by-side", is_flag=True, help="Show all episodes at once.")
@click.option("--width", type=int, default=640, help="Of the picture.")
@click.option("--height", type=int, default=480, help="Of the picture.")
@trusting
def play(
    run_dir: Path, out: Path, episodes: int, seed: int | None, side_by_side: bool, width: int, height: int
) -> None:
    """Film the policy: tailo play RUN --out play.mp4."""
    renderer = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = "disable"  # here: the process that draws gets it, and a bad choice would end the import
    try:
        from tailo_pl.policies.film import record

        size = {"width": width, "height": height}
        played = record(
            run_dir, out, episodes=episodes, seed=seed, **size, renderer=renderer, side_by_side=side_by_side
        )
    finally:
        del os.environ["MUJOCO_GL"]
        if renderer is not None:
            os.environ["MUJOCO_GL"] = renderer

    from tailo_pl.commands.console import show_film

    show_film(played, run_dir, out)
