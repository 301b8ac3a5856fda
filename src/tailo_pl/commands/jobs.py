"""One run on the screen, from its experiment to its summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from tailo_pl.commands.making import making_data
    from tailo_pl.runs.folder import prepare

    with making_data():
        return prepare(experiment), experiment


def execute(run_dir: Path, experiment: Experiment, *, named: bool = False) -> dict[str, Any]:
    """Train a run that is made; its summary.

    Args:
        run_dir: the run.
        experiment: its experiment.
        named: whether the screen says already what is run.
    """
    from tailo_pl.commands.console import show_data, show_names, show_summary
    from tailo_pl.runs.execute import execute

    if not named:
        show_names(experiment.names, experiment.config["seed"])
    show_data(experiment, run_dir)
    try:
        summary = execute(run_dir, experiment)
    except KeyboardInterrupt as stop:
        raise Interrupted(run_dir) from stop
    show_summary(summary, run_dir)
    return summary


def train_job(config: DictConfig) -> float | None:
    """What Hydra calls with what it has composed; returns the score, which its optimisers maximise or minimise."""
    from hydra.core.hydra_config import HydraConfig

    from tailo_pl.config.choices import resolved
    from tailo_pl.config.compose import check_values

    check_values(config, list(HydraConfig.get().overrides.task))
    score: float | None = train_config(resolved(config))["score"]
    return score


def train_config(config: dict[str, Any]) -> dict[str, Any]:
    """Make and train the run of a composed configuration; its summary.

    On a terminal it says what it is before the first import that takes seconds: somebody waits. In a file, where a
    mistake is to be one line, only once nothing is wrong.
    """
    from tailo_pl.training.devices import require_device

    require_device(config["trainer"].get("accelerator", "auto"), quick=True)
    from tailo_pl.commands.making import making_data
    from tailo_pl.config.experiment import outline, read_experiment
    from tailo_pl.screen import is_plain

    known, watched = outline(config), not is_plain(stderr=True)
    if watched:
        from tailo_pl.commands.console import show_names

        show_names(known.names, config["seed"])
    with making_data():
        _ = known.task  # now: a file that cannot be read is said before torch is imported
    return execute(*made(read_experiment(config, known)), named=watched)
