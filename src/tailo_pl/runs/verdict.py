"""The verdict on a run: what its own numbers say of it without a simulator, in words.

docs/verdict.md says what each number is and what has been measured of it. AUROC is not among them: it is best where the
data is worst.
Without torch: what only shows runs starts without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tailo_pl.errors import one_line
from tailo_pl.runs.summary import Data, Failure, VerdictPart, stated_numbers

COVERED = 0.5  # of TS's states near what carries the weight, at least
FOLLOWED = 0.5  # of the weight in logs that go where TS goes, at least
FOLLOWED_AT_FIRST = 0.33  # of the weight of first steps, at least
REACH = 0.6  # of the way from TA's mean score to TS's that TA's best steps come, at least
FEW_TRAJECTORIES = 2.5  # that carry the weight: fewer are too little to learn from
EXPLAINED = 0.1  # of the held-out actions' variance, at least
BESIDE_BC = 1.05  # times the held-out error of cloning all of TA alike, at most

NAMES = {  # in the order in which they are shown
    "followed": "share of the weight in logs that go where TS goes",
    "followed_at_first": "the same of the weight that first steps have",
    "covered": "share of TS's states near what carries the weight",
    "ta_trajectories": "logs taken for the expert's (mean score above 0)",
    "reach": "how far TA's best steps come from TA's mean score to TS's (1: all the way)",
    "effective_trajectories": "logs that carry the weight",
    "effective_steps": "steps that carry the weight",
    "held_out_error": "squared error of held-out actions",
    "held_out_mean": "the same of their weighted mean, as a yardstick",
    "held_out_bc": "the same of cloning all of TA alike, as a yardstick",
}


def in_words(name: str, value: float) -> str:
    """One of the numbers as it is shown."""
    if name in ("followed", "followed_at_first", "covered"):
        return f"{value:.0%}"
    whole = name in ("ta_trajectories", "effective_steps") or value >= 100
    return f"{value:,.0f}" if whole else f"{value:.3g}"


def judge(stages: Sequence[Mapping[str, Any]], data: Data, failure: Failure | None, method: str) -> VerdictPart:
    """What is to be thought of a run.

    Args:
        stages: `stage` and `quality` of each, in order.
        data: what it learnt from.
        failure: where it ended in a numerical error.
        method: its name.
    """
    numbers = _numbers(stages, data["ta"]["trajectories"])
    level, text = next(_findings(numbers, data["ta"]["trajectories"], failure, method))
    return {"level": level, "text": text, "numbers": numbers}


def _numbers(stages: Sequence[Mapping[str, Any]], trajectories: int) -> dict[str, float]:
    """Those of the last discriminator and of the policy, by name."""
    found = stated_numbers(stages)
    if "ta_share" in found:
        found["ta_trajectories"] = round(found["ta_share"] * trajectories)
    if "held_out_error" not in found:  # yardsticks of nothing
        found = {name: value for name, value in found.items() if not name.startswith("held_out")}
    return {name: found[name] for name in NAMES if name in found}


def _findings(
    numbers: Mapping[str, float], trajectories: int, failure: Failure | None, method: str
) -> Iterator[tuple[str, str]]:
    """What there is to say, the worst first; the first holds."""
    if failure:
        yield "bad", f"stage {one_line(failure['stage'])} ended in a numerical error at step {failure['step']}"
    scored, covered, followed = "reach" in numbers, numbers.get("covered"), numbers.get("followed")
    unlike = (
        "TS looks unlike anything in TA: check units, the order of the numbers and whether the logs show what TS shows"
    )
    if covered is not None and covered < COVERED:
        yield "bad", f"{unlike} ({covered:.0%} of TS's states are near what carries the weight)"
    if scored and numbers["reach"] < REACH and numbers.get("ta_trajectories") == 0:
        yield (
            "bad",
            (
                f"{unlike} (none of {trajectories:,} logs is taken for the expert's, and the best steps come "
                f"{numbers['reach']:.0%} of the way)"
            ),
        )
    if followed is None:
        yield "unknown", f"method {method} tells nothing by which it can be judged without trials"
    elif followed < FOLLOWED and not scored:
        yield "bad", f"clones all of TA alike, {followed:.0%} of which goes where TS goes: TS has no say in it"
    elif followed < FOLLOWED:
        yield "doubtful", f"only {followed:.0%} of the weight is in logs that go where TS goes"
    at_first = numbers.get("followed_at_first", 1.0)
    if at_first < FOLLOWED_AT_FIRST:
        yield (
            "doubtful",
            (
                f"where logs begin, only {at_first:.0%} of the weight is in logs that go where TS goes: a policy may "
                "take another way at once"
            ),
        )
    carry = numbers.get("effective_trajectories", 0.0)
    if carry < FEW_TRAJECTORIES:
        yield "doubtful", f"too little data carries the weight: {carry:.1f} of {trajectories:,} logs"
    error, usual = numbers.get("held_out_error"), numbers.get("held_out_mean")
    if error is not None and usual is not None and error > (1 - EXPLAINED) * usual:
        yield (
            "doubtful",
            (
                f"held-out actions are predicted hardly better than by their mean (error {error:.3g}, of the mean "
                f"{usual:.3g})"
            ),
        )
    alike = numbers.get("held_out_bc")
    if scored and error is not None and alike is not None and error > BESIDE_BC * alike:
        yield (
            "doubtful",
            (
                f"held-out actions are predicted worse than by cloning all of TA alike (error {error:.3g}, of that "
                f"{alike:.3g}): longer training, or another head?"
            ),
        )
    if scored:
        yield "good", f"learnt what TS shows from {carry:.0f} of {trajectories:,} logs"
    yield "good", f"clones all {trajectories:,} logs, {followed or 0:.0%} of which go where TS goes"
