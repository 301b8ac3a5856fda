"""What a run writes of itself: its data before training, its outcome after it.

Without torch: what only shows runs starts without it.
"""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from tailo_pl.data.task_names import task_fingerprint, task_recipe
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.runs.summary import SCHEMA, Data, Failure
from tailo_pl.runs.verdict import judge

if TYPE_CHECKING:
    from tailo_pl.config.experiment import Experiment
    from tailo_pl.training.results import StageResult

PACKAGES = ("tailo_pl", "torch", "lightning", "gymnasium", "gymnasium-robotics", "mujoco", "numpy")


def describe_run(experiment: Experiment, results: list[StageResult]) -> dict[str, Any]:
    """What came of a run: the content of `summary.json`."""
    last = results[-1]
    evaluation = last.evaluations[-1] if last.evaluations else None
    failure: Failure | None = None if last.diverged is None else {"stage": last.stage, "step": last.diverged}
    data = describe_data(experiment)
    stages = [{"stage": result.stage, "quality": result.quality} for result in results]
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
        "verdict": judge(stages, data, failure, experiment.names["method"]),
        "checkpoint": f"{last.stage}/{last.checkpoint}",
        "data": data,
        "evaluations": last.evaluations,
        "stages": [
            {
                "stage": result.stage,
                "steps": result.steps,
                "chosen_step": result.chosen_step,
                "stopped": result.stopped,
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


def describe_data(experiment: Experiment) -> Data:
    """What a run learnt from: source, counts, returns by origin, fingerprint."""
    task = experiment.task
    return {
        "source": experiment.source.describe(),
        "fingerprint": task_fingerprint(experiment.source, experiment.setting),
        "recipe": task_recipe(experiment.source, experiment.setting),
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
