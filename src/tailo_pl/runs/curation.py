"""Curation: a pile of logs ranked by what the expert's states say, through a run's discriminator."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range
from tailo_pl.models import PUDiscriminator
from tailo_pl.runs import scoring
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.trained import load_module

Verdict = Literal["expert-like", "useful parts", "harmful or unrelated"]
EXPERT_QUANTILE = 0.1
_SHORTEST = 0.05  # of an episode: what counts as a part of it


@dataclass(frozen=True)
class Curation:
    """What the expert's states say of each episode.

    Args:
        level: R that nine of ten of the expert's own states reach: from here on a state counts as like the expert's.
        fair: share of the weight that an episode would have if every step weighed the same.
        scores: R and W of every step.
        mean_score: mean R of each episode.
        share: each episode's part of all weight.
        begin: first step of its best segment, the one whose R exceeds the level by the most in sum.
        end: behind the last step of that segment; equal to `begin` where no state reaches the level.
        verdicts: by these thresholds.
    """

    level: float
    fair: NDArray[np.float64]
    scores: scoring.Scores
    mean_score: NDArray[np.float64]
    share: NDArray[np.float64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    verdicts: list[Verdict]

    @property
    def ranking(self) -> NDArray[np.int64]:
        """The episodes from the largest share of the weight to the smallest."""
        return np.argsort(-self.share, kind="stable")

    def kept(self, keep: float | None, min_share: float | None) -> NDArray[np.bool_]:
        """Which episodes are kept: this part of them, the best ones, or all with at least this share of the weight."""
        if keep is not None and min_share is not None:
            raise UserError("--keep, --min-share: both given, expected one of them")
        if keep is not None:
            require_range("--keep", keep, 0, 1, closed="(]")
            best = self.ranking[: max(1, round(keep * len(self.share)))]
            return np.isin(np.arange(len(self.share)), best)
        if min_share is not None:
            require_range("--min-share", min_share, 0, 1, closed="[]")
            marks: NDArray[np.bool_] = self.share >= min_share
            if not marks.any():
                raise UserError(f"--min-share: {min_share} given, but the largest share is {self.share.max():.4g}")
            return marks
        return np.ones(len(self.share), dtype=bool)

    def columns(self, logs: Trajectories, episodes: NDArray[np.int64], kept: NDArray[np.bool_]) -> dict[str, Any]:
        """The table, a row per episode, best first."""
        order = self.ranking
        return {
            "origin": logs.origins[order].tolist(),
            "episode": episodes[order],
            "steps": logs.lengths[order],
            "mean_score": self.mean_score[order],
            "weight_share": self.share[order],
            "best_begin": self.begin[order],
            "best_end": self.end[order],
            "verdict": [self.verdicts[number] for number in order],
            "kept": kept[order],
        }


def curate(run_dir: Path, logs: Trajectories) -> Curation:
    """Judge logs by a run: its discriminator's scores, with the scores of its own TS as the measure."""
    scores = scoring.score(run_dir, logs)
    experiment = load_run(run_dir)
    assert experiment.weights is not None  # or scoring would have refused
    discriminator = load_module(run_dir, experiment.weights.scores, PUDiscriminator)
    level = float(np.quantile(discriminator.scores(experiment.task.ts), EXPERT_QUANTILE))
    total = float(scores.weight.sum(dtype=np.float64))
    share = np.add.reduceat(scores.weight, logs.offsets[:-1], dtype=np.float64) / total
    begin, end = best_segments(scores.score - level, logs.offsets)
    return Curation(
        level,
        logs.lengths / logs.steps,
        scores,
        logs.mean(scores.score),
        share,
        begin,
        end,
        _verdicts(scores.score, logs, level, share, end - begin),
    )


def best_segments(values: NDArray[Any], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each trajectory the steps [begin, end) with the largest sum of values; empty where none is above 0.

    With sums S from the trajectory's start, it is the largest S_end - S_begin over begin <= end.
    """
    begins, ends = np.zeros(len(offsets) - 1, dtype=np.int64), np.zeros(len(offsets) - 1, dtype=np.int64)
    for number, (first, last) in enumerate(pairwise(offsets.tolist())):
        sums = np.concatenate([[0.0], np.cumsum(values[first:last], dtype=np.float64)])
        end = int(np.argmax(sums - np.minimum.accumulate(sums)))
        begins[number], ends[number] = int(np.argmin(sums[: end + 1])), end
    return begins, ends


def _verdicts(
    scores: NDArray[Any], logs: Trajectories, level: float, share: NDArray[np.float64], segment: NDArray[np.int64]
) -> list[Verdict]:
    """Like the expert: at least half of the states reach the level. Useful: some segment does, or the episode weighs
    at least what its length would."""
    reaching = logs.mean((scores >= level).astype(np.float32))
    fair = logs.lengths / logs.steps
    useful = (segment >= np.maximum(2, _SHORTEST * logs.lengths)) | (share >= fair)
    return [
        "expert-like" if like >= 0.5 else "useful parts" if part else "harmful or unrelated"
        for like, part in zip(reaching.tolist(), useful.tolist(), strict=True)
    ]
