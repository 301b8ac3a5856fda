"""What can be wrong with a task before anything is trained on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.fit import check_fit
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

_LISTED = 8
_TOLERANCE = 1e-6  # of the bounds' range: what rounding to float32 may add
_SMALL_RANGE = 0.01  # of the bounds' range: actions that use less are probably in other units
_FEW_OUTSIDE = 0.01  # TS states outside TA's range that are worth no remark
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class _Range:
    """Smallest and largest number of each dimension."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def constant(self) -> NDArray[np.bool_]:
        return np.asarray(self.low == self.high)

    def at(self, dimension: int) -> str:
        return f"{_number(self.low[dimension])} to {_number(self.high[dimension])}"


def check_task(
    task: Task,
    action_low: Sequence[float],
    action_high: Sequence[float],
    *,
    trust: bool = False,
    std_floor: float = 1e-4,
) -> list[str]:
    """Look at TS and TA before training.

    Args:
        task: what there is to learn from. TS may be states only.
        action_low: lower bound of each action.
        action_high: upper bound.
        trust: only remark on TS and TA that do not fit together, rather than refuse them.
        std_floor: what standardising divides by where TA is constant.

    Returns:
        What is odd, a line each. What makes training meaningless is raised as `UserError`.
    """
    ts, ta = task.ts, task.ta
    bounds = _Range(np.array(action_low, dtype=np.float64), np.array(action_high, dtype=np.float64))
    actions = _require_shapes(ts, ta, bounds)
    ts_range = _range("TS: observations", ts, ts.recording.observations)
    ta_range = _range("TA: observations", ta, ta.recording.observations)
    action_range = _range("TA: actions", ta, actions)
    _require_within(ta, actions, action_range, bounds)
    width = ts.recording.observations.shape[1]
    compared = np.isin(np.arange(width), range(width) if task.compared is None else task.compared)
    return [
        *_short_trajectories(ta),
        *_constant_states(ts_range, ta_range, compared, std_floor),
        *_uncovered(ts, ts_range, ta_range, compared),
        *check_fit(task, trust=trust),
        *_odd_actions(action_range, bounds),
    ]


def _require_shapes(ts: Trajectories, ta: Trajectories, bounds: _Range) -> NDArray[Any]:
    """Refuse what does not fit together; TA's actions otherwise."""
    for name, part in (("TS", ts), ("TA", ta)):
        if not part.steps:
            raise UserError(f"{name}: no states found, expected at least one")
    actions = ta.recording.actions
    if actions is None:
        raise UserError("TA: actions: none recorded, expected state-action trajectories")
    ts_width, ta_width = ts.recording.observations.shape[1], ta.recording.observations.shape[1]
    if ts_width != ta_width:
        raise UserError(
            f"TS: observations: {ts_width} dimensions found, expected {ta_width} as in TA; "
            "choose the same for both with source.columns.observations=[...]"
        )
    if actions.shape[1] != len(bounds.low):
        raise UserError(f"TA: actions: {actions.shape[1]} dimensions found, expected {len(bounds.low)}, one per bound")
    if len(ta) < 2:
        raise UserError(
            f"TA: 1 trajectory of {ta.steps:,} steps found, expected at least 2 trajectories, "
            "or beta_1 leaves no safe negatives"
        )
    if ta.lengths.max() == 1:
        raise UserError(f"TA: all {len(ta):,} trajectories have a single step, expected longer ones")
    return actions


def _range(name: str, trajectories: Trajectories, array: NDArray[Any]) -> _Range:
    """The range of every dimension; refuses numbers that cannot be trained on."""
    low, high = np.full(array.shape[1], np.inf), np.full(array.shape[1], -np.inf)
    position = 0
    for chunk in trajectories.chunks(array):
        least, most = chunk.min(0), chunk.max(0)
        # Comparing like this also finds NaN, for which every comparison is false.
        if not ((least >= -_LARGEST).all() and (most <= _LARGEST).all()):
            raise _number_error(name, trajectories, position, chunk)
        np.minimum(low, least, out=low)
        np.maximum(high, most, out=high)
        position += len(chunk)
    return _Range(low, high)


def _number_error(name: str, trajectories: Trajectories, position: int, chunk: NDArray[Any]) -> UserError:
    step, dimension = np.argwhere(~(np.abs(chunk.astype(np.float64)) <= _LARGEST))[0]
    found = float(chunk[step, dimension])
    expected = "a number within the range of float32" if np.isfinite(found) else "finite numbers"
    row = _row(trajectories, position + int(step))
    return UserError(
        f"{name}: {found:g} found in row {row} (counted from 0), dimension {dimension}, expected {expected}"
    )


def _require_within(ta: Trajectories, actions: NDArray[Any], found: _Range, bounds: _Range) -> None:
    span = bounds.high - bounds.low
    slack = _TOLERANCE * np.where(np.isfinite(span), span, 1.0)
    low, high = bounds.low - slack, bounds.high + slack
    if (found.low >= low).all() and (found.high <= high).all():
        return
    count = position = worst_step = dimension = 0
    worst = 0.0
    for chunk in ta.chunks(actions):
        beyond = np.maximum(low - chunk, chunk - high)
        count += int(np.count_nonzero((beyond > 0).any(1)))
        if beyond.max() > worst:
            worst = float(beyond.max())
            step, dimension = divmod(int(np.argmax(beyond)), beyond.shape[1])
            worst_step = position + step
        position += len(chunk)
    row = _row(ta, worst_step)
    raise UserError(
        f"TA: actions: {count:,} of {ta.steps:,} are outside the bounds, the worst {_number(actions[row, dimension])} "
        f"in row {row} (counted from 0), dimension {dimension}, expected {bounds.at(dimension)} there"
    )


def _short_trajectories(ta: Trajectories) -> Iterator[str]:
    short = int(np.count_nonzero(ta.lengths < 2))
    if short:
        yield f"TA: {short:,} of {len(ta):,} trajectories have a single step"


def _constant_states(ts: _Range, ta: _Range, compared: NDArray[np.bool_], std_floor: float) -> Iterator[str]:
    constant = ta.constant
    if constant.any():
        yield f"TA: {_share(constant)} are constant ({_listed(constant)})"
    away = np.maximum(np.abs(ts.low - ta.low), np.abs(ts.high - ta.low))
    differs = constant & (away > 0) & compared
    if differs.any():
        worst = int(np.argmax(np.where(differs, away, 0)))
        yield (
            f"TS: other values than TA's only one in {_share(differs)} ({_listed(differs)}), the farthest in "
            f"dimension {worst}: {_between(ts, worst)}, where TA has {_number(ta.low[worst])}; standardising divides "
            f"by {std_floor:g} there, which makes that {_number(away[worst] / std_floor)} standard deviations: "
            "leave such dimensions out of what is compared (method.dimensions)"
        )


def _uncovered(ts: Trajectories, ts_range: _Range, ta_range: _Range, compared: NDArray[np.bool_]) -> Iterator[str]:
    varying = compared & ~ta_range.constant  # the others have a line of their own
    if not (varying & ((ts_range.low < ta_range.low) | (ts_range.high > ta_range.high))).any():
        return
    outside = np.zeros(len(varying), dtype=np.int64)
    anywhere = 0
    for chunk in ts.chunks(ts.recording.observations):
        marks = ((chunk < ta_range.low) | (chunk > ta_range.high)) & varying
        outside += np.count_nonzero(marks, axis=0)
        anywhere += int(np.count_nonzero(marks.any(1)))
    everything = outside == ts.steps
    if everything.any():
        first = int(np.argmax(everything))
        yield (
            f"TS: all {ts.steps:,} states are outside TA's range in {_share(everything)} ({_listed(everything)}), "
            f"e.g. dimension {first}: {_between(ts_range, first)}, where TA has {ta_range.at(first)}; "
            "TA cannot contain the expert's states: are units and the order of dimensions the same?"
        )
    worst = int(np.argmax(np.where(everything, 0, outside)))
    if not everything[worst] and outside[worst] > _FEW_OUTSIDE * ts.steps:
        yield (
            f"TS: {outside[worst]:,} of {ts.steps:,} states ({outside[worst] / ts.steps:.1%}) are outside TA's range "
            f"in dimension {worst}: {_between(ts_range, worst)}, where TA has {ta_range.at(worst)} "
            f"({anywhere / ts.steps:.1%} in any dimension); TA should cover the expert's states"
        )


def _odd_actions(found: _Range, bounds: _Range) -> Iterator[str]:
    constant = found.constant
    if constant.any():
        first = int(np.argmax(constant))
        yield (
            f"TA: actions: {_share(constant)} are constant ({_listed(constant)}), "
            f"e.g. dimension {first}: always {_number(found.low[first])}"
        )
    span = bounds.high - bounds.low
    small = ~constant & np.isfinite(span) & (found.high - found.low < _SMALL_RANGE * span)
    if small.any():
        first = int(np.argmax(small))
        yield (
            f"TA: actions: {_share(small)} use less than {_SMALL_RANGE:.0%} of the bounds' range ({_listed(small)}), "
            f"e.g. dimension {first}: {found.at(first)} of {bounds.at(first)}; probably other units"
        )


def _row(trajectories: Trajectories, position: int) -> int:
    """Row of the recording at a position among the kept steps."""
    return int(trajectories.rows.at(np.array([position]))[0])


def _share(marks: NDArray[np.bool_]) -> str:
    return f"{int(marks.sum())} of {len(marks)} dimensions"


def _listed(marks: NDArray[np.bool_]) -> str:
    numbers = np.flatnonzero(marks).tolist()
    return ", ".join(map(str, numbers[:_LISTED])) + (", ..." if len(numbers) > _LISTED else "")


def _between(found: _Range, dimension: int) -> str:
    """A range, or its one number."""
    return _number(found.low[dimension]) if found.constant[dimension] else found.at(dimension)


def _number(value: float) -> str:
    return f"{value:.4g}"
