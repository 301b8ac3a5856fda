"""The stages of a method in order: each trained once, keyed by everything that decides its outcome, and reused."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from lightning import Callback
from numpy.typing import NDArray

from tailo_pl.building import Built, build_stage, stage_config
from tailo_pl.callbacks.checkpoint import StageCheckpoint
from tailo_pl.callbacks.held_out import HeldOutChoice
from tailo_pl.callbacks.rollout import RolloutScore
from tailo_pl.data.cache import cached_array, fingerprint
from tailo_pl.data.settings import Task, task_fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.errors import UserError
from tailo_pl.experiment import SCHEMA, Experiment, Rewards
from tailo_pl.files import write_json, write_text
from tailo_pl.models.stage import Diverged
from tailo_pl.ranks import is_first, wait_for_all
from tailo_pl.rewards import step_rewards, trajectory_returns
from tailo_pl.transport import MAKER, transport_rewards
from tailo_pl.weights import safe_negatives, trajectory_weights

_WITHOUT_EFFECT = ("accelerator", "devices", "strategy", "log_every_n_steps")
BEGUN = ".key"  # in a stage's folder: what it was begun as
log = logging.getLogger(__name__)
CallbackT = TypeVar("CallbackT", bound=Callback)
INDEX = ".stages"  # under the runs' root: key of a finished stage -> its folder


@dataclass(frozen=True)
class StageResult:
    """What is known of a finished stage; written to `stage.json` as the last act of it."""

    schema: int
    stage: str
    key: str
    steps: int
    loss: float | None
    seconds: float
    cpu_seconds: float
    checkpoint: str
    evaluations: list[dict[str, Any]]
    chosen_step: int
    quality: dict[str, float] = field(default_factory=dict)
    diverged: int | None = None
    """the step at which a number was no longer finite"""
    reused_from: str | None = None


def run_stages(experiment: Experiment, run_dir: Path) -> list[StageResult]:
    """Train what has not been trained, reuse what has, in order.

    Args:
        experiment: what to run.
        run_dir: the run's folder; each stage gets one below it.
    """
    root = Path(experiment.config["runs"])
    results: list[StageResult] = []
    keys: dict[str, str] = {}
    for name in experiment.stages:
        folder = run_dir / name
        key = keys[name] = stage_key(experiment, name, keys)
        if is_first() and _finished(folder, key) is None:
            _reuse(root, folder, key)
        wait_for_all()
        result = _finished(folder, key)
        if result is None:
            result = _train(experiment, name, key, stage_key(experiment, name, keys, any_length=True), folder)
            _index(root, folder, key)
        results.append(result)
        if result.diverged is not None:
            log.warning(
                "stage %s: not finite at step %d (batch of seed %d, stage %s, step %d); it scores 0 from there on",
                name, result.diverged, experiment.stages[name].seed, name, result.diverged - 1,
            )  # fmt: skip
            break
    return results


def stage_key(experiment: Experiment, name: str, keys: Mapping[str, str], *, any_length: bool = False) -> str:
    """The fingerprint of all that decides a stage's outcome.

    Args:
        experiment: the run's experiment.
        name: which stage.
        keys: of the stages before it.
        any_length: leave out the number of steps: what a stage that is taken further shares with what it was.
    """
    stage = experiment.stages[name]
    trainer = experiment.config["trainer"]
    inputs = [
        None if wanted is None else {**asdict(wanted), "scores": keys[wanted.scores]}
        for wanted in (stage.negatives, stage.weights)
    ]
    if stage.rewards is not None:
        inputs.append({**asdict(stage.rewards), "scores": keys[stage.rewards.scores]})
    if stage.transport is not None:
        inputs.append({**asdict(stage.transport), "maker": MAKER, "ordered": experiment.setting.ordered})
    # Only where it is asked for: other stages keep the keys they have.
    asked: dict[str, Any] = {} if stage.settle is None else {"settle": asdict(stage.settle)}
    if experiment.config.get("compile"):
        asked["compile"] = True
    return fingerprint(
        asked
        | {
            "schema": SCHEMA,
            "task": task_fingerprint(experiment.source, experiment.setting),
            "stage": name,  # part of it because batches are drawn by the stage's name
            "seed": stage.seed,
            "model": stage.model,
            "data": stage.data,
            "max_steps": None if any_length else experiment.max_steps(name),
            "std_floor": experiment.std_floor,
            "bounds": None if experiment.environment else experiment.action_bounds,
            "inputs": inputs,
            # Devices and logs do not decide the outcome; everything else of the trainer may.
            "trainer": {key: value for key, value in trainer.items() if key not in _WITHOUT_EFFECT},
            # Rollouts do not change training, but their scores are part of what the stage reports.
            "hold_out": None if stage.hold_out is None else asdict(stage.hold_out),
            "rollout": None if stage.rollout is None else [asdict(stage.rollout), experiment.class_config("env")],
        }
    )


def _begun(folder: Path, lineage: str) -> bool:
    """Whether an interrupted attempt at the same stage can be gone on with."""
    try:
        return (folder / BEGUN).read_text() == lineage
    except OSError:
        return False


def _finished(folder: Path, key: str) -> StageResult | None:
    try:
        result = StageResult(**json.loads((folder / "stage.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    whole = result.key == key and (result.diverged is not None or (folder / result.checkpoint).is_file())
    return result if whole else None


def _reuse(root: Path, folder: Path, key: str) -> None:
    """Copy a finished stage of another run: small files, and each run stays whole when others are deleted."""
    try:
        other = root / (root / INDEX / key).read_text().strip()
    except OSError:
        return
    result = _finished(other, key)
    if result is None:
        return
    scratch = folder.with_name(f".{folder.name}")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(other, scratch)
    reused = StageResult(**{**asdict(result), "reused_from": str(other.relative_to(root))})
    write_json(scratch / "stage.json", asdict(reused))
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(scratch, folder)


def _index(root: Path, folder: Path, key: str) -> None:
    if not is_first():
        return
    (root / INDEX).mkdir(parents=True, exist_ok=True)
    write_text(root / INDEX / key, os.path.relpath(folder, root))


def _train(experiment: Experiment, name: str, key: str, lineage: str, folder: Path) -> StageResult:
    task = experiment.task
    if is_first():
        (folder / "stage.json").unlink(missing_ok=True)  # what is taken further is not finished, for anyone
        for left in folder.glob("hpc_ckpt_*.ckpt"):
            left.unlink()  # Lightning saves it on SLURM's signal, amid a step: ours ends where an undisturbed run does
        begun = _begun(folder, lineage)
        if not begun:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        inputs = _inputs(experiment, name, task, folder, made=begun)
        width = task.ta.recording.observations.shape[1]
        steps = experiment.max_steps(name)
        config = stage_config(experiment, name, width, experiment.action_bounds, steps, inputs=inputs)
        write_text(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_text(folder / BEGUN, lineage)  # last: everything the stage needs is there
    wait_for_all()
    config = yaml.safe_load((folder / "config.yaml").read_text())
    built = build_stage(config, folder, task, experiment.loggers_beside())
    try:
        checkpoint = StageCheckpoint.path(built.trainer)
        built.trainer.fit(built.model, datamodule=built.data, ckpt_path=checkpoint if checkpoint.exists() else None)
    except Diverged as failure:
        return _failed(experiment, name, key, failure.step, built, folder)
    except SystemExit as stop:  # Lightning's answer to Ctrl-C and SIGTERM, with an exit code that tells nothing
        raise KeyboardInterrupt from stop
    checkpoints, choice = _callback(built, StageCheckpoint), _callback(built, HeldOutChoice)
    assert checkpoints is not None
    rollouts = _callback(built, RolloutScore)
    quality = dict(choice.numbers) if choice else {}
    if is_first():
        outputs = built.model.hand_on(task)
        for output, array in outputs.items():
            np.save(folder / f"{output}.npy", array)
        quality |= built.model.quality(task, outputs)
    seconds, cpu_seconds = checkpoints.spent
    result = StageResult(
        schema=SCHEMA,
        stage=name,
        key=key,
        steps=built.trainer.global_step,
        loss=checkpoints.loss,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        checkpoint=str(StageCheckpoint.path(built.trainer).relative_to(folder)),
        evaluations=[asdict(evaluation) for evaluation in rollouts.history] if rollouts else [],
        chosen_step=(choice.best_step if choice else 0) or built.trainer.global_step,
        quality=quality,
    )
    if is_first():
        write_json(folder / "stage.json", asdict(result))
    wait_for_all()
    return result


def _failed(experiment: Experiment, name: str, key: str, step: int, built: Built, folder: Path) -> StageResult:
    """The result of a stage that ended in a numerical error: what it had reached, and score 0 from there on."""
    stage, rollouts = experiment.stages[name], _callback(built, RolloutScore)
    checkpoints = _callback(built, StageCheckpoint)
    assert checkpoints is not None
    evaluations = rollouts.history if rollouts else []
    if rollouts and stage.rollout:
        steps = experiment.max_steps(name)
        every = stage.rollout.every_n_steps or steps
        planned = [*range(every, steps, every), steps]
        evaluations = [one for one in evaluations if one.step < step]
        evaluations += [Evaluation.failed(at, stage.rollout.episodes) for at in planned if at >= step]
    seconds, cpu_seconds = checkpoints.spent
    result = StageResult(
        schema=SCHEMA,
        stage=name,
        key=key,
        steps=step,
        loss=None,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        checkpoint=str(StageCheckpoint.path(built.trainer).relative_to(folder)),
        evaluations=[asdict(evaluation) for evaluation in evaluations],
        chosen_step=step,
        diverged=step,
    )
    if is_first():
        write_json(folder / "stage.json", asdict(result))
    wait_for_all()
    return result


def _inputs(experiment: Experiment, name: str, task: Task, folder: Path, *, made: bool) -> dict[str, str]:
    """Derive what the stage reads from the task and earlier stages' scores, unless it was made already.

    Returns:
        File names, relative to the stage's folder, by the data module's arguments.
    """
    stage = experiment.stages[name]
    makers: dict[str, Callable[[], NDArray[Any]]] = {}
    if (negatives := stage.negatives) is not None:
        makers["negatives"] = lambda: safe_negatives(task.ta.mean(_scores(folder, negatives.scores)), negatives.beta_1)
    if (weights := stage.weights) is not None:
        makers["weights"] = lambda: trajectory_weights(
            _scores(folder, weights.scores),
            task.ta.offsets,
            alpha=weights.alpha,
            gamma=weights.gamma,
            kind=weights.kind,
        )
    if (wanted := stage.rewards) is not None:
        makers["rewards"] = lambda: _rewards(folder, wanted, task, absorbing=stage.data.get("absorbing", False))
    if (transport := stage.transport) is not None:
        # Minutes on a large TA, and the same for every seed.
        ordered = experiment.setting.ordered
        named = task_fingerprint(experiment.source, experiment.setting)
        identity = {"task": named, **asdict(transport), "ordered": ordered, "maker": MAKER}
        makers["rewards"] = lambda: cached_array(
            "transport", identity, lambda: transport_rewards(task, transport, ordered=ordered)
        )
    for use, make in makers.items():
        if not made:
            np.save(folder / f"{use}.npy", make())
    return {use: f"{use}.npy" for use in makers}


def _rewards(folder: Path, wanted: Rewards, task: Task, *, absorbing: bool) -> NDArray[np.float32]:
    scores = _scores(folder, wanted.scores)
    if wanted.returns is not None:
        return trajectory_returns(step_rewards(scores, wanted.kind), task.ta.offsets, wanted.returns)
    if absorbing:  # behind the steps, as the data module reads it
        scores = np.append(scores, _scores(folder, wanted.scores, "absorbing_score"))
    return step_rewards(scores, wanted.kind)


def _scores(folder: Path, stage: str, name: str = "scores") -> NDArray[Any]:
    path = folder.parent / stage / f"{name}.npy"
    if not path.exists():
        raise UserError(f"stage {stage}: hands on no {name}, expected a discriminator that does")
    return np.asarray(np.load(path, allow_pickle=False))


def _callback(built: Built, kind: type[CallbackT]) -> CallbackT | None:
    callbacks = built.trainer.callbacks  # type: ignore[attr-defined]
    return next((callback for callback in callbacks if isinstance(callback, kind)), None)
