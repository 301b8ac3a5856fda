"""The folder of a run: made, read, and changed by one process at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tailo_pl.config.experiment import Experiment, read_experiment
from tailo_pl.config.places import require_own_places
from tailo_pl.data.layout import LAYOUT, Layout
from tailo_pl.data.task_names import task_fingerprint
from tailo_pl.data.timeline import TIMELINE, Timeline
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml, reason, write_json, write_text
from tailo_pl.locks import no_one_else
from tailo_pl.runs.checks import check
from tailo_pl.runs.describe import describe_data
from tailo_pl.runs.inside import clear_scratch, require_own
from tailo_pl.runs.summary import SCHEMA, read_data


def prepare(experiment: Experiment) -> Path:
    """Check an experiment, make its data, then its folder with `config.yaml`.

    Everything that can be wrong is found before the folder exists. A folder of the same configuration that was
    interrupted is taken up again.
    """
    config = experiment.config
    folder = run_folder(experiment)
    begun = (folder / "config.yaml").exists()
    if begun and ((folder / "summary.json").exists() or not is_of(folder, config)):
        raise UserError(f"{folder}: this run exists; choose another name=..., or delete it")
    check(experiment)
    if begun:
        require_same_data(folder, experiment)
        return folder
    try:
        if config["name"] is None:
            folder = _fresh(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            if (folder / "config.yaml").exists():  # meanwhile
                raise UserError(f"{folder}: this run exists; choose another name=..., or delete it")
            write_json(folder / "data.json", describe_data(experiment))
            Layout.of(experiment.task).write(folder / LAYOUT)
            if experiment.environment is not None and experiment.environment.subtasks:
                Timeline.of(experiment.task, experiment.environment).write(folder / TIMELINE)
            write_config(folder, config)  # last: a folder without it is no run yet
    except OSError as error:
        raise UserError(f"{folder}: cannot write the run ({error.strerror})") from error
    return folder


def run_folder(experiment: Experiment) -> Path:
    """Where a run of this experiment is, or would be."""
    config, names = experiment.config, experiment.names
    name = config["name"] or f"{datetime.now():%Y%m%d-%H%M%S}-seed{config['seed']}"
    return Path(config["runs"]) / names["env"] / names["setting"] / names["method"] / str(name)


def _fresh(folder: Path) -> Path:
    """Make a folder of this name; jobs of a sweep may begin in the same second, so another one may have it."""
    for count in itertools.count(1):
        made = folder if count == 1 else folder.with_name(f"{folder.name}-{count}")
        try:
            made.mkdir(parents=True)
            return made
        except FileExistsError:
            continue
    raise AssertionError


def write_config(folder: Path, config: dict[str, Any]) -> None:
    text = yaml.safe_dump({"schema": SCHEMA, **config}, sort_keys=False, allow_unicode=True)
    write_text(folder / "config.yaml", text)


def is_of(run_dir: Path, config: dict[str, Any]) -> bool:
    """Whether a run folder was made for this configuration."""
    path = run_dir / "config.yaml"
    return path.is_file() and read_yaml(path, "a run's configuration") == {"schema": SCHEMA, **config}


def load_run(run_dir: Path) -> Experiment:
    """The experiment of a run folder."""
    path = run_dir / "config.yaml"
    config = read_yaml(path, "the folder of a run")
    if not isinstance(config, dict):
        raise UserError(f"{path}: {type(config).__name__} found, expected keys and values")
    return read_experiment(config)


def load_to_train(run_dir: Path) -> Experiment:
    """The experiment of a run folder that may come from elsewhere: nothing of it may lead out of the folder."""
    experiment = load_run(run_dir)
    require_own(run_dir)
    require_own_places(experiment.config, run_dir / "config.yaml", run_dir)
    return experiment


def require_same_data(run_dir: Path, experiment: Experiment) -> None:
    """Whether the data is still what the run was made of."""
    known = read_data(run_dir)["fingerprint"]
    found = task_fingerprint(experiment.source, experiment.setting)
    if known != found:
        raise UserError(f"{run_dir}: its data has changed, fingerprint {found} found, expected {known}")


@contextmanager
def alone(run_dir: Path) -> Iterator[int]:
    """No other process may change a run while this one does, and nothing in it may lead out of its folder.

    Yields:
        The descriptor of the lock.
    """
    require_own(run_dir)
    with no_one_else(run_dir / ".lock", str(run_dir)) as lock:
        clear_scratch(run_dir)
        yield lock


@contextmanager
def writing(run_dir: Path) -> Iterator[None]:
    """A disk that is full or may not be written ends a run in one line; what it has saved stands."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or run_dir}: cannot be written ({reason(error)}); "
            f"once that is mended, `tailo train resume={run_dir}` goes on"
        ) from error
