"""From a stage's configuration to trainer, module and data, by their typed signatures."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from jsonargparse import ArgumentParser
from lightning import Trainer, seed_everything

from tailo_pl.callbacks.compiled import require_compilable
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.settings import Task
from tailo_pl.data.sources.source import Bounds
from tailo_pl.errors import Refusal
from tailo_pl.experiment import Experiment, Stage, parse
from tailo_pl.live_logs import require_package
from tailo_pl.models.stage import StageModule

FIT_FOLDER = "fits"  # where `tailo fit` writes when the saved config is used as it is


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
        inputs: files the stage reads (`negatives`, `weights`, `rewards`), relative to its folder.
    """
    stage = experiment.stages[name]
    model = copy.deepcopy(stage.model)
    arguments = model.setdefault("init_args", {})
    arguments["observation_dim"] = observation_dim
    if stage.data.get("batches") != "pairs":
        arguments["action_low"], arguments["action_high"] = map(list, bounds)
    logger = experiment.class_config("logger")
    logger["init_args"] |= {"save_dir": FIT_FOLDER, "name": name}
    return {
        "seed_everything": stage.seed,
        "trainer": {
            "profiler": {"class_path": "tailo_pl.profiling.NoProfiler"},
            **experiment.config["trainer"],
            "max_steps": max_steps,
            "logger": logger,
            "plugins": [{"class_path": "tailo_pl.checkpoints.WholeCheckpoints"}],
            "callbacks": _callbacks(experiment, name, stage),
            **_validation(stage),
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "use_distributed_sampler": False,
        },
        "model": model,
        "data": {
            "source": experiment.class_config("source"),
            "setting": experiment.class_config("setting"),
            "stage": name,
            "seed": stage.seed,
            "std_floor": experiment.std_floor,
            "holdout": stage.hold_out.trajectories if stage.hold_out else stage.settle.ts_states if stage.settle else 0,
            **stage.data,
            **(inputs or {}),
        },
    }


def _validation(stage: Stage) -> dict[str, Any]:
    """Trainer options: validate every so many steps; there are no epochs."""
    if stage.hold_out is None or not stage.hold_out.trajectories:
        return {"limit_val_batches": 0}
    every = stage.hold_out.every_n_steps
    return {"val_check_interval": every, "check_val_every_n_epoch": None, "num_sanity_val_steps": 0}


def _callbacks(experiment: Experiment, name: str, stage: Stage) -> list[dict[str, Any]]:
    callbacks: list[dict[str, Any]] = []
    if stage.hold_out is not None and stage.hold_out.trajectories:
        # First of all: what follows at the end of training is to see the weights it has chosen.
        choice = {
            "monitor": f"held_out/{stage.hold_out.monitor}",
            "patience": stage.hold_out.patience,
            "min_delta": stage.hold_out.min_delta,
        }
        callbacks.append({"class_path": "tailo_pl.callbacks.HeldOutChoice", "init_args": choice})
    if stage.settle is not None:
        limits = {key: value for key, value in asdict(stage.settle).items() if key != "ts_states"}
        callbacks.append({"class_path": "tailo_pl.callbacks.Settled", "init_args": limits})
    if experiment.config.get("compile"):
        callbacks.append({"class_path": "tailo_pl.callbacks.Compiled"})
    if experiment.config["threads"] is not None:
        threads = {"count": experiment.config["threads"]}
        callbacks.append({"class_path": "tailo_pl.callbacks.Threads", "init_args": threads})
    if stage.rollout is not None and experiment.environment is not None:
        rollout = {
            "environment": experiment.class_config("env"),
            "every_n_steps": stage.rollout.every_n_steps,
            "episodes": stage.rollout.episodes,
            "seed": stage.seed,
        }
        callbacks.append({"class_path": "tailo_pl.callbacks.RolloutScore", "init_args": rollout})
    checkpoint = {"every_n_steps": experiment.config["checkpoint_every"]}
    callbacks.append({"class_path": "tailo_pl.callbacks.StageCheckpoint", "init_args": checkpoint})
    callbacks.append({"class_path": "tailo_pl.callbacks.StageProgress", "init_args": {"label": name}})
    return callbacks


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
    for key in ("negatives", "weights", "rewards"):
        if config["data"].get(key):
            config["data"][key] = str(folder / config["data"][key])
    seed_everything(config["seed_everything"], verbose=False)
    built = parse(stage_parser(), config)
    built.data.task = task
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


def check_stages(experiment: Experiment) -> None:
    """Build every stage's trainer and module once, on made-up dimensions, so that mistakes show before any work."""
    beside = experiment.loggers_beside()
    for logger in beside:
        require_package(logger["class_path"])  # said in a line; jsonargparse would say it in a page
    for name in experiment.stages:
        config = stage_config(experiment, name, 1, ((-1.0,), (1.0,)), max_steps=1)
        rename = {"model": f"method.stages.{name}.model", "trainer.logger": "logger"}
        if beside:  # looked at, not built: some open a database when they are
            parse(stage_parser(), _with_loggers(config, Path(FIT_FOLDER, name), beside), rename, instantiate=False)
        built = parse(stage_parser(), config, rename)
        if experiment.config.get("compile"):
            require_compilable(name, built.trainer, built.model)
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
