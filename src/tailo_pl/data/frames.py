"""Bringing another body's states into TA's frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import Refusal, UserError

Extent = Sequence[Sequence[float]]
"""Lowest and highest value of each dimension."""


def require_whole_states(told: Sequence[int] | None) -> None:
    """Refuse, for a method that compares whole states, a TS that tells only these numbers of them; None: all."""
    if told is not None:
        numbers = ", ".join(map(str, told))
        raise Refusal(f"TS: tells numbers {numbers} of a state alone, expected all: this method compares whole states")


def into_frame(
    ts: Trajectories,
    ts_dimensions: Sequence[int],
    ts_extent: Extent | None,
    ta: Trajectories,
    dimensions: Sequence[int],
    extent: Extent | None,
) -> Trajectories:
    """TS with TA's numbers: the named dimensions scaled from one extent to the other, TA's mean in all others.

    Args:
        ts: states of the other body.
        ts_dimensions: of its numbers, those that have a meaning in TA.
        ts_extent: theirs; None: from the least to the largest value found.
        ta: whose frame is wanted.
        dimensions: what they are in TA, in the same order.
        extent: likewise.
    """
    if len(dimensions) != len(ts_dimensions):
        raise UserError(
            f"setting.ts_dimensions: {list(ts_dimensions)} given, expected {len(dimensions)} as in setting.dimensions"
        )
    states = ts.recording.observations
    for name, chosen, width in (
        ("setting.ts_dimensions", ts_dimensions, states.shape[1]),
        ("setting.dimensions", dimensions, ta.recording.observations.shape[1]),
    ):
        if not all(0 <= one < width for one in chosen):
            raise UserError(f"{name}: {list(chosen)} given, expected numbers from 0 to {width - 1}")
    low, high = _extent("setting.ts_extent", ts_extent, ts, ts_dimensions)
    to_low, to_high = _extent("setting.extent", extent, ta, dimensions)
    mean = sum(chunk.sum(0, dtype=np.float64) for chunk in ta.chunks(ta.recording.observations)) / ta.steps
    moved = np.tile(mean, (len(states), 1))
    moved[:, dimensions] = to_low + (states[:, ts_dimensions] - low) / (high - low) * (to_high - to_low)
    return replace(ts, recording=Recording(moved.astype(np.float32), ts.recording.starts))


def _extent(
    option: str, given: Extent | None, trajectories: Trajectories, dimensions: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if given is None:
        chunks = [chunk[:, dimensions] for chunk in trajectories.chunks(trajectories.recording.observations)]
        low, high = np.min([one.min(0) for one in chunks], axis=0), np.max([one.max(0) for one in chunks], axis=0)
    else:
        if np.shape(given) != (len(dimensions), 2):
            raise UserError(f"{option}: {given} given, expected a lowest and a highest value for each dimension")
        low, high = np.array(given, dtype=np.float64).T
    if not (low < high).all():
        raise UserError(f"{option}: {low.tolist()} to {high.tolist()} found, expected low < high")
    return low.astype(np.float64), high.astype(np.float64)
