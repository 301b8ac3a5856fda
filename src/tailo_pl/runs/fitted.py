"""A stage that `tailo fit` has trained, put beside the other stages of its run: a run of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tailo_pl.callbacks.checkpoint import StageCheckpoint
from tailo_pl.config.experiment import Experiment, read_experiment
from tailo_pl.data.layout import LAYOUT, Layout
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml, write_json, write_text
from tailo_pl.runs.describe import describe_data, describe_run
from tailo_pl.runs.folder import alone, write_config, writing
from tailo_pl.runs.inside import require_own
from tailo_pl.runs.summary import read_stage
from tailo_pl.training.building import stage_config
from tailo_pl.training.fit import Fitted
from tailo_pl.training.pipeline import BEGUN, stage_key, stage_result
from tailo_pl.training.results import StageResult, finished

# Options of a stage's trainer that are no options of a run's.
_NOT_OF_THE_RUN = ("callbacks", "default_root_dir", "logger", "plugins", "profiler")


def as_run(fitted: Fitted) -> tuple[Path, dict[str, Any] | None] | None:
    """Make a run of a fitted stage: the run it was of, with what was changed, up to that stage.

    Returns:
        Its folder, and its summary where the stage was the last one (None: the rest is still to be trained); None
        where the config was no run's, or the user had the log written elsewhere.
    """
    origin, folder = fitted.saved.absolute().parent.parent, fitted.folder.parent
    kept = any(isinstance(one, StageCheckpoint) for one in fitted.built.trainer.callbacks)  # type: ignore[attr-defined]
    if not kept or fitted.folder.name != fitted.stage or not (origin / "config.yaml").is_file():
        return None
    config = read_yaml(origin / "config.yaml", "a run's configuration")
    method = config.get("method") if isinstance(config, dict) else None
    stages = method.get("stages") if isinstance(method, dict) else None
    if not isinstance(config, dict) or not isinstance(stages, dict) or fitted.stage not in stages:
        return None
    require_own(origin)
    experiment = read_experiment(_changed(config, fitted))
    with writing(folder), alone(folder):
        return folder, _write(experiment, fitted, origin, folder)


def _write(experiment: Experiment, fitted: Fitted, origin: Path, folder: Path) -> dict[str, Any] | None:
    results: list[StageResult] = []
    keys: dict[str, str] = {}
    for name in experiment.stages:
        keys[name] = stage_key(experiment, name, keys)
        if name == fitted.stage:
            break
        shutil.copytree(origin / name, folder / name)
        known = finished(folder / name, read_stage(folder / name)["key"])
        if known is None:
            raise UserError(f"{origin / name}: not a finished stage, expected all stages before {fitted.stage}")
        results.append(known)
    files = []
    for path in (fitted.built.data.input_files()).values():
        shutil.copy(path, fitted.folder / path.name)
        files.append(path.name)
    task = experiment.task
    steps, width = experiment.max_steps(fitted.stage), task.ta.recording.observations.shape[1]
    inputs = {use: path.name for use, path in fitted.built.data.input_files().items()}
    saved = stage_config(experiment, fitted.stage, width, experiment.action_bounds, steps, inputs=inputs)
    write_text(fitted.folder / "config.yaml", yaml.safe_dump(saved, sort_keys=False))
    write_text(fitted.folder / BEGUN, stage_key(experiment, fitted.stage, keys, any_length=True))
    results.append(stage_result(experiment, fitted.stage, keys[fitted.stage], fitted.built, fitted.folder, files))
    write_json(folder / "data.json", describe_data(experiment))
    Layout.of(task).write(folder / LAYOUT)
    write_config(folder, {key: value for key, value in experiment.config.items() if key != "schema"})
    if len(results) < len(experiment.stages):
        return None
    summary = describe_run(experiment, results)
    write_json(folder / "summary.json", summary)
    return summary


def _changed(config: dict[str, Any], fitted: Fitted) -> dict[str, Any]:
    """A run's configuration with the user's options of Lightning CLI in it."""
    own = config["method"]["stages"][fitted.stage]
    for path, value in _differences(fitted.before, fitted.config):
        match path:
            case ["trainer", "max_steps"]:
                own |= {"max_steps": value, "passes": None}
            case ["trainer", option] if option not in _NOT_OF_THE_RUN:
                config["trainer"][option] = value
            case ["trainer", "callbacks"]:
                config["callbacks"] = _named(config["callbacks"], fitted.before["trainer"]["callbacks"], value or [])
            case ["model", *rest]:
                _set(own["model"], rest, value)
            case ["data", "batches", *rest]:
                _set(own["batches"], rest, value)
            case ["data", ("source" | "setting") as group, *rest]:
                _set(config[group], rest, value)
            case ["data", "seed"]:
                own["seed"] = value
    return config


def _named(callbacks: dict[str, Any], before: list[Any], given: list[Any]) -> dict[str, Any]:
    """The callbacks of a run, by name, with those of a stage in their place; those that are gone are taken away.

    Args:
        callbacks: of the run.
        before: of the stage, as its run has saved it.
        given: of the stage, as it was fitted.
    """
    names = {one["class_path"]: name for name, one in callbacks.items() if one}
    gone = {one["class_path"] for one in before} - {one["class_path"] for one in given}
    named: dict[str, Any] = {names[path]: None for path in gone if path in names}
    for one in given:
        name = names.get(one["class_path"], one["class_path"].rpartition(".")[2].lower())
        kept = callbacks.get(name) or one  # without what is filled in for each stage
        named[name] = {key: value for key, value in one.items() if key in kept}
    return {**callbacks, **named}


def _differences(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[list[str], Any]]:
    """What has changed, by its path without `init_args`."""
    if (
        isinstance(before, Mapping)
        and isinstance(after, Mapping)
        and before.get("class_path") == after.get("class_path")
    ):
        for key in after:
            yield from _differences(before.get(key), after[key], path if key == "init_args" else (*path, key))
    elif before != after:
        yield list(path), _beside(after)


def _beside(value: Any) -> Any:
    """Classes with their arguments beside the class path, as a run's configuration has them."""
    if isinstance(value, Mapping):
        rest = {key: _beside(one) for key, one in value.items() if key != "init_args"}
        return rest | {key: _beside(one) for key, one in (value.get("init_args") or {}).items()}
    return [_beside(one) for one in value] if isinstance(value, (list, tuple)) else value


def _set(tree: dict[str, Any], path: list[str], value: Any) -> None:
    if not path:  # another class
        tree.clear()
        tree.update(value)
        return
    *outer, last = path
    for part in outer:
        tree = tree[part]
    tree[last] = value
