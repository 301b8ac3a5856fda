"""Whether logs act in two ways in the same place: what a policy head that knows one action a state cannot clone."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tailo_pl.data.likeness import Sample
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.models.yardsticks import least_squares

_PLACES = 200  # looked at
_LEAST, _MOST = 12, 24  # logs around a place: fewer tell nothing, more are farther away
_WITHIN = 0.15  # of the variance: left within two groups; a Gaussian leaves 0.36, even spread 0.25
_APART = 0.25  # of the actions' variance anywhere: groups that are closer do not matter
_MIXED = 0.5  # of the neighbours in different groups that chance would make
_EXPLAINED = 0.7  # of the actions' variance, from which on the state tells what logs do


def two_ways(ta: Trajectories, sample: Sample) -> float | None:
    """The share of places around which logs fall into two groups by what they do, and not by where they are.

    A place is a step of the sample, with the nearest step of each of some logs. Two groups: along the direction in
    which their actions differ most, a cut leaves little variance on either side, and neighbours are on different sides
    of it about as often as chance has it. Where one half of the logs predicts what the other does, there are none.

    Args:
        ta: the trajectories, with actions.
        sample: steps of TA as the policy sees them.

    Returns:
        The share; None: too few logs to tell.
    """
    assert ta.recording.actions is not None
    if len(np.unique(sample.trajectory)) < _LEAST:
        return None
    actions = np.asarray(ta.recording.actions[ta.rows.at(sample.positions)], dtype=np.float64)
    low, high = actions.min(0), actions.max(0)
    actions = 2 * (actions - low) / np.maximum(high - low, 1e-8) - 1
    if _unexplained(sample, actions) < 1 - _EXPLAINED:
        return 0.0
    found = []
    for place in np.unique(np.linspace(0, len(actions) - 1, _PLACES).astype(np.int64)):
        order = np.argsort(np.square(sample.states - sample.states[place]).sum(1))
        _, first = np.unique(sample.trajectory[order], return_index=True)  # of each log its nearest step
        around = order[np.sort(first)[:_MOST]]
        found.append(_fall_apart(sample.states[around], actions[around], actions))
    return float(np.mean(found))


def _unexplained(sample: Sample, actions: NDArray[np.float64]) -> float:
    """The share of the actions' variance that states leave open where half of the logs predicts the other half."""
    half = np.unique(sample.trajectory, return_inverse=True)[1] % 2 == 0
    states, known = torch.from_numpy(sample.states), torch.from_numpy(actions)
    rest = least_squares(states[half], known[half], states[~half]).numpy() - actions[~half]
    return float(np.square(rest).sum() / max(np.square(actions[~half] - actions[~half].mean(0)).sum(), 1e-12))


def _fall_apart(states: NDArray[np.float32], own: NDArray[np.float64], actions: NDArray[np.float64]) -> bool:
    """Whether actions around a place form two groups that the states do not tell apart."""
    centred = own - own.mean(0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    along = centred @ direction
    whole = float(np.square(along).sum())
    if whole <= _APART * len(along) * (actions @ direction).var():
        return False
    order = np.argsort(along)
    counts, sums = np.arange(1, len(along)), np.cumsum(along[order])[:-1]
    between = np.square(sums) * (1 / counts + 1 / (len(along) - counts))  # of both sides, around their mean of 0
    cut = int(np.argmax(between))
    if whole - between[cut] > _WITHIN * whole:
        return False
    upper = np.zeros(len(along), dtype=bool)
    upper[order[cut + 1 :]] = True
    away = np.square(states[:, None] - states[None]).sum(2)
    np.fill_diagonal(away, np.inf)
    share = upper.mean()
    return bool((upper[away.argmin(1)] != upper).mean() >= _MIXED * 2 * share * (1 - share))
