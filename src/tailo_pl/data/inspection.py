"""What recorded data looks like: counts, distributions, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.survey import Survey
from tailo_pl.data.moments import Dimensions, Moments, Numbers, blocks, plain
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, counted

AT_BOUND = 1e-6
"""How near to a bound counts as at it, in parts of the range between the bounds."""


@dataclass(frozen=True)
class Distribution:
    """Some numbers in short."""

    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float
    mean: float


@dataclass(frozen=True)
class Origin:
    """How much of the data has one label."""

    trajectories: int
    steps: int


@dataclass(frozen=True)
class Ends:
    """How many trajectories end with a step marked as terminal, with one marked only as a timeout, or unmarked."""

    terminal: int
    timeout: int
    neither: int


@dataclass(frozen=True)
class AtBounds:
    """How often actions are at their bounds.

    Args:
        bounds: whether the bounds were given, or are the smallest and largest recorded actions.
        low: lower bound of each dimension; None: it has none.
        high: upper bound.
        share: part of the steps in which the dimension is at a bound or beyond.
    """

    bounds: Literal["given", "recorded"]
    low: Numbers
    high: Numbers
    share: tuple[float, ...]


@dataclass(frozen=True)
class Inspection:
    """What a selection of trajectories looks like. `dataclasses.asdict` of it can be written as JSON.

    Args:
        steps: kept steps.
        trajectories: how many.
        lengths: kept steps per trajectory.
        returns: of the kept steps, where all are finite; None without rewards.
        origins: by label, in the order they appear.
        observations: the states' dimensions.
        actions: the actions' dimensions; None for recordings of states only.
        duplicated_states: states that equal an earlier one in every number.
        at_bounds: None for recordings of states only.
        ends: None where ends are not marked.
        state_names: what the recording calls each number of a state; empty: it does not say.
        action_names: the same for actions.
        same_states: pairs of the states' dimensions that hold the same numbers in every step.
        remarks: what is odd, a line each: holes with their places, gaps in steps and times, rates that differ.
        training: what training would make of it, a line each.
    """

    steps: int
    trajectories: int
    lengths: Distribution
    returns: Distribution | None
    origins: dict[str, Origin]
    observations: Dimensions
    actions: Dimensions | None
    duplicated_states: int
    at_bounds: AtBounds | None
    ends: Ends | None
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    same_states: tuple[tuple[int, int], ...] = ()
    remarks: tuple[str, ...] = ()
    training: tuple[str, ...] = ()


def inspect(
    trajectories: Trajectories,
    action_low: Sequence[float] | None = None,
    action_high: Sequence[float] | None = None,
    survey: Survey | None = None,
) -> Inspection:
    """Look at all kept steps. Memory stays at a few megabytes and some numbers per step, whatever the arrays' width.

    Args:
        trajectories: what to look at.
        action_low: lower bound of each action; None: the recorded actions' own.
        action_high: upper bound.
        survey: what was found while reading it.
    """
    recording = trajectories.recording
    states, hashes = Moments(recording.observations.shape[1]), np.empty(trajectories.steps, dtype=np.uint64)
    for position, block in blocks(trajectories, recording.observations):
        states.add(block, position)
        hashes[position : position + len(block)] = _row_hashes(block)
    actions = at_bounds = None
    if recording.actions is not None:
        moments = Moments(recording.actions.shape[1])
        for position, block in blocks(trajectories, recording.actions):
            moments.add(block, position)
        actions = moments.dimensions(trajectories)
        at_bounds = _at_bounds(trajectories, recording.actions, actions, action_low, action_high)
    dimensions = states.dimensions(trajectories)
    return Inspection(
        steps=trajectories.steps,
        trajectories=len(trajectories),
        lengths=_distribution(trajectories.lengths),
        returns=_returns(trajectories),
        origins=_origins(trajectories),
        observations=dimensions,
        actions=actions,
        duplicated_states=trajectories.steps - _distinct(hashes),
        at_bounds=at_bounds,
        ends=_ends(trajectories),
        state_names=recording.state_names,
        action_names=recording.action_names,
        same_states=_same(trajectories, dimensions),
        remarks=tuple(survey.remarks) if survey else (),
        training=tuple(_training(trajectories, dimensions, actions, survey)),
    )


def _same(trajectories: Trajectories, found: Dimensions) -> tuple[tuple[int, int], ...]:
    """Pairs of dimensions with the same numbers everywhere. Only those of equal statistics need a closer look."""
    alike: dict[Any, list[int]] = {}
    for number, key in enumerate(zip(found.min, found.max, found.mean, found.std, strict=True)):
        if number not in found.constant and None not in key:
            alike.setdefault(key, []).append(number)
    pairs = [(group[0], other) for group in alike.values() for other in group[1:]]
    for _, block in blocks(trajectories, trajectories.recording.observations) if pairs else ():
        pairs = [(one, two) for one, two in pairs if np.array_equal(block[:, one], block[:, two], equal_nan=True)]
    return tuple(pairs)


def _training(
    trajectories: Trajectories, states: Dimensions, actions: Dimensions | None, survey: Survey | None
) -> Iterator[str]:
    """What `tailo train` would make of it."""
    width, count = len(states.min), len(trajectories)
    all_of_it = counted(count, "trajectory")
    yield f"as TS: {all_of_it} of {counted(trajectories.steps, 'state')} of {counted(width, 'number')}"
    if actions is None:
        yield "as TA: refused, no actions are recorded"
    elif count < 2:
        yield "as TA: refused, a single trajectory is recorded and at least 2 are needed"
    else:
        steps = counted(trajectories.steps, "step")
        yield f"as TA: {all_of_it} of {steps}, actions of {counted(len(actions.min), 'number')}"
    holes = sum(states.nan) + sum(states.infinite) + (sum(actions.nan) + sum(actions.infinite) if actions else 0)
    if holes:
        harmed = f"{counted(survey.harmed, 'step')} with one" if survey and survey.harmed else "steps with one"
        yield (
            f"refused because of numbers that are missing or not finite: {holes:,}; "
            f"source.drop_nan=true leaves out {harmed}"
        )
    if states.constant:
        yield f"{len(states.constant)} of {width} dimensions of the states are constant and say nothing: leave them out"


def _row_hashes(block: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row, equal for rows of equal numbers and, as good as surely, different for others."""
    if block.dtype.kind == "f":
        block = block + block.dtype.type(0)  # -0.0 equals 0.0, but not in its bytes
    block = np.ascontiguousarray(block)
    size = block[:1].nbytes
    words = np.zeros((len(block), -(-size // 8)), dtype=np.uint64)
    words.view(np.uint8).reshape(len(block), -1)[:, :size] = block.view(np.uint8).reshape(len(block), size)
    hashes = np.full(len(block), 0x9E3779B97F4A7C15, dtype=np.uint64)
    # Folded before multiplying, and not by half: the flipped signs of mirrored states, which sit in the top bits of
    # half-words, would stay there otherwise and cancel each other.
    before, factor, after = np.uint64(29), np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
    for word in words.T:
        hashes ^= word
        hashes ^= hashes >> before
        hashes *= factor
        hashes ^= hashes >> after
    return hashes


def _distinct(hashes: NDArray[np.uint64]) -> int:
    """How many different numbers there are. Sorts them in place."""
    hashes.sort()
    return 1 + int(np.count_nonzero(hashes[1:] != hashes[:-1]))


def _at_bounds(
    trajectories: Trajectories,
    actions: NDArray[Any],
    dimensions: Dimensions,
    given_low: Sequence[float] | None,
    given_high: Sequence[float] | None,
) -> AtBounds:
    given = given_low is not None and given_high is not None
    for bound in (given_low, given_high):
        if bound is not None and len(bound) != actions.shape[1]:
            raise UserError(f"action bounds: {len(bound)} given, expected {actions.shape[1]} as the actions have")
    low = np.array(given_low if given else dimensions.min, dtype=np.float64)
    high = np.array(given_high if given else dimensions.max, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        near = np.nan_to_num(AT_BOUND * (high - low), nan=0.0, posinf=0.0)
    count = np.zeros(len(low), dtype=np.int64)
    for _, block in blocks(trajectories, actions):
        count += np.count_nonzero((block <= low + near) | (block >= high - near), axis=0)
    return AtBounds(
        bounds="given" if given else "recorded",
        low=plain(low),
        high=plain(high),
        share=tuple((count / trajectories.steps).tolist()),
    )


def _distribution(values: NDArray[Any]) -> Distribution:
    least, lower, median, upper, most = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Distribution(least, lower, median, upper, most, float(values.mean()))


def _returns(trajectories: Trajectories) -> Distribution | None:
    if trajectories.recording.rewards is None:
        return None
    returns = trajectories.returns
    finite = returns[np.isfinite(returns)]
    return _distribution(finite) if len(finite) else None


def _origins(trajectories: Trajectories) -> dict[str, Origin]:
    labels, first, number = np.unique(trajectories.origins, return_index=True, return_inverse=True)
    counts = np.bincount(number, minlength=len(labels))
    steps = np.bincount(number, weights=trajectories.lengths, minlength=len(labels))
    return {str(labels[i]): Origin(int(counts[i]), int(steps[i])) for i in np.argsort(first)}


def _ends(trajectories: Trajectories) -> Ends | None:
    terminals, timeouts = trajectories.recording.terminals, trajectories.recording.timeouts
    if terminals is None and timeouts is None:
        return None
    last = trajectories.rows.at(trajectories.offsets[1:] - 1)
    nowhere = np.zeros(len(last), dtype=bool)
    terminal = nowhere if terminals is None else terminals[last].astype(bool)
    timeout = ~terminal & (nowhere if timeouts is None else timeouts[last].astype(bool))
    counts = int(terminal.sum()), int(timeout.sum())
    return Ends(*counts, neither=len(last) - sum(counts))
