"""What to choose without a simulator: between runs by their verdicts, and for the weights from stored scores.

Nothing is trained: other values of alpha and gamma only weigh the same scores anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.config.experiment import Experiment
from tailo_pl.data.likeness import Sample, followed, some_states
from tailo_pl.errors import UserError
from tailo_pl.inputs.scores import rank_correlation
from tailo_pl.inputs.weights import trajectory_weights
from tailo_pl.models.yardsticks import effective_number
from tailo_pl.runs.folder import load_run, require_same_data
from tailo_pl.runs.summary import Summary, read_summary
from tailo_pl.runs.verdict import FEW_TRAJECTORIES

ALPHA = (0.5, 1.25, 2.0, 4.0)
GAMMA = (0.0, 0.9, 0.98, 0.998)
_LEVELS = {"good": 0, "unknown": 1, "doubtful": 1, "bad": 2}
_AS_GOOD = 0.03  # of the weight: a smaller gain is none


@dataclass(frozen=True)
class Choice:
    """Values of alpha and gamma, and what they make of a run's scores."""

    alpha: float
    gamma: float
    followed: float
    covered: float
    trajectories: float
    """that carry the weight"""


@dataclass(frozen=True)
class Judged:
    """A run, with what its verdict is worth beside others."""

    path: Path
    summary: Summary

    @property
    def promise(self) -> float:
        """From 0 to 1: the share of the weight in logs that go where TS goes, less where the verdict is worse."""
        verdict = self.summary["verdict"]
        share = verdict["numbers"].get("followed", 0.5)
        return share * {0: 1.0, 1: 0.75}.get(_LEVELS.get(verdict["level"], 1), 0.1)

    @property
    def unexplained(self) -> float:
        """Held-out error as a share of that of the mean action."""
        numbers = self.summary["verdict"]["numbers"]
        usual = numbers.get("held_out_mean", 0.0)
        return numbers.get("held_out_error", usual) / usual if usual else 1.0


def judged(paths: Sequence[Path]) -> list[Judged]:
    """Finished runs, the most promising first; between equals the held-out error decides."""
    found = [Judged(path, read_summary(path)) for path in paths]
    return sorted(found, key=lambda one: (-round(one.promise / _AS_GOOD), one.unexplained))


def choices(run_dir: Path) -> tuple[list[Choice], Choice, Choice]:
    """What other alphas and gammas would make of a run's scores.

    Returns:
        All of them, the run's own, and the advised one.
    """
    experiment = load_run(run_dir)
    require_same_data(run_dir, experiment)
    scores = stored_scores(run_dir, experiment)
    weights = experiment.weights
    assert weights is not None
    task = experiment.task
    sample, states = Sample.of(task.ta, dimensions=task.compared), some_states(task.ts)

    def choice(alpha: float, gamma: float) -> Choice:
        made = trajectory_weights(scores, task.ta.offsets, alpha=alpha, gamma=gamma, kind=weights.kind)
        shares = np.add.reduceat(made, task.ta.offsets[:-1], dtype=np.float64)
        covers = sample.weighted(task.ta, made).covers(states)
        return Choice(alpha, gamma, followed(states, task.ta, sample, made), covers, effective_number(shares))

    own = choice(weights.alpha, weights.gamma)
    grid = [(alpha, gamma) for alpha in ALPHA for gamma in GAMMA if (alpha, gamma) != (own.alpha, own.gamma)]
    everything = [own, *(choice(*values) for values in grid)]
    return everything, own, best(everything, own)


def best(everything: Sequence[Choice], own: Choice) -> Choice:
    """The choice with most of the weight where TS goes, carried by enough logs; the run's own unless another gains."""
    carried = [one for one in everything if one.trajectories >= FEW_TRAJECTORIES]
    most = max(carried or everything, key=lambda one: (one.followed, one.covered, one.trajectories))
    enough = own.trajectories >= FEW_TRAJECTORIES or not carried
    return own if enough and most.followed <= own.followed + _AS_GOOD else most


def has_scores(run_dir: Path) -> bool:
    """Whether a run weighs TA by scores."""
    return load_run(run_dir).weights is not None


def stored_scores(run_dir: Path, experiment: Experiment) -> NDArray[Any]:
    """The scores a run's weights were made of."""
    weights = experiment.weights
    if weights is None:
        raise UserError(f"{run_dir}: method {experiment.names['method']} weights nothing by scores, nothing to choose")
    path = run_dir / weights.scores / "scores.npy"
    try:
        scores = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({' '.join(str(error).split())[:200]})") from error
    if scores.shape != (experiment.task.ta.steps,) or not np.isfinite(scores).all():
        raise UserError(
            f"{path}: shape {scores.shape} found, expected {experiment.task.ta.steps} finite numbers as in TA"
        )
    return np.asarray(scores)


def agreement(one: Path, other: Path) -> float | None:
    """Spearman's correlation of the logs' mean scores of two runs on the same data; None: it cannot be told."""
    experiments = [load_run(one), load_run(other)]
    if experiments[0].fingerprint != experiments[1].fingerprint or any(each.weights is None for each in experiments):
        return None
    ta = experiments[0].task.ta
    means = [ta.mean(stored_scores(path, each)) for path, each in zip((one, other), experiments, strict=True)]
    return rank_correlation(means[0], means[1])
