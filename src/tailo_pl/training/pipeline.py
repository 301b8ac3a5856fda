"""The stages of a method in order: each trained once, keyed by everything that decides its outcome, and reused."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml
from lightning import Callback
from numpy.typing import NDArray

from tailo_pl.callbacks.checkpoint import StageCheckpoint
from tailo_pl.callbacks.held_out import HeldOutChoice
from tailo_pl.callbacks.rollout import RolloutScore
from tailo_pl.config.experiment import Experiment
from tailo_pl.config.trusted import import_class
from tailo_pl.data.cache import fingerprint
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.errors import UserError
from tailo_pl.files import require_name, write_array, write_json, write_text
from tailo_pl.inputs import Origin
from tailo_pl.models.stage import Diverged
from tailo_pl.runs.grouping import TRAINER_WITHOUT_EFFECT
from tailo_pl.runs.inside import is_own_file, real, require_inside, require_there
from tailo_pl.runs.summary import SCHEMA, is_number
from tailo_pl.runs.verdict import REACH
from tailo_pl.training.building import Built, build_stage, stage_batches, stage_callbacks, stage_config, trainer_options
from tailo_pl.training.ranks import is_first, wait_for_all
from tailo_pl.training.results import StageResult, finished_anywhere, index, training_alone

BEGUN = ".key"  # in a stage's folder: what it was begun as
log = logging.getLogger(__name__)
CallbackT = TypeVar("CallbackT", bound=Callback)


def run_stages(experiment: Experiment, run_dir: Path) -> list[StageResult]:
    """Train what has not been trained, reuse what has, in order.

    Args:
        experiment: what to run.
        run_dir: the run's folder; each stage gets one below it.
    """
    root = _root(experiment, run_dir)
    results: list[StageResult] = []
    keys: dict[str, str] = {}
    for name in experiment.stages:
        folder = require_inside(run_dir / name, run_dir)
        key = keys[name] = stage_key(experiment, name, keys)
        lineage = stage_key(experiment, name, keys, any_length=True)
        with training_alone(root, key):
            result = finished_anywhere(root, folder, key)
            if result is None:
                result = _train(experiment, name, key, lineage, folder)
                if is_first() and root is not None:
                    index(root, folder, key)
        results.append(result)
        if experiment.weights is not None and experiment.weights.scores == name:
            _warn_of_scores(name, result)
        if result.diverged is not None:
            log.warning(
                "stage %s: not finite at step %d (batch of seed %d, stage %s, step %d); it scores 0 from there on",
                name, result.diverged, experiment.stages[name].seed, name, result.diverged - 1,
            )  # fmt: skip
            break
    return results


def _warn_of_scores(name: str, result: StageResult) -> None:
    """Before a policy is trained with them: do these scores find anything of TS in TA?"""
    reach = result.quality.get("reach")
    if result.quality.get("ta_share") == 0 and is_number(reach) and reach < REACH:
        log.warning(
            "stage %s: none of TA's trajectories is taken for the expert's, and the best steps come %.0f%% of the way "
            "from TA's mean score to TS's: TS looks unlike anything in TA",
            name,
            100 * reach,
        )


def _root(experiment: Experiment, run_dir: Path) -> Path | None:
    """Where the runs are whose stages this one may share: what it lies in, never what its configuration says.

    None for a run that was moved out of its place: it keeps to itself.
    """
    names, where = experiment.names, real(run_dir)
    return where.parents[3] if where.parts[-4:-1] == (names["env"], names["setting"], names["method"]) else None


def stage_key(experiment: Experiment, name: str, keys: Mapping[str, str], *, any_length: bool = False) -> str:
    """The fingerprint of all that decides a stage's outcome.

    Args:
        experiment: the run's experiment.
        name: which stage.
        keys: of the stages before it.
        any_length: leave out the number of steps: what a stage that is taken further shares with what it was.
    """
    stage = experiment.stages[name]
    callbacks = stage_callbacks(experiment, stage).values()
    return fingerprint(
        {
            "schema": SCHEMA,
            "task": experiment.fingerprint,
            "stage": name,  # part of it because batches are drawn by the stage's name
            "seed": stage.seed,
            "model": stage.model,
            "batches": stage_batches(experiment, name),
            "max_steps": None if any_length else experiment.max_steps(name),
            "std_floor": experiment.std_floor,
            "bounds": None if experiment.environment else experiment.action_bounds,
            "inputs": {use: one.identity(keys) for use, one in stage.inputs.items()},
            # Devices and logs do not decide the outcome; everything else of the trainer may.
            "trainer": {
                option: value
                for option, value in trainer_options(experiment, stage).items()
                if option not in TRAINER_WITHOUT_EFFECT
            },
            # Rollouts do not change training, but their scores are part of what the stage reports.
            "callbacks": [one for one in callbacks if not _without_effect(one)],
        }
    )


def _without_effect(callback: Mapping[str, Any]) -> bool:
    return bool(getattr(import_class("callbacks", callback["class_path"], Callback), "without_effect", False))


def _begun(folder: Path, lineage: str) -> bool:
    """Whether an interrupted attempt at the same stage can be gone on with."""
    try:
        return (folder / BEGUN).read_text() == lineage
    except OSError:
        return False


def _train(experiment: Experiment, name: str, key: str, lineage: str, folder: Path) -> StageResult:
    task = experiment.task
    if is_first():
        (folder / "stage.json").unlink(missing_ok=True)  # what is taken further is not finished, for anyone
        for left in folder.glob("hpc_ckpt_*.ckpt"):
            left.unlink()  # Lightning saves it on SLURM's signal, amid a step: ours ends where an undisturbed run does
        begun = _begun(folder, lineage)
        if not begun:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()  # not its parents: a run whose folder has vanished ends here
        inputs = _inputs(experiment, name, folder, made=begun)
        width = task.ta.recording.observations.shape[1]
        steps = experiment.max_steps(name)
        config = stage_config(experiment, name, width, experiment.action_bounds, steps, inputs=inputs)
        write_text(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_text(folder / BEGUN, lineage)  # last: everything the stage needs is there
    wait_for_all()
    config = yaml.safe_load((folder / "config.yaml").read_text())
    built = build_stage(config, folder, task, experiment.loggers_beside())
    files = list(config["data"]["inputs"].values())
    checkpoints = _callback(built, StageCheckpoint)
    assert checkpoints is not None
    checkpoints.counts_on = (BEGUN, "config.yaml", *files)
    try:
        checkpoint = StageCheckpoint.path(built.trainer)
        built.trainer.fit(built.model, datamodule=built.data, ckpt_path=checkpoint if checkpoint.exists() else None)
    except Diverged as failure:
        return _failed(experiment, name, key, failure.step, built, folder, files)
    except SystemExit as stop:  # Lightning's answer to Ctrl-C and SIGTERM, with an exit code that tells nothing
        raise KeyboardInterrupt from stop
    return stage_result(experiment, name, key, built, folder, files)


def stage_result(
    experiment: Experiment, name: str, key: str, built: Built, folder: Path, files: list[str]
) -> StageResult:
    """Write what a trained stage hands on, then what is known of it, which makes it finished.

    Args:
        experiment: the run's experiment.
        name: which stage.
        key: of the stage.
        built: what it was trained with.
        folder: the stage's folder.
        files: what it has read.
    """
    task, checkpoints = experiment.task, _callback(built, StageCheckpoint)
    assert checkpoints is not None
    choice = _callback(built, HeldOutChoice)
    rollouts = _callback(built, RolloutScore)
    quality = dict(choice.numbers) if choice else {}
    if is_first():
        outputs = built.model.hand_on(task)
        for output, array in outputs.items():
            file = f"{require_name('output', output)}.npy"
            write_array(folder / file, array)
            files.append(file)
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
        stopped=_why(built),
        quality=quality,
        files=files,
    )
    if is_first():
        require_there(folder, (BEGUN, "config.yaml", *files, result.checkpoint))
        write_json(folder / "stage.json", asdict(result))
    wait_for_all()
    return result


def _failed(
    experiment: Experiment, name: str, key: str, step: int, built: Built, folder: Path, files: list[str]
) -> StageResult:
    """The result of a stage that ended in a numerical error: what it had reached, and score 0 from there on."""
    rollouts = _callback(built, RolloutScore)
    checkpoints = _callback(built, StageCheckpoint)
    assert checkpoints is not None
    evaluations = rollouts.history if rollouts else []
    if rollouts:
        evaluations = [one for one in evaluations if one.step < step]
        planned = [at for at in rollouts.planned(experiment.max_steps(name)) if at >= step]
        evaluations += [Evaluation.failed(at, rollouts.episodes) for at in planned]
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
        stopped="not finite",
        files=files,
        diverged=step,
    )
    if is_first():
        require_there(folder, (BEGUN, "config.yaml", *files))
        write_json(folder / "stage.json", asdict(result))
    wait_for_all()
    return result


def _inputs(experiment: Experiment, name: str, folder: Path, *, made: bool) -> dict[str, str]:
    """Make what the stage reads beside its task, unless it was made already.

    Returns:
        File names, relative to the stage's folder, by the names of the inputs.
    """
    stage = experiment.stages[name]
    origin = Origin(experiment.task, experiment.setting, experiment.fingerprint, partial(_handed_on, folder.parent))
    files = {use: f"{require_name('input', use)}.npy" for use in stage.inputs}
    for use, one in stage.inputs.items():
        if not made or not is_own_file(folder, files[use]):
            write_array(folder / files[use], one.make(origin))
    return files


def _handed_on(run_dir: Path, stage: str, output: str) -> NDArray[Any]:
    path = run_dir / stage / f"{output}.npy"
    if not path.exists():
        raise UserError(f"stage {stage}: hands on no {output}, expected a module that does")
    return np.asarray(np.load(path, allow_pickle=False))


def _callback(built: Built, kind: type[CallbackT]) -> CallbackT | None:
    callbacks = built.trainer.callbacks  # type: ignore[attr-defined]
    return next((callback for callback in callbacks if isinstance(callback, kind)), None)


def _why(built: Built) -> str:
    """Why training ended: what a callback that ended it says, or that all steps are done."""
    callbacks = built.trainer.callbacks  # type: ignore[attr-defined]
    reasons = (getattr(callback, "stopped", None) for callback in callbacks)
    return next((reason for reason in reasons if reason), "all steps done")
