"""Taking up a run again: where it was interrupted, or with more steps."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from tailo_pl.config.experiment import Experiment, read_experiment
from tailo_pl.errors import UserError
from tailo_pl.runs.checks import check
from tailo_pl.runs.folder import alone, load_to_train, require_same_data, write_config


def resume(run_dir: Path, overrides: list[str]) -> Experiment:
    """Take up an interrupted run where it stopped, or a finished one with more steps.

    Args:
        run_dir: the run.
        overrides: `method.stages.NAME.max_steps=N`, more than before.
    """
    experiment = load_to_train(run_dir)
    changes = _more_steps(experiment, overrides)
    if (run_dir / "summary.json").exists() and not changes:
        names = " ".join(f"method.stages.{name}.max_steps={experiment.max_steps(name)}" for name in experiment.stages)
        raise UserError(f"{run_dir}: this run is finished ({names}); give one of these a larger number to go on")
    config = copy.deepcopy(experiment.config)
    for name, steps in changes.items():
        config["method"]["stages"][name] |= {"max_steps": steps, "passes": None}
    experiment = read_experiment(config)
    check(experiment)
    require_same_data(run_dir, experiment)
    if changes:
        with alone(run_dir):
            (run_dir / "summary.json").unlink(missing_ok=True)
            write_config(run_dir, {key: value for key, value in config.items() if key != "schema"})
    return experiment


def _more_steps(experiment: Experiment, overrides: list[str]) -> dict[str, int]:
    changes: dict[str, int] = {}
    for override in overrides:
        found = re.fullmatch(r"method\.stages\.(\w+)\.max_steps=(\d+)", override)
        if found is None or found.group(1) not in experiment.stages:
            stages = ", ".join(experiment.stages)
            raise UserError(f"resume: {override!r} given, expected method.stages.STAGE.max_steps=N of {stages}")
        name, steps = found.group(1), int(found.group(2))
        if steps < experiment.max_steps(name):
            raise UserError(f"resume: {override!r} given, expected at least {experiment.max_steps(name)}")
        changes[name] = steps
    return changes
