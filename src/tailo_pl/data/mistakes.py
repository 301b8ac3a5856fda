"""Mistakes that TS and TA show when they do not fit: units, signs, the order of dimensions and offsets.

Each is tried on TS: what brings its states to where TA has been is what went wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from tailo_pl.data.likeness import NEAR, Sample, nearest

UNITS = {
    180 / math.pi: "degrees where TA has radians",
    math.pi / 180: "radians where TA has degrees",
    1000.0: "thousandths of TA's unit (mm for m, ms for s)",
    0.001: "a thousand times TA's unit (m for mm, s for ms)",
    100.0: "hundredths of TA's unit (cm for m, percent)",
    0.01: "a hundred times TA's unit (m for cm)",
}
_TS_STATES, _TA_STATES = 32, 2000  # of the search; what it finds is judged on more
_WIDEST = 40  # dimensions up to which single ones are tried
_BINS = 50
_AS_GOOD = 0.1  # of TS's states covered: less tells two explanations not apart
_RARE = 0.01  # of TA's steps: beyond these at each end a number of TS is one that TA does not have
_AS_CLOSE = 1.25  # times as far away: more tells two explanations apart
_AT_HOME = 0.1  # of TA's own spacing: both are this near, and nearness tells them not apart
_FREE = 3  # changes that a free number counts as: it explains more than a sign or a unit does, whatever happened
_LISTED = 8

Numbers = NDArray[np.float64]
Away = Callable[[Numbers], float]


@dataclass(frozen=True, eq=False)
class Mistake:
    """What may have happened to TS.

    Args:
        words: as people say it.
        changes: how many things went wrong, one for what all dimensions have in common.
        covered: share of TS's states that TA comes near once it is undone.
        away: how far half of them then are from TA, in units of TA's own spacing.
        decisive: whether nothing else is likely to look like it.
    """

    words: str
    changes: int
    covered: float
    away: float
    decisive: bool = True


def likely_mistake(states: Numbers, sample: Sample) -> Mistake | None:
    """The mistake that explains best why these states of TS are not where TA has been; None: none can.

    Args:
        states: some of TS.
        sample: of TA.
    """
    some = states[np.linspace(0, len(states) - 1, min(_TS_STATES, len(states))).astype(np.int64)]
    points = sample.states[:: max(1, len(sample.states) // _TA_STATES)]
    columns = sample.mean + np.zeros((len(points), len(sample.mean)))
    columns[:, sample.varying] += points * sample.std[sample.varying]

    def away(tried: Numbers) -> float:
        return float(np.median(nearest(sample.standardised(tried), points)[0]))

    found = []
    for words, changes, undo, decisive in _tries(some, columns, sample, away):
        ratios = sample.ratios(undo(states))
        found.append(Mistake(words, changes, float((ratios <= NEAR).mean()), float(np.median(ratios)), decisive))
    if not found:
        return None
    best = max(one.covered for one in found)
    explaining = [one for one in found if one.covered >= best - _AS_GOOD]
    # Where TA is wide, much that is wrong is near enough; what really happened brings TS as near as TA's own logs are.
    closest = min(one.away for one in explaining)
    near = [one for one in explaining if one.away <= max(_AS_CLOSE * closest, _AT_HOME)]
    return min(near, key=lambda one: (one.changes, one.away))


def _tries(
    some: Numbers, columns: Numbers, sample: Sample, away: Away
) -> Iterator[tuple[str, int, Callable[[Numbers], Numbers], bool]]:
    """What each is, how many things went wrong, how it is undone, and whether it is decisive."""
    varying, ones = np.flatnonzero(sample.varying), np.ones(some.shape[1])
    usual = np.quantile(np.abs(some), 0.95, axis=0) / np.maximum(np.abs(columns).max(0), 1e-12)
    for factor, unit in UNITS.items():
        divided = np.where(np.isin(np.arange(len(ones)), varying), 1 / factor, 1.0)
        searched = (_searched(start, ones, divided, varying, lambda by: away(some * by)) for start in (divided, ones))
        for scale in (divided, *searched):
            chosen = scale != 1
            # Divided by enough, any numbers are near TA's middle: what is left must still be numbers of TA's size.
            if chosen.any() and np.median(usual[chosen] / factor) >= min(1.0, factor**-0.5):
                changes = 1 if chosen[varying].all() else int(chosen.sum())
                yield f"{unit} in {_which(chosen[varying], varying)}", changes, partial(np.multiply, scale), True
    likelier = [_unlikely(-some[:, at], columns[:, at]) < _unlikely(some[:, at], columns[:, at]) for at in varying]
    marginal = ones.copy()
    marginal[varying[np.array(likelier, dtype=bool)]] = -1
    start = min((ones, marginal), key=lambda by: away(some * by))
    signs = _searched(start, ones, -ones, varying, lambda by: away(some * by))
    if (signs < 0).any():
        chosen = signs[varying] < 0
        words = f"the other sign in {_which(chosen, varying)}"
        yield words, 1 if chosen.all() else int(chosen.sum()), partial(np.multiply, signs), True
    order, moved_on = _order(some, columns, varying, away)
    if (chosen := order != np.arange(len(order))).any():
        words = f"another order of {_which(chosen[varying], varying)}"
        yield words, 1 if moved_on else int(chosen.sum()), lambda states: np.asarray(states[:, order]), True
    offset = _offset(some, columns, sample, varying)
    if (chosen := offset != 0).any():
        words = f"an offset in {_which(chosen[varying], varying)}"
        yield words, _FREE * int(chosen.sum()), partial(np.add, offset), False


def _offset(some: Numbers, columns: Numbers, sample: Sample, varying: NDArray[np.int64]) -> Numbers:
    """What to add to TS where half of it is outside nearly all of TA, to be as the steps of TA that are nearest in the
    other dimensions."""
    middle, offset = np.median(some, axis=0), np.zeros(some.shape[1])
    low, high = np.quantile(columns, [_RARE, 1 - _RARE], axis=0)
    outside = sample.varying & ((middle < low) | (middle > high))
    inside = varying[~outside[varying]]
    if outside.any() and len(inside):
        queries, points = ((part[:, inside] / sample.std[inside]).astype(np.float32) for part in (some, columns))
        _, at = nearest(queries, points)
        offset[outside] = np.median(columns[at] - some, axis=0)[outside]
    return offset


def _searched(start: Numbers, one: Numbers, other: Numbers, dimensions: NDArray[np.int64], away: Away) -> Numbers:
    """Change one dimension after the other from one to the other, and keep what is nearer."""
    best, least = start, away(start)
    for at in (*dimensions, *dimensions) if len(dimensions) <= _WIDEST else ():
        tried = best.copy()
        tried[at] = other[at] if best[at] == one[at] else one[at]
        if (distance := away(tried)) < least:
            best, least = tried, distance
    return best


def _order(some: Numbers, columns: Numbers, varying: NDArray[np.int64], away: Away) -> tuple[NDArray[np.int64], bool]:
    """Which dimension of TS is which of TA's: moved on, turned round, or as TA's numbers make likely; then by pairs.

    Returns:
        The order, and whether all are moved on or turned round alike.
    """
    width = some.shape[1]
    straight = np.arange(width)
    cost = np.array([[_unlikely(some[:, ts], columns[:, ta]) for ts in varying] for ta in varying])
    likeliest = straight.copy()
    likeliest[varying] = varying[linear_sum_assignment(cost)[1]]
    starts = [*(np.roll(straight, places) for places in range(width)), straight[::-1], likeliest]
    best = min(starts, key=lambda order: away(some[:, order]))
    least = away(some[:, best])
    for one, other in combinations(varying, 2) if len(varying) <= _WIDEST else ():
        tried = best.copy()
        tried[[one, other]] = best[[other, one]]
        if (distance := away(some[:, tried])) < least:
            best, least = tried, distance
    return best, any(np.array_equal(best, start) for start in starts[:-1])


def _unlikely(values: Numbers, column: Numbers) -> float:
    """Mean of -log of how often a dimension of TA has numbers as these."""
    low, high = float(column.min()), float(column.max())
    if low == high:
        return 0.0 if np.abs(values - low).max() <= 1e-6 * max(1.0, abs(low)) else math.log(2.0 * len(column))
    counts, edges = np.histogram(column, bins=_BINS, range=(low, high))
    inside = (values >= low) & (values <= high)
    at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, _BINS - 1)
    shares = np.where(inside, counts[at], 0.0) / len(column)
    return float(-np.log(shares + 0.5 / len(column)).mean())


def _which(chosen: NDArray[np.bool_], dimensions: NDArray[np.int64]) -> str:
    if chosen.all():
        return "all dimensions"
    numbers = dimensions[chosen].tolist()
    listed = ", ".join(map(str, numbers[:_LISTED])) + (", ..." if len(numbers) > _LISTED else "")
    return f"{len(numbers)} of {len(dimensions)} dimensions ({listed})"
