"""One run on the screen, from its experiment to its summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from tailo_pl.config.experiment import Experiment


class Interrupted(KeyboardInterrupt):
    """A run was interrupted and can be gone on with."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self.run_dir = run_dir


def made(experiment: Experiment) -> tuple[Path, Experiment]:
    """Make an experiment's data and its run."""
    from tailo_pl.commands.console import making_data
    from tailo_pl.runs.folder import prepare

    with making_data():
        return prepare(experiment), experiment


def execute(run_dir: Path, experiment: Experiment) -> float | None:
    """Train a run that is made; its score."""
    from tailo_pl.commands.console import show_data, show_summary
    from tailo_pl.runs.execute import execute

    show_data(experiment, run_dir)
    try:
        summary = execute(run_dir, experiment)
    except KeyboardInterrupt as stop:
        raise Interrupted(run_dir) from stop
    show_summary(summary, run_dir)
    score: float | None = summary["score"]
    return score


def train_job(config: DictConfig) -> float | None:
    """What Hydra calls with what it has composed; returns the score, which its optimisers maximise or minimise."""
    from tailo_pl.config.choices import resolved
    from tailo_pl.config.experiment import read_experiment

    return execute(*made(read_experiment(resolved(config))))
