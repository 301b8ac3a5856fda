"""Likeness: whether TA visits what TS shows, judged by nearest neighbours. Estimated on a sample, whatever the size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Trajectories

TS_STATES, TA_STATES = 500, 50_000  # looked at, at most
NEAR = 2.0  # times TA's own spacing: up to there a state of TS counts as visited
_BLOCK = 1 << 22  # distances computed at a time
_TRAJECTORIES, _STEPS, _FOLLOWED = 200, 2000, 32  # of TA, of each of them, and states of TS to follow
_CONSTANT = 1e-8  # standard deviation up to which a dimension does not vary
_LEAST_SPACING = 0.05  # standard deviations of each dimension: logs that repeat themselves exactly are not closer

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """Some steps of TA, standardised by their own statistics, with how far they lie apart where each is.

    Args:
        states: (steps, dimensions), only dimensions that vary.
        positions: of the steps among all of TA's.
        trajectory: of each step.
        mean: of every dimension of TA.
        std: standard deviation of every dimension.
        spacing: half of the steps are at least so far from the next step of another trajectory.
    """

    states: NDArray[np.float32]
    positions: NDArray[np.int64]
    trajectory: NDArray[np.int64]
    mean: Numbers
    std: Numbers
    spacing: float

    @classmethod
    def of(cls, ta: Trajectories, count: int = TA_STATES, dimensions: Sequence[int] | None = None) -> Sample:
        """A sample of TA's steps, all alike.

        Args:
            ta: the trajectories.
            count: how many steps, at most.
            dimensions: numbers of a state that count; None: all.
        """
        rng = np.random.default_rng(0)
        positions = np.arange(ta.steps) if ta.steps <= count else np.sort(rng.choice(ta.steps, count, replace=False))
        states = _rows(ta, positions)
        std = states.std(0)
        if dimensions is not None:
            std[~np.isin(np.arange(len(std)), dimensions)] = 0.0  # as where TA does not vary
        nothing = np.empty(0, np.int64)
        bare = cls(np.empty((0, 0), np.float32), nothing, nothing, states.mean(0), std, 0.0)
        sample = bare._with(ta, positions)
        some = np.linspace(0, len(positions) - 1, min(TS_STATES, len(positions))).astype(np.int64)
        own = sample.trajectory[some]
        distances, _ = nearest(sample.states[some], sample.states, own, sample.trajectory)
        known = distances[np.isfinite(distances)]
        least = _LEAST_SPACING * np.sqrt(sample.states.shape[1])
        return replace(sample, spacing=float(max(np.median(known) if len(known) else 0.0, least)))

    def weighted(self, ta: Trajectories, weights: NDArray[Any], count: int = TA_STATES) -> Sample:
        """Steps of TA drawn in proportion to their weights instead, measured as all of TA is."""
        edges = np.cumsum(weights, dtype=np.float64)
        drawn = np.random.default_rng(0).uniform(0, edges[-1], min(count, ta.steps))
        return self._with(ta, np.unique(np.minimum(np.searchsorted(edges, drawn, side="right"), ta.steps - 1)))

    def _with(self, ta: Trajectories, positions: NDArray[np.int64]) -> Sample:
        trajectory = np.searchsorted(ta.offsets, positions, side="right") - 1
        states = self.standardised(_rows(ta, positions))
        return replace(self, states=states, positions=positions, trajectory=trajectory)

    @property
    def varying(self) -> NDArray[np.bool_]:
        """The dimensions in which TA varies."""
        return np.asarray(self.std > _CONSTANT)

    def standardised(self, states: NDArray[Any]) -> NDArray[np.float32]:
        """States in units of TA's standard deviations, without the dimensions in which TA does not vary."""
        moved = (states[:, self.varying] - self.mean[self.varying]) / self.std[self.varying]
        return np.clip(moved, -1e6, 1e6).astype(np.float32)

    def ratios(self, states: NDArray[Any]) -> Numbers:
        """How far each state is from the sample, in units of the sample's own spacing where the nearest step is."""
        queries = self.standardised(states)
        if not queries.shape[1]:
            return np.zeros(len(queries))
        return np.asarray(nearest(queries, self.states)[0] / np.maximum(self.around(queries), self.spacing))

    def around(self, queries: NDArray[np.float32]) -> Numbers:
        """TA's own spacing where each of these standardised states is: from the nearest step to the next beside it."""
        _, at = nearest(queries, self.states)
        beside, _ = nearest(self.states[at], self.states, self.trajectory[at], self.trajectory)
        return np.asarray(
            np.maximum(np.where(np.isfinite(beside), beside, 0.0), _LEAST_SPACING * np.sqrt(self.states.shape[1]))
        )

    def covers(self, states: NDArray[Any]) -> float:
        """Share of the states that the sample comes near."""
        return float((self.ratios(states) <= NEAR).mean())


def some_states(trajectories: Trajectories, count: int = TS_STATES) -> NDArray[np.float64]:
    """States spread evenly over all kept steps."""
    steps = trajectories.steps
    return _rows(trajectories, np.unique(np.linspace(0, steps - 1, min(count, steps)).astype(np.int64)))


def nearest(
    queries: NDArray[np.float32],
    points: NDArray[np.float32],
    own: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
) -> tuple[Numbers, NDArray[np.int64]]:
    """Distance to the nearest point and which it is; points of a query's own group do not count.

    Brute force: states have too many dimensions for a tree to gain anything.
    """
    distances, found = np.empty(len(queries)), np.empty(len(queries), dtype=np.int64)
    squares = np.einsum("ij,ij->i", points, points)
    size = max(1, _BLOCK // len(points))
    for begin in range(0, len(queries), size):
        part = queries[begin : begin + size]
        away = squares - 2 * part @ points.T  # without the query's own square, which changes no order
        if own is not None and groups is not None:
            away[own[begin : begin + size, None] == groups[None, :]] = np.inf
        at = away.argmin(1)
        # Anew from the difference: of large numbers that are nearly the same, the formula above leaves nothing.
        exact = np.sqrt(np.square(part.astype(np.float64) - points[at]).sum(1))
        distances[begin : begin + size] = np.where(np.isinf(away[np.arange(len(part)), at]), np.inf, exact)
        found[begin : begin + size] = at
    return distances, found


def _rows(trajectories: Trajectories, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(trajectories.recording.observations[trajectories.rows.at(positions)], dtype=np.float64)


class Followers:
    """Trajectories of TA that go where TS goes: they come near at least half of some of its states.

    Each is looked at when it is first asked for, and only then.

    Args:
        ts: states of TS.
        ta: the trajectories.
        sample: of TA, with what near means.
    """

    def __init__(self, ts: NDArray[Any], ta: Trajectories, sample: Sample) -> None:
        some = ts[np.linspace(0, len(ts) - 1, min(_FOLLOWED, len(ts))).astype(np.int64)]
        self._ta, self._sample = ta, sample
        self._queries = sample.standardised(some)
        self._near = NEAR * sample.around(self._queries)
        self._known: dict[int, bool] = {}

    def share(self, shares: NDArray[Any]) -> float:
        """How much of what trajectories have shares in is theirs, estimated on trajectories drawn by their shares.

        Args:
            shares: of each trajectory.
        """
        whole = shares.sum(dtype=np.float64)
        if not whole > 0:
            return 0.0
        drawn = np.random.default_rng(0).choice(len(shares), _TRAJECTORIES, p=shares.astype(np.float64) / whole)
        chosen, counts = np.unique(drawn, return_counts=True)
        return float(np.average([self._follows(number) for number in chosen.tolist()], weights=counts))

    def _follows(self, number: int) -> bool:
        if number not in self._known:
            states = self._sample.standardised(some_states(self._ta.take([number]), _STEPS))
            self._known[number] = bool((nearest(self._queries, states)[0] <= self._near).mean() >= 0.5)
        return self._known[number]
