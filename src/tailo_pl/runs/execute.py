"""The stages of a prepared run, trained in one process or several."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tailo_pl.config.experiment import Experiment
from tailo_pl.errors import UserError
from tailo_pl.files import write_json
from tailo_pl.runs.describe import describe_run
from tailo_pl.runs.folder import alone, load_run, load_to_train, require_same_data, writing
from tailo_pl.runs.launch import PARENT, launch
from tailo_pl.runs.summary import read_summary
from tailo_pl.training.pipeline import run_stages
from tailo_pl.training.ranks import is_first, process_group, will_be_first


def execute(run_dir: Path, experiment: Experiment | None = None) -> dict[str, Any]:
    """Run what `prepare` set up: in this process for one device, as one process per device for several.

    Args:
        run_dir: the run.
        experiment: its experiment where it was loaded already, with the data it has read; None: load it.

    Returns:
        The summary, also written to `summary.json`.
    """
    experiment = experiment or load_to_train(run_dir)
    with writing(run_dir), alone(run_dir) as lock:
        return _execute(run_dir, experiment, lock)


def _execute(run_dir: Path, experiment: Experiment, lock: int) -> dict[str, Any]:
    devices = experiment.config["trainer"].get("devices", 1)
    if experiment.config["trainer"].get("num_nodes", 1) > 1:
        raise UserError(f"{run_dir}: is prepared; several nodes start its processes with `srun tailo run {run_dir}`")
    if devices > 1:
        launch(run_dir, devices, lock)
        return dict(read_summary(run_dir))
    return work(run_dir, experiment)


def join(run_dir: Path) -> None:
    """Take part in a prepared run as one of its processes."""
    if PARENT in os.environ:  # which has checked the run, or made it of its own command line, and shares the lock
        work(run_dir, load_run(run_dir))
        return
    experiment = load_to_train(run_dir)
    require_same_data(run_dir, experiment)
    with alone(run_dir) if will_be_first() else nullcontext():
        work(run_dir, experiment)


def work(run_dir: Path, experiment: Experiment) -> dict[str, Any]:
    """Run all stages in this process (one of several under torchrun) and write the summary."""
    with writing(run_dir), process_group():
        results = run_stages(experiment, run_dir)
        summary = describe_run(experiment, results)
        if is_first():
            write_json(run_dir / "summary.json", summary)
    return summary
