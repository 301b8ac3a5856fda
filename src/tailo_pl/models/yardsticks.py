"""What a policy is held against without a simulator: how much data carries its weight, and simpler predictors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.likeness import Followers, Sample, some_states
from tailo_pl.data.settings import Task

_ROWS = 20_000  # that the simpler predictors learn from, at most
_FEATURES = 256
_RIDGE = 1e-4  # of the rows


def effective_number(shares: NDArray[np.floating]) -> float:
    """(sum w)^2 / sum w^2: how many equal shares would be as even as these."""
    total, squares = shares.sum(dtype=np.float64), np.square(shares, dtype=np.float64).sum()
    return float(total**2 / squares) if squares > 0 else 0.0


def weight_numbers(task: Task, weights: NDArray[np.float32]) -> dict[str, float]:
    """Where the weight of TA's steps lies.

    Returns:
        `effective_steps`, `effective_trajectories`: how many of them carry the weight; `covered`: share of TS's states
        that steps drawn by weight come near; `followed`: share of the weight in trajectories that go where TS goes;
        `followed_at_first`: the same of the weight that first steps have, where a policy begins too.
    """
    ts, ta = some_states(task.ts), task.ta
    sample = Sample.of(ta, dimensions=task.compared)
    followers = Followers(ts, ta, sample)
    shares = np.add.reduceat(weights, ta.offsets[:-1], dtype=np.float64)
    return {
        "effective_steps": effective_number(weights),
        "effective_trajectories": effective_number(shares),
        "covered": sample.weighted(ta, weights).covers(ts),
        "followed": followers.share(shares),
        "followed_at_first": followers.share(weights[ta.offsets[:-1]]),
    }


def mean_action(actions: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of actions."""
    return torch.asarray((weights[:, None] * actions).sum(0) / weights.sum())


def least_squares(states: Tensor, actions: Tensor, queries: Tensor) -> Tensor:
    """Actions at the queries by ridge regression on the states and random features of them: behaviour cloning in a
    second, the same whenever it is done."""
    generator = torch.Generator().manual_seed(0)
    width = states.shape[1]
    directions = torch.randn(width, _FEATURES, generator=generator, dtype=torch.float64) / width**0.5
    shifts = torch.randn(_FEATURES, generator=generator, dtype=torch.float64)

    def features(rows: Tensor) -> Tensor:
        rows = rows.double()
        hidden = (rows @ directions + shifts).relu()
        return torch.cat([hidden, rows, torch.ones(len(rows), 1, dtype=torch.float64)], 1)

    known = features(states)
    gram = known.T @ known + _RIDGE * len(known) * torch.eye(known.shape[1], dtype=torch.float64)
    solved: Tensor = torch.linalg.solve(gram, known.T @ actions.double())
    return (features(queries) @ solved).clamp(-1, 1).float()


def some_rows(marks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Some of the marked positions, all equally likely."""
    positions = np.flatnonzero(marks)
    if len(positions) <= _ROWS:
        return positions
    return np.sort(np.random.default_rng(0).choice(positions, _ROWS, replace=False))
