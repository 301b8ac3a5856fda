"""A run: its folder, its stages, and the summary that says what came out."""

from __future__ import annotations

import copy
import itertools
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import yaml

from tailo_pl.building import check_stages
from tailo_pl.data.checks import check_task
from tailo_pl.data.datamodule import transition_view
from tailo_pl.data.layout import Layout
from tailo_pl.data.settings import task_fingerprint
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.evaluation import Episodes, Evaluation, episode_seeds, run_episodes, summarise
from tailo_pl.errors import Refusal, UserError, require_range
from tailo_pl.experiment import SCHEMA, Experiment, read_experiment
from tailo_pl.files import read_json, read_yaml, reason, write_json, write_text
from tailo_pl.locks import no_one_else
from tailo_pl.models.acting import actor
from tailo_pl.models.policy import PolicyModule
from tailo_pl.models.stage import StageModule
from tailo_pl.pipeline import StageResult, run_stages
from tailo_pl.ranks import is_first, process_group, will_be_first
from tailo_pl.trusted import import_class

log = logging.getLogger(__name__)
ModuleT = TypeVar("ModuleT", bound=StageModule)
_HELD = "TAILO_RUN_HELD"  # set for the processes that `execute` starts: it holds the run's lock for them
PACKAGES = ("tailo_pl", "torch", "lightning", "gymnasium", "gymnasium-robotics", "mujoco", "numpy")
LAYOUT = "trajectories.npz"  # in a run's folder: the layout of TA


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
        with _alone(folder):
            if (folder / "config.yaml").exists():  # meanwhile
                raise UserError(f"{folder}: this run exists; choose another name=..., or delete it")
            write_json(folder / "data.json", describe_data(experiment))
            Layout.of(experiment.task).write(folder / LAYOUT)
            _write_config(folder, config)  # last: a folder without it is no run yet
    except OSError as error:
        raise UserError(f"{folder}: cannot write the run ({error.strerror})") from error
    return folder


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


def _alone(run_dir: Path) -> AbstractContextManager[None]:
    """No other process may change a run while this one does."""
    return no_one_else(run_dir / ".lock", str(run_dir))


def resume(run_dir: Path, overrides: list[str]) -> Experiment:
    """Take up an interrupted run where it stopped, or a finished one with more steps.

    Args:
        run_dir: the run.
        overrides: `method.stages.NAME.max_steps=N`, more than before.
    """
    experiment = load_run(run_dir)
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
        with _alone(run_dir):
            (run_dir / "summary.json").unlink(missing_ok=True)
            _write_config(run_dir, {key: value for key, value in config.items() if key != "schema"})
    return experiment


def require_same_data(run_dir: Path, experiment: Experiment) -> None:
    """Whether the data is still what the run was made of."""
    known = read_json(run_dir / "data.json")["fingerprint"]
    found = task_fingerprint(experiment.source, experiment.setting)
    if known != found:
        raise UserError(f"{run_dir}: its data has changed, fingerprint {found} found, expected {known}")


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


def _write_config(folder: Path, config: dict[str, Any]) -> None:
    text = yaml.safe_dump({"schema": SCHEMA, **config}, sort_keys=False, allow_unicode=True)
    write_text(folder / "config.yaml", text)


def is_of(run_dir: Path, config: dict[str, Any]) -> bool:
    """Whether a run folder was made for this configuration."""
    path = run_dir / "config.yaml"
    return path.is_file() and read_yaml(path, "a run's configuration") == {"schema": SCHEMA, **config}


def check(experiment: Experiment) -> None:
    """Find what is wrong with the stages, the data, or the two together before anything is spent on them."""
    check_stages(experiment)
    task, environment = experiment.task, experiment.environment
    if environment is not None and task.ta.recording.actions is not None:
        widths = (task.ta.recording.observations.shape[1], task.ta.recording.actions.shape[1])
        expected = (environment.observation_dim, len(environment.action_low))
        if widths != expected:
            raise UserError(
                f"env {experiment.names['env']}: {expected[0]} numbers in a state and {expected[1]} in an action, "
                f"but the data has {widths[0]} and {widths[1]}"
            )
    for line in check_task(task, *experiment.action_bounds):
        log.warning("%s", line)
    for name, stage in experiment.stages.items():
        _check_needs(experiment, name)
        if stage.hold_out is not None and stage.hold_out.trajectories >= len(task.ta):
            raise UserError(
                f"method.stages.{name}.hold_out.trajectories: {stage.hold_out.trajectories} of TA's {len(task.ta)} "
                "trajectories, expected some left to train on (preset.hold_out.trajectories=...)"
            )


def _check_needs(experiment: Experiment, name: str) -> None:
    """Whether the task has what a stage asks of it."""
    data = experiment.stages[name].data
    if data["batches"] != "transitions":
        return
    method, setting = experiment.names["method"], experiment.names["setting"]
    expert = data.get("expert", "none")
    if expert == "pairs" and not experiment.setting.ordered:
        raise Refusal(
            f"method {method}: needs consecutive states of the expert, but TS of setting {setting} has no order"
        )
    asked = {key: data[key] for key in ("steps", "absorbing", "expert", "initial") if key in data}
    try:
        transition_view(experiment.task, **asked)
    except UserError as error:
        raise Refusal(f"method {method}, setting {setting}: {error}") from error


def run_folder(experiment: Experiment) -> Path:
    config, names = experiment.config, experiment.names
    name = config["name"] or f"{datetime.now():%Y%m%d-%H%M%S}-seed{config['seed']}"
    if Path(str(name)).name != str(name) or str(name) in (".", ".."):
        raise UserError(f"name: {name!r} given, expected a plain folder name")
    return Path(config["runs"]) / names["env"] / names["setting"] / names["method"] / str(name)


def execute(run_dir: Path, experiment: Experiment | None = None) -> dict[str, Any]:
    """Run what `prepare` set up: in this process for one device, as one process per device for several.

    Args:
        run_dir: the run.
        experiment: its experiment where it was loaded already, with the data it has read; None: load it.

    Returns:
        The summary, also written to `summary.json`.
    """
    experiment = experiment or load_run(run_dir)
    with _writing(run_dir), _alone(run_dir):
        return _execute(run_dir, experiment)


def _execute(run_dir: Path, experiment: Experiment) -> dict[str, Any]:
    devices = experiment.config["trainer"].get("devices", 1)
    if experiment.config["trainer"].get("num_nodes", 1) > 1:
        raise UserError(f"{run_dir}: is prepared; several nodes start its processes with `srun tailo run {run_dir}`")
    if devices > 1:
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
        status = _wait_for([*launch, "-m", "tailo_pl.cli", "run", str(run_dir)])
        if status:
            raise UserError(f"{run_dir}: the processes of this run ended with status {status}; see their output above")
        return read_summary(run_dir)
    return work(run_dir, experiment)


def _wait_for(command: list[str]) -> int:
    """Run the processes of a run; a signal to this one ends them all. Their last periodic checkpoint stands."""
    process = subprocess.Popen(command, env={**os.environ, _HELD: "1"})
    stopped: list[int] = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        process.terminate()

    main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM) if main_thread}
    try:
        status = process.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if stopped:
        raise KeyboardInterrupt
    return status


def join(run_dir: Path) -> None:
    """Take part in a prepared run as one of its processes."""
    experiment = load_run(run_dir)
    if os.environ.get(_HELD):
        work(run_dir, experiment)
        return
    require_same_data(run_dir, experiment)
    with _alone(run_dir) if will_be_first() else nullcontext():
        work(run_dir, experiment)


def work(run_dir: Path, experiment: Experiment) -> dict[str, Any]:
    """Run all stages in this process (one of several under torchrun) and write the summary."""
    with _writing(run_dir), process_group():
        results = run_stages(experiment, run_dir)
        summary = _summary(experiment, results)
        if is_first():
            write_json(run_dir / "summary.json", summary)
    return summary


@contextmanager
def _writing(run_dir: Path) -> Iterator[None]:
    """A disk that is full or may not be written ends a run in one line; what it has saved stands."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or run_dir}: cannot be written ({reason(error)}); "
            f"once that is mended, `tailo train resume={run_dir}` goes on"
        ) from error


def load_run(run_dir: Path) -> Experiment:
    """The experiment of a run folder."""
    path = run_dir / "config.yaml"
    config = read_yaml(path, "the folder of a run")
    if not isinstance(config, dict):
        raise UserError(f"{path}: {type(config).__name__} found, expected keys and values")
    experiment = read_experiment(config)
    names = experiment.names
    where = run_dir.resolve()
    if where.parts[-4:-1] != (names["env"], names["setting"], names["method"]):
        return experiment
    # What stands in config.yaml of where runs are is true only from where the run was started.
    return read_experiment({**config, "runs": str(where.parents[3])})


def read_summary(run_dir: Path) -> dict[str, Any]:
    """The summary of a finished run."""
    path = run_dir / "summary.json"
    summary = read_json(path, "a finished run")
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        raise UserError(f"{path}: not a summary of schema {SCHEMA}")
    return summary


def load_module(run_dir: Path, stage: str, kind: type[ModuleT]) -> ModuleT:
    """The trained module of a finished stage, on the CPU, ready to use."""
    return load_checkpoint(run_dir / stage / "checkpoints" / "last.ckpt", kind)


def load_checkpoint(path: Path, kind: type[ModuleT]) -> ModuleT:
    """The module of a checkpoint, on the CPU, ready to use."""
    try:
        with torch.random.fork_rng(devices=[]):  # building a network draws its first weights
            module: ModuleT = kind.load_from_checkpoint(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: cannot be read as a {kind.__name__} ({reason})") from error
    return module.eval()


def load_run_policy(run_dir: Path) -> PolicyModule:
    """The trained policy of a finished run."""
    summary, experiment = read_summary(run_dir), load_run(run_dir)
    if summary["failure"]:
        failure = summary["failure"]
        raise UserError(f"{run_dir}: stage {failure['stage']} ended in a numerical error at step {failure['step']}")
    last = summary["stages"][-1]["stage"]
    return load_module(run_dir, last, import_class(experiment.stages[last].model["class_path"], PolicyModule))


def evaluate(run_dir: Path, episodes: int, seed: int | None = None) -> tuple[Episodes, Evaluation]:
    """Play a finished run's policy for fresh episodes.

    Args:
        run_dir: the run.
        episodes: how many.
        seed: decides the initial states; None: the run's seed.

    Returns:
        The episodes, and what they come to.
    """
    require_range("episodes", episodes, 1, closed="[)")
    experiment, summary = load_run(run_dir), read_summary(run_dir)
    environment = experiment.environment
    if environment is None:
        raise UserError(f"{run_dir}: this run has no environment to play in (env=none)")
    policy = load_run_policy(run_dir)
    simulator = environment.simulator(min(episodes, environment.rows))
    try:
        seeds = episode_seeds(experiment.config["seed"] if seed is None else seed, "evaluate", episodes)
        played = run_episodes(simulator, actor(policy), seeds)
    finally:
        simulator.close()
    return played, summarise(played, environment, summary["stages"][-1]["steps"])


def _summary(experiment: Experiment, results: list[StageResult]) -> dict[str, Any]:
    last = results[-1]
    evaluation = last.evaluations[-1] if last.evaluations else None
    failure = None if last.diverged is None else {"stage": last.stage, "step": last.diverged}
    if failure and experiment.environment and not evaluation:  # a stage before the policy's
        evaluation = {"score": 0.0, "score_std": 0.0, "episodes": 0}
    return {
        "schema": SCHEMA,
        **experiment.names,
        "seed": experiment.config["seed"],
        "score": evaluation["score"] if evaluation else None,
        "score_std": evaluation["score_std"] if evaluation else None,
        "episodes": evaluation["episodes"] if evaluation else 0,
        "failure": failure,
        "reference": vars(experiment.environment.reference) if experiment.environment else None,
        "checkpoint": f"{last.stage}/{last.checkpoint}",
        "data": describe_data(experiment),
        "evaluations": last.evaluations,
        "stages": [
            {
                "stage": result.stage,
                "steps": result.steps,
                "chosen_step": result.chosen_step,
                "loss": result.loss,
                "quality": result.quality,
                "seconds": round(result.seconds, 2),
                "cpu_seconds": round(result.cpu_seconds, 2),
                "reused_from": result.reused_from,
            }
            for result in results
        ],
        "versions": versions(),
    }


def describe_data(experiment: Experiment) -> dict[str, Any]:
    """What a run learnt from: source, counts, returns by origin, fingerprint."""
    task = experiment.task
    return {
        "source": experiment.source.describe(),
        "fingerprint": task_fingerprint(experiment.source, experiment.setting),
        "ts": {"trajectories": len(task.ts), "states": task.ts.steps},
        "ta": {"trajectories": len(task.ta), "steps": task.ta.steps, "origins": _by_origin(task.ta)},
    }


def _by_origin(trajectories: Trajectories) -> dict[str, Any]:
    """Counts and mean return for each origin label."""
    summary: dict[str, Any] = {}
    returns = None if trajectories.recording.rewards is None else trajectories.recorded_returns
    for origin in dict.fromkeys(trajectories.origins.tolist()):
        part = trajectories.origins == origin
        summary[origin] = {"trajectories": int(part.sum()), "steps": int(trajectories.lengths[part].sum())}
        if returns is not None:
            summary[origin]["mean_return"] = round(float(np.mean(returns[part])), 3)
    return summary


def versions() -> dict[str, str]:
    """Versions of what decides numbers."""
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}
