"""Weights along the trajectories against loops over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rows import Row, clock, in_turns, ratio

from tailo_pl.inputs.weights import trajectory_weights

ALPHA, GAMMA = 1.25, 0.998


def rows(rounds: int) -> list[Row]:
    """A million steps: forty trajectories of a thousand steps, 45,000 short ones."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.full(40, 1000), np.clip(rng.geometric(1 / 22, 45_000), 1, 200)])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = rng.standard_normal(offsets[-1]).astype(np.float32)
    part = offsets[:: len(offsets) // 500]  # the loops get a share of the trajectories, and their time is scaled
    few = offsets[(offsets <= part[20])]
    scale = offsets[-1] / few[-1]
    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: _timed(lambda: trajectory_weights(scores, offsets, alpha=ALPHA, gamma=GAMMA)),
        "numpy": lambda: scale * _timed(lambda: loop(scores, few, np.empty(few[-1]), np.exp)),
        "torch": lambda: scale * _timed(lambda: loop(torch.from_numpy(scores), few, torch.empty(few[-1]), torch.exp)),
    }
    taken = in_turns(sides, rounds)
    return [
        Row("weights, 1M steps", 1e3 * float(np.median(taken["ours"])), "ms"),
        Row("weights vs a loop over torch's numbers", ratio(taken, "torch", "ours"), target=100,
            note="as in the authors' code"),
        Row("weights vs a loop over numpy's numbers", ratio(taken, "numpy", "ours")),
    ]  # fmt: skip


def loop(scores: Any, offsets: Any, weights: Any, exp: Callable[[Any], Any]) -> Any:
    """Step by step, as one writes it first."""
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        weights[end - 1] = exp(ALPHA * scores[end - 1]) / (1 - GAMMA)
        for step in range(end - 2, begin - 1, -1):
            weights[step] = exp(ALPHA * scores[step]) + GAMMA * weights[step + 1]
    return weights / weights.max()


def _timed(work: Callable[[], Any]) -> float:
    began = clock()
    work()
    return clock() - began
