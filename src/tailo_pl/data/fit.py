"""Whether TS and TA fit together: does TA visit what TS shows, in the same units and at the same pace?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.likeness import NEAR, Sample, some_states
from tailo_pl.data.mistakes import Mistake, likely_mistake
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

_ENOUGH = 0.8  # of TS's states visited by TA: worth no remark, and what undoing a mistake must bring
_NONE = 0.1  # so few that something is wrong where a mistake explains it
_FAR = 10.0  # times TA's own spacing: where all of TS is farther away, there is nothing to learn from
_LEAST_STEPS, _LEAST_TRAJECTORIES = 100, 3  # of TA, below which its spacing says nothing
_PAIRS = 20_000  # of consecutive states looked at
_FEW_PAIRS = 10


def check_fit(task: Task, *, trust: bool) -> list[str]:
    """What is odd, a line each.

    Args:
        task: TS and TA, finite.
        trust: say what would be refused, and go on.
    """
    ts, ta = task.ts, task.ta
    if ta.steps < _LEAST_STEPS or len(ta) < _LEAST_TRAJECTORIES:
        return []
    sample, states = Sample.of(ta, dimensions=task.compared), some_states(ts)
    ratios = sample.ratios(states)
    covered = float((ratios <= NEAR).mean())
    lines = list(_other_pace(ts, ta, sample))
    if covered >= _ENOUGH:
        return lines
    mistake = likely_mistake(states, sample)
    if mistake is not None and mistake.covered < max(_ENOUGH, 2 * covered):
        mistake = None
    line = _unvisited(covered, ratios, mistake)
    meaningless = (mistake is not None and mistake.decisive and covered <= _NONE) or ratios.min() > _FAR
    if meaningless and not trust:
        raise UserError(f"{line}; source.trust=true trains on it all the same")
    return [line, *lines]


def _unvisited(covered: float, ratios: NDArray[np.float64], mistake: Mistake | None) -> str:
    line = (
        f"TS: TA comes near {covered:.0%} of its states, expected most (half are farther than "
        f"{np.median(ratios):.3g} times TA's own spacing, the nearest {ratios.min():.3g})"
    )
    if mistake is None:
        return f"{line}: do the logs show what TS shows, with the same numbers in the same order?"
    doubt = "is that so" if mistake.changes == 1 else "is that so, or do the logs not show what TS shows"
    return f"{line}; it would be {mistake.covered:.0%} if TS had {mistake.words}: {doubt}?"


def _other_pace(ts: Trajectories, ta: Trajectories, sample: Sample) -> Iterator[str]:
    """Where the clock of neither is known, how far a step goes tells a sampling rate that is quite another."""
    expert, usual = _paces(ts, sample), _paces(ta, sample)
    if len(expert) < _FEW_PAIRS or len(usual) < _FEW_PAIRS:
        return
    pace, middle, fast = np.median(expert), *np.quantile(usual, [0.5, 0.99])
    if pace > fast:  # the other way round tells nothing: an expert may well rest
        yield (
            f"TS: a step goes {pace:.3g} of TA's standard deviations, where 99% of TA's go less than {fast:.3g} and "
            f"half less than {middle:.3g}: recorded at another rate, or in no order?"
        )


def _paces(trajectories: Trajectories, sample: Sample) -> NDArray[np.float64]:
    """How far steps go, in TA's standard deviations."""
    inside = np.ones(trajectories.steps, dtype=bool)
    inside[trajectories.offsets[1:] - 1] = False
    begins = np.flatnonzero(inside)
    begins = begins[:: 1 + len(begins) // _PAIRS]
    here, there = (
        sample.standardised(trajectories.recording.observations[trajectories.rows.at(positions)])
        for positions in (begins, begins + 1)
    )
    return np.asarray(np.sqrt(np.square(there - here, dtype=np.float64).sum(1)))
