"""From a stage's configuration to trainer, module and data, by their typed signatures."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jsonargparse import ArgumentParser
from lightning import Callback, Trainer, seed_everything

from tailo_pl.config.experiment import Experiment
from tailo_pl.config.parsing import parse
from tailo_pl.config.stages import Stage
from tailo_pl.config.trusted import import_class
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.settings import Task
from tailo_pl.data.sources.source import Bounds
from tailo_pl.errors import Refusal, UserError
from tailo_pl.models.stage import StageModule
from tailo_pl.training.live_logs import require_package
from tailo_pl.training.step_loop import use_step_loop

FIT_FOLDER = "fits"  # where `tailo fit` writes when the saved config is used as it is
_VALIDATION = ("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps", "limit_val_batches")


class Built(NamedTuple):
    """What a stage trains with."""

    trainer: Trainer
    model: StageModule
    data: TaskData


def stage_config(
    experiment: Experiment,
    name: str,
    observation_dim: int,
    bounds: Bounds,
    max_steps: int,
    *,
    inputs: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A stage as Lightning CLI reads it: seed_everything, trainer, model, data.

    Args:
        experiment: the run's experiment.
        name: which stage.
        observation_dim: numbers in a state.
        bounds: of the actions.
        max_steps: gradient steps.
        inputs: files the stage reads, by name, relative to its folder.
    """
    stage = experiment.stages[name]
    known = {"observation_dim": observation_dim, "action_low": list(bounds[0]), "action_high": list(bounds[1])}
    logger = experiment.metrics_logger()
    logger["init_args"] |= {"save_dir": FIT_FOLDER, "name": name}  # `tailo fit` puts a folder of its own there
    return {
        "seed_everything": stage.seed,
        "trainer": {
            "profiler": {"class_path": "tailo_pl.training.profiling.NoProfiler"},
            **trainer_options(experiment, stage),
            "max_steps": max_steps,
            "logger": logger,
            "plugins": [{"class_path": "tailo_pl.training.checkpoints.WholeCheckpoints"}],
            "callbacks": list(stage_callbacks(experiment, stage).values()),
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "use_distributed_sampler": False,
        },
        "model": _filled(stage.model, stage.module, known, f"method.stages.{name}.model"),
        "data": {
            "source": experiment.class_config("source"),
            "setting": experiment.class_config("setting"),
            "batches": stage_batches(experiment, name),
            "stage": name,
            "seed": stage.seed,
            "inputs": inputs or {},
            "std_floor": experiment.std_floor,
        },
    }


def trainer_options(experiment: Experiment, stage: Stage) -> dict[str, Any]:
    """The trainer's own options; those of validation only for a stage that holds something out."""
    options = dict(experiment.config["trainer"])
    if "log_every_n_steps" in options:
        options["log_every_n_steps"] = _own_steps(options["log_every_n_steps"], stage)
    if stage.kind.validates:
        return options
    return {key: value for key, value in options.items() if key not in _VALIDATION} | {"limit_val_batches": 0}


def _own_steps(every: Any, stage: Stage) -> Any:
    """A number of usual steps in steps of this stage; 0 and what is no number stay as they are."""
    worth = stage.module.usual_steps
    return max(1, every // worth) if worth > 1 and isinstance(every, int) and every > 0 else every


def stage_batches(experiment: Experiment, name: str) -> dict[str, Any]:
    """The batches of a stage, with what they need of the run filled in."""
    stage = experiment.stages[name]
    kind = type(stage.kind)
    if "environment" in getattr(kind, "needs", ()) and experiment.environment is None:
        raise Refusal(f"env: {experiment.names['env']} given, expected an environment: {kind.__name__} needs its rules")
    known = {} if experiment.environment is None else {"environment": experiment.class_config("env")}
    return _filled(stage.batches, kind, known, f"method.stages.{name}.batches")


def stage_callbacks(experiment: Experiment, stage: Stage) -> dict[str, dict[str, Any]]:
    """The callbacks that are for this stage's module, by name, with what they need of the run filled in."""
    known: dict[str, Any] = {"seed": stage.seed}
    if experiment.environment is not None:
        known["environment"] = experiment.class_config("env")
    chosen: dict[str, dict[str, Any]] = {}
    for name, config in experiment.callbacks().items():
        kind = import_class(f"callbacks.{name}", config["class_path"], Callback)
        needs = getattr(kind, "needs", ())
        if not issubclass(stage.module, getattr(kind, "modules", StageModule)):
            continue
        if "environment" in needs and experiment.environment is None:
            continue
        if getattr(kind, "plays", False) and not stage.module.acts:
            continue
        chosen[name] = _filled(config, kind, known, f"callbacks.{name}")
        if "every_n_steps" in chosen[name]["init_args"]:
            chosen[name]["init_args"]["every_n_steps"] = _own_steps(chosen[name]["init_args"]["every_n_steps"], stage)
    return chosen


def _filled(config: Mapping[str, Any], kind: type[Any], known: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A class with the arguments it `needs` filled in; what the configuration says of them itself holds."""
    filled: dict[str, Any] = copy.deepcopy(dict(config))
    for name in getattr(kind, "needs", ()):
        if name not in known:
            raise UserError(f"{where}: {kind.__name__} needs {name!r}, expected one of {', '.join(known)}")
        filled["init_args"].setdefault(name, copy.deepcopy(known[name]))
    return filled


def build_stage(config: dict[str, Any], folder: Path, task: Task, beside: Sequence[Mapping[str, Any]] = ()) -> Built:
    """Instantiate a stage's configuration.

    Args:
        config: as `stage_config` makes it.
        folder: where the stage writes.
        task: TS and TA, loaded already.
        beside: loggers beside that of metrics.csv; not in the configuration, which `tailo fit` overrides by name.
    """
    config = _with_loggers(config, folder, beside)
    config["trainer"]["default_root_dir"] = str(folder)
    config["data"]["inputs"] = {name: str(folder / file) for name, file in config["data"]["inputs"].items()}
    seed_everything(config["seed_everything"], verbose=False)
    built = parse(stage_parser(), config)
    built.data.task = task
    use_step_loop(built.trainer)
    return Built(built.trainer, built.model, built.data)


def _with_loggers(config: dict[str, Any], folder: Path, beside: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A copy of a stage's configuration that logs to its folder, with the loggers beside."""
    config = copy.deepcopy(config)
    metrics = config["trainer"]["logger"]
    metrics["init_args"] |= {"save_dir": str(folder.parent), "version": ""}
    where = {"save_dir": str(folder.parent), "name": folder.name}
    others = [{**logger, "init_args": {**logger["init_args"], **where}} for logger in beside]
    config["trainer"]["logger"] = [metrics, *others] if others else metrics
    return config


_WIDE = 1024


def check_stages(experiment: Experiment) -> None:
    """Build every stage's trainer and module once, on made-up dimensions, so that mistakes show before any work."""
    beside = experiment.loggers_beside()
    for logger in beside:
        require_package(logger["class_path"])  # said in a line; jsonargparse would say it in a page
    # A module may name dimensions of the states; of data that has not been read, any number might be there.
    width = _WIDE if experiment.environment is None else experiment.environment.observation_dim
    for name, stage in experiment.stages.items():
        config = stage_config(experiment, name, width, ((-1.0,), (1.0,)), max_steps=1)
        rename = {"model": f"method.stages.{name}.model", "trainer.logger": "logger"}
        for number, callback in enumerate(stage_callbacks(experiment, stage)):
            rename[f"trainer.callbacks.{number}"] = f"callbacks.{callback}"
        if beside:  # looked at, not built: some open a database when they are
            parse(stage_parser(), _with_loggers(config, Path(FIT_FOLDER, name), beside), rename, instantiate=False)
        built = parse(stage_parser(), config, rename)
        for callback in built.trainer.callbacks:
            if hasattr(callback, "check"):
                callback.check(name, built.trainer, built.model)
        if built.trainer.world_size > 1 and not built.model.several_processes:
            raise Refusal(
                f"trainer.devices: {built.trainer.world_size} given, but stage {name} "
                f"({type(built.model).__name__}) trains in one process"
            )


def stage_parser() -> ArgumentParser:
    """The parser of a stage's configuration; `tailo fit` builds an equal one through LightningCLI."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--seed_everything", type=int)
    parser.add_class_arguments(Trainer, "trainer", fail_untyped=False)
    parser.add_subclass_arguments(StageModule, "model")
    parser.add_class_arguments(TaskData, "data")
    return parser
