"""How well numbers without a simulator order runs by their true score. Pure functions of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.inputs.scores import ranks

Line = Mapping[str, Any]
REPLICATES = 1000


class Correlation(NamedTuple):
    """Rank correlation of a number with the score.

    Args:
        value: Spearman's, within groups and over all of them together; NaN where the number does not vary.
        low: lower end of its 95 % interval.
        high: upper end.
        by_group: Spearman's within each.
        tau: Kendall's, over pairs of the same group.
        runs: how many have the number.
    """

    value: float
    low: float
    high: float
    by_group: dict[str, float]
    tau: float
    runs: int

    @property
    def sure(self) -> bool:
        """Whether the interval is above 0."""
        return self.low > 0


def spearman(
    number: NDArray[np.float64],
    score: NDArray[np.float64],
    group: NDArray[np.int64],
    counts: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Correlation of ranks that are taken, and centred, within each group; NaN where either does not vary in any.

    Args:
        number: of each run.
        score: likewise.
        group: likewise.
        counts: how often each run counts in each replicate (replicates, runs); None: once in a single one.
    """
    often = np.ones((1, len(number))) if counts is None else counts.astype(np.float64)
    both = first = second = np.zeros(len(often))
    for one in np.unique(group):
        rows = group == one
        x, y = (ranks(values[rows]) / rows.sum() for values in (number, score))
        drawn = often[:, rows]
        total = np.maximum(drawn.sum(1), 1)
        middle_x, middle_y = drawn @ x / total, drawn @ y / total
        both = both + drawn @ (x * y) - total * middle_x * middle_y
        first = first + drawn @ (x * x) - total * middle_x**2
        second = second + drawn @ (y * y) - total * middle_y**2
    size = np.sqrt(np.maximum(first * second, 0.0))
    return np.divide(both, size, out=np.full(len(often), np.nan), where=size > 1e-9)


def kendall(number: NDArray[np.float64], score: NDArray[np.float64], group: NDArray[np.int64]) -> float:
    """Kendall's tau-b over pairs of the same group; NaN where either does not vary in any."""
    both = one_differs = other_differs = 0.0
    for one in np.unique(group):
        first, second = (np.sign(np.subtract.outer(of[group == one], of[group == one])) for of in (number, score))
        both += float((first * second).sum())
        one_differs, other_differs = one_differs + np.abs(first).sum(), other_differs + np.abs(second).sum()
    size = np.sqrt(one_differs * other_differs)
    return float(both / size) if size > 0 else float("nan")


def correlation(lines: Sequence[Line], number: Callable[[Line], float | None]) -> Correlation:
    """Of a number with the score, environments being the groups.

    The interval is that of a bootstrap over cells: runs of an environment with the same data and choices are drawn
    together, since they may share discriminators.
    """
    known = [(line, value) for line in lines if (value := number(line)) is not None]
    if not known:
        return Correlation(float("nan"), float("nan"), float("nan"), {}, float("nan"), 0)
    values = np.array([value for _, value in known])
    scores = np.array([line["score"] for line, _ in known])
    names = sorted({line["env"] for line, _ in known})
    group = np.array([names.index(line["env"]) for line, _ in known])
    cells = [(line["env"], line["data"], line["knob"]) for line, _ in known]
    rng = np.random.default_rng(0)
    counts = np.zeros((REPLICATES, len(known)), dtype=np.int64)
    for name in names:
        own = sorted({cell for cell in cells if cell[0] == name}, key=repr)
        drawn = rng.multinomial(len(own), [1 / len(own)] * len(own), REPLICATES)
        for at, cell in enumerate(own):
            counts[:, [row for row, other in enumerate(cells) if other == cell]] = drawn[:, [at]]
    replicates = spearman(values, scores, group, counts)
    finite = replicates[np.isfinite(replicates)]
    low, high = np.quantile(finite, [0.025, 0.975]) if len(finite) else (np.nan, np.nan)
    by_group = {
        name: float(spearman(*(part[group == at] for part in (values, scores, group)))[0])
        for at, name in enumerate(names)
    }
    return Correlation(
        float(spearman(values, scores, group)[0]),
        float(low),
        float(high),
        by_group,
        kendall(values, scores, group),
        len(known),
    )


class Regret(NamedTuple):
    """What a rule loses to the best of what it chooses from, in points of the score, over so many situations."""

    advised: float
    default: float
    random: float
    situations: int


def regret(situations: Iterable[Sequence[Line]], rule: Callable[[Line], Any], default: str) -> Regret:
    """Mean loss over situations of the candidate that a rule puts first, of the default, and of one drawn at random.

    Args:
        situations: runs to choose from that differ in nothing else; those with a single one, or without the default, do
            not count.
        rule: candidates are ordered by it, the smallest first; the default comes first among equals.
        default: the knob of the candidate that one would take without thinking.
    """
    losses = []
    for candidates in situations:
        usual = [line for line in candidates if line["knob"] == default]
        if len(candidates) < 2 or not usual:
            continue
        scores = [line["score"] for line in candidates]
        first = min(candidates, key=lambda line: (rule(line), line["knob"] != default))
        best = max(scores)
        losses.append((best - first["score"], best - usual[0]["score"], best - sum(scores) / len(scores)))
    advised, of_default, random = np.mean(losses, axis=0).tolist() if losses else [float("nan")] * 3
    return Regret(advised, of_default, random, len(losses))
