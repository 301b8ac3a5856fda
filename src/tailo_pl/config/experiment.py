"""An experiment: the composed configuration, checked against types before anything is made or written."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.config.parsing import as_class, build
from tailo_pl.config.stages import Stage, read_inputs, read_stages
from tailo_pl.config.trusted import denied, is_trusted
from tailo_pl.data.settings import Setting, Task, load_task
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.task_names import task_fingerprint
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.environment import Environment
from tailo_pl.errors import UserError, one_line, require_range
from tailo_pl.files import require_file_name, require_name
from tailo_pl.inputs import TrajectoryWeights
from tailo_pl.runs.summary import SCHEMA

NAMED = ("env", "source", "setting", "method", "preset")
_OWN_KEYS = ("name", "hints", "data", "trust")  # of a group that builds a class: what is no argument of the class
_TOP_KEYS = {
    *NAMED, "head", "trainer", "logger", "callbacks",
    "seed", "discriminator_seed", "name", "runs", "schema", "threads", "compile", "checkpoint_every",
}  # fmt: skip
_KINDS = {"runs": str, "seed": int, "discriminator_seed": int, "checkpoint_every": int, "compile": bool}
# What lies beside the stages in a run's folder.
_NOT_STAGES = {"config.yaml", "summary.json", "data.json", "trajectories.npz", "checkpoints", "export", "wandb"}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outline:
    """Of an experiment what is known in a moment: its names and where its data comes from, and with it the data."""

    config: dict[str, Any]
    source: Source
    setting: Setting
    names: dict[str, str]

    @cached_property
    def task(self) -> Task:
        """TS and TA, read once."""
        task = load_task(self.source, self.setting)
        seen = self.config["method"].get("dimensions") or self.config["setting"].get("hints", {}).get("dimensions")
        return task if seen is None else replace(task, compared=tuple(seen))

    @property
    def fingerprint(self) -> str:
        """Names the content of the task."""
        return task_fingerprint(self.source, self.setting)


@dataclass(frozen=True)
class Experiment(Outline):
    """Everything a run needs to know: what was asked for, and what was built from it."""

    environment: Environment | None
    stages: dict[str, Stage]

    @cached_property
    def action_bounds(self) -> Bounds:
        """Bounds of the actions: the environment's, the source's, or those of the recorded actions."""
        if self.environment is not None:
            return self.environment.action_low, self.environment.action_high
        known = self.source.action_bounds(self.setting.ta_part)
        return known if known is not None else _recorded_bounds(self.task.ta)

    def max_steps(self, name: str) -> int:
        """Gradient steps of a stage; passes over TS are counted in its batches."""
        stage = self.stages[name]
        if stage.passes is None:
            assert stage.max_steps is not None
            return stage.max_steps
        states = self.task.ts.steps
        return stage.passes * math.ceil(states / min(states, stage.kind.batch_size))

    @property
    def weights(self) -> TrajectoryWeights | None:
        """How the last stage that is weighted by scores is; None: none is."""
        inputs = [one for stage in self.stages.values() for one in stage.inputs.values()]
        return next((one for one in reversed(inputs) if isinstance(one, TrajectoryWeights)), None)

    @property
    def std_floor(self) -> float:
        """Added to the states' standard deviations."""
        return _std_floor(self.config)

    @property
    def trust(self) -> bool:
        """Whether the user wants data trained on that looks meaningless."""
        return bool(self.config["source"].get("trust", False))

    def class_config(self, group: str) -> dict[str, Any]:
        """`group` as class_path and init_args, as jsonargparse writes it."""
        return as_class(self.config[group], group, _OWN_KEYS)

    def loggers_beside(self) -> list[dict[str, Any]]:
        """The logger beside that of metrics.csv, where there is one."""
        beside = self.config["logger"].get("beside")
        return [] if beside is None else [as_class(beside, "logger.beside")]

    def metrics_logger(self) -> dict[str, Any]:
        """The logger of metrics.csv."""
        return as_class(self.config["logger"], "logger", ("beside",))

    def callbacks(self) -> dict[str, dict[str, Any]]:
        """The callbacks by name, as class_path and init_args."""
        given = self.config["callbacks"].items()
        return {name: as_class(one, f"callbacks.{name}") for name, one in given if one is not None}


def outline(config: dict[str, Any]) -> Outline:
    """Check what can be checked of a composed configuration without torch, which takes seconds to import."""
    _check_shape(config)
    read_inputs(config["method"]["stages"])
    path = config["env"]["class_path"]
    if isinstance(path, str) and not is_trusted(path.rpartition(".")[0]):  # built later, but said before data is read
        raise UserError(f"env: {denied(path)}")
    return Outline(config, _built(Source, config, "source"), _built(Setting, config, "setting"), _names(config))


def read_environment(config: dict[str, Any]) -> Environment | None:
    """The environment a configuration names; None where nothing is played."""
    return None if config["env"].get("class_path") is None else _built(Environment, config, "env")


def read_experiment(config: dict[str, Any], known: Outline | None = None) -> Experiment:
    """Check a composed configuration and build what it names. Reads and writes nothing.

    Args:
        config: as composed.
        known: its outline, where there is one already; data that was read for it is not read again.
    """
    known = known or outline(config)
    from tailo_pl.models.heads import Head

    _built(Head, config, "head")  # by its own name: within a stage a mistake in it would go by a longer one
    stages = read_stages(config["method"]["stages"])
    config = {**config, "trainer": _trainer(config["trainer"], stages)}
    experiment = Experiment(config, known.source, known.setting, known.names, read_environment(config), stages)
    if "task" in vars(known):
        vars(experiment)["task"] = known.task
    return experiment


def _check_shape(config: Mapping[str, Any]) -> None:
    unknown = sorted(set(config) - _TOP_KEYS)
    if unknown:
        raise UserError(f"config: unknown key {unknown[0]!r}, expected one of {', '.join(sorted(_TOP_KEYS))}")
    if config.get("schema", SCHEMA) != SCHEMA:
        raise UserError(f"config: schema {one_line(repr(config['schema']))} found, this version reads {SCHEMA}")
    missing = sorted(_TOP_KEYS - set(config) - {"schema"})
    if missing:
        raise UserError(f"config: {missing[0]}: not there, expected a value")
    _check_names(config)
    for key, kind in _KINDS.items():
        if type(config[key]) is not kind:
            raise UserError(f"{key}: {one_line(repr(config[key]))} given, expected {kind.__name__}")
    require_range("env.hints.std_floor", _std_floor(config), 0)
    if type(trust := config["source"].get("trust", False)) is not bool:
        raise UserError(f"source.trust: {one_line(repr(trust))} given, expected true or false")


def _check_names(config: Mapping[str, Any]) -> None:
    """Names become folders: one of a configuration from elsewhere must not lead anywhere but to its place."""
    for group in (*NAMED, "head", "trainer", "logger", "callbacks"):
        if not isinstance(config[group], Mapping):
            raise UserError(f"{group}: {one_line(repr(config[group]))} given, expected keys and values")
    for group in ("source", "setting", "head", "logger", "env"):
        if "class_path" not in config[group]:
            raise UserError(f"{group}.class_path: not there, expected a value")
    _names(config)
    name = config["name"]
    if name is not None:
        require_file_name("name", str(name) if isinstance(name, (int, float)) else name)
    stages = config["method"].get("stages")
    if not isinstance(stages, Mapping):
        raise UserError(f"method.stages: {one_line(repr(stages))} given, expected stages by their names")
    for stage in stages:
        if require_name("method.stages", stage).casefold() in _NOT_STAGES:
            raise UserError(f"method.stages: {stage!r} found, expected none of {', '.join(sorted(_NOT_STAGES))}")


def _names(config: Mapping[str, Any]) -> dict[str, str]:
    """What was chosen of each group, fit for a folder's name: gymnasium's ids may hold ':' and '/' between words."""
    names = {group: config[group].get("name") for group in NAMED}
    if isinstance(names["env"], str):
        names["env"] = re.sub(r"(?<=\w)[/:](?=\w)", "-", names["env"])
    return {group: require_name(f"{group}.name", name) for group, name in names.items()}


def _std_floor(config: Mapping[str, Any]) -> float:
    hints = config["env"].get("hints") or {}
    if not isinstance(hints, Mapping):
        raise UserError(f"env.hints: {one_line(repr(hints))} given, expected keys and values")
    given = hints.get("std_floor", 1e-4)
    try:
        return float(given)
    except (TypeError, ValueError) as error:
        raise UserError(f"env.hints.std_floor: {one_line(repr(given))} given, expected a number") from error


def _trainer(trainer: Mapping[str, Any], stages: Mapping[str, Stage]) -> dict[str, Any]:
    """The trainer's options, with the precision decided: a run that is resumed elsewhere keeps it."""
    if trainer.get("accumulate_grad_batches", 1) != 1:
        raise UserError("trainer.accumulate_grad_batches: expected 1; a stage's batches.batch_size sets the batch")
    devices = trainer.get("devices", 1)
    if not isinstance(devices, int) or devices < 1:
        raise UserError(f"trainer.devices: {one_line(repr(devices))} given, expected a positive number")
    from tailo_pl.training.precision import AUTO, precision_for

    if trainer.get("precision") != AUTO:
        return dict(trainer)
    full = any(stage.module.full_precision for stage in stages.values())
    return {**trainer, "precision": "32-true" if full else precision_for(trainer.get("accelerator", "auto"))}


def _built(base: type[Any], config: Mapping[str, Any], group: str) -> Any:
    return build(base, as_class(config[group], group, _OWN_KEYS), group)


def _recorded_bounds(ta: Trajectories) -> Bounds:
    if ta.recording.actions is None:
        raise UserError("TA: no actions recorded, expected state-action trajectories")
    ranges = [(chunk.min(0), chunk.max(0)) for chunk in ta.chunks(ta.recording.actions)]
    low, high = np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)
    high = np.where(low < high, high, low + 1.0)  # a dimension that never moves still needs a range
    log.warning(
        "action bounds: none given, taking those of the recorded actions, low %s, high %s; "
        "source.action_low and source.action_high set them",
        _listed(low),
        _listed(high),
    )
    return tuple(low.tolist()), tuple(high.tolist())


def _listed(numbers: NDArray[Any]) -> str:
    return f"[{', '.join(f'{number:.4g}' for number in numbers)}]"
