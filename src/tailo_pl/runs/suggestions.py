"""What a run's own numbers and data speak for: alpha and gamma, beta_1, the head, the method.

Nothing is trained: other values of alpha and gamma weigh the stored scores anew, other values of beta_1 only choose
other safe negatives by them, and the rest is a look at TA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.config.compose import composed_config
from tailo_pl.config.experiment import Experiment, read_experiment
from tailo_pl.data.likeness import Followers, Sample, some_states
from tailo_pl.data.transitions import consecutive
from tailo_pl.errors import Refusal
from tailo_pl.inputs import SafeNegatives
from tailo_pl.inputs.weights import trajectory_weights
from tailo_pl.models.modes import two_ways
from tailo_pl.models.yardsticks import effective_number
from tailo_pl.runs.advice import AS_GOOD, Judged, stored_scores
from tailo_pl.runs.checks import check_parts
from tailo_pl.runs.folder import load_run, require_same_data
from tailo_pl.runs.measured import Measured, better_on_data, better_on_most, choice_of, cut_alike, like_setting
from tailo_pl.runs.verdict import BESIDE_BC, FEW_TRAJECTORIES, FOLLOWED
from tailo_pl.training.building import check_stages

ALPHA = (0.5, 1.25, 2.0, 4.0)
GAMMA = (0.0, 0.9, 0.98, 0.998)
BETA_1 = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
CLONES_ALL, WEIGHS = "bc", "tailo"  # methods that are advised by what TA holds
REWARDED = ("method=mopo", "method=morel")  # methods that need no expert
_MIXED_IN = 0.05  # of the safe negatives' steps in logs that go where TS goes, at most
_ALIKE = 0.9  # of TA in logs that go where TS goes, from which on all of it may be cloned
_TWO_WAYS = 0.2  # of the places, from which on one action a state is too little
_STEPS = 20_000  # of TA by their weight, whose actions are looked at


@dataclass(frozen=True)
class Choice:
    """Values of alpha and gamma, and what they make of a run's scores."""

    alpha: float
    gamma: float
    followed: float
    followed_at_first: float
    covered: float
    trajectories: float
    """that carry the weight"""

    @property
    def share(self) -> float:
        """Of the weight where TS goes, all of it or that of first steps: whichever is smaller."""
        return min(self.followed, self.followed_at_first)


@dataclass(frozen=True)
class Suggestion:
    """What to choose.

    Args:
        name: what is chosen.
        own: what the run has.
        why: what speaks for the choice, in words.
        override: what to add to the run's command; empty: nothing, its own is as good.
        stages: what would be trained anew.
    """

    name: str
    own: str
    why: str
    override: str = ""
    stages: tuple[str, ...] = ()


class Examined:
    """A finished run with its data, looked at once for all that is to be said of it."""

    def __init__(self, run: Judged) -> None:
        self.path, self.summary, self.beside_bc = run.path, run.summary, run.beside_bc
        self.experiment = load_run(run.path)
        require_same_data(run.path, self.experiment)
        self.task = self.experiment.task
        self.states = some_states(self.task.ts)
        self.sample = Sample.of(self.task.ta, dimensions=self.task.compared)
        self.followers = Followers(self.states, self.task.ta, self.sample)
        self.stages = tuple(self.experiment.stages)

    def choice(self, alpha: float, gamma: float) -> Choice:
        """What these values make of the scores."""
        ta, weights = self.task.ta, self.weights(alpha, gamma)
        shares = np.add.reduceat(weights, ta.offsets[:-1], dtype=np.float64)
        return Choice(
            alpha,
            gamma,
            self.followers.share(shares),
            self.followers.share(weights[ta.offsets[:-1]]),
            self.sample.weighted(ta, weights).covers(self.states),
            effective_number(shares),
        )

    def weights(self, alpha: float, gamma: float) -> NDArray[np.float32]:
        """Of the steps of TA, with these values."""
        made = self.experiment.weights
        assert made is not None
        return trajectory_weights(self._scores, self.task.ta.offsets, alpha=alpha, gamma=gamma, kind=made.kind)

    @cached_property
    def _scores(self) -> NDArray[Any]:
        assert self.experiment.weights is not None
        return stored_scores(self.path, self.experiment, self.experiment.weights.scores)


def choices(run: Examined) -> tuple[list[Choice], Choice, Choice]:
    """What other alphas and gammas would make of a run's scores.

    Returns:
        All of them, the run's own, and the advised one.
    """
    made = run.experiment.weights
    assert made is not None
    own = run.choice(made.alpha, made.gamma)
    grid = [(alpha, gamma) for alpha in ALPHA for gamma in GAMMA if (alpha, gamma) != (own.alpha, own.gamma)]
    everything = [own, *(run.choice(*values) for values in grid)]
    return everything, own, best(everything, own)


def best(everything: Sequence[Choice], own: Choice) -> Choice:
    """The choice with most of the weight where TS goes, carried by enough logs; the run's own unless another gains."""
    carried = [one for one in everything if one.trajectories >= FEW_TRAJECTORIES]
    most = max(carried or everything, key=lambda one: (one.share, one.covered, one.trajectories))
    enough = own.trajectories >= FEW_TRAJECTORIES or not carried
    return own if enough and most.share <= own.share + AS_GOOD else most


def suggestions(run: Examined, measured: Sequence[Measured]) -> Iterator[Suggestion]:
    """What is to be said of a run's beta_1, head and method.

    Args:
        run: a finished one.
        measured: what methods came to elsewhere.
    """
    yield from _of_beta_1(run)
    yield from _of_head(run)
    yield _of_method(run, measured)


def _of_beta_1(run: Examined) -> Iterator[Suggestion]:
    inputs = [(name, one) for name, stage in run.experiment.stages.items() for one in stage.inputs.values()]
    found = [(name, one) for name, one in inputs if isinstance(one, SafeNegatives)]
    if not found:
        return
    name, negatives = found[-1]
    ta, own = run.task.ta, negatives.beta_1
    means = ta.mean(stored_scores(run.path, run.experiment, negatives.scores))

    def mixed_in(beta_1: float) -> float:
        return run.followers.share(ta.lengths * (means < np.quantile(means, beta_1)))

    shares = {beta_1: mixed_in(beta_1) for beta_1 in {own, *BETA_1}}
    clean = [beta_1 for beta_1, share in shares.items() if share <= _MIXED_IN]
    why = f"{shares[own]:.0%} of the safe negatives' steps are in logs that go where TS goes"
    if own in clean:
        yield Suggestion("beta_1", f"{own:g}", why)
    elif not clean:
        yield Suggestion("beta_1", f"{own:g}", f"{why}, and hardly fewer with any other value")
    else:
        advised = max(clean)
        words = f"{why}; they would be {shares[advised]:.0%}"
        yield Suggestion("beta_1", f"{own:g}", words, f"method.beta_1={advised:g}", _from(run, name))


def _of_head(run: Examined) -> Iterator[Suggestion]:
    config, last = run.experiment.config, run.stages[-1]
    if config["method"]["stages"][last]["model"].get("head") != config["head"]:
        return  # the method has one of its own
    made, ta = run.experiment.weights, run.task.ta
    weights = np.ones(ta.steps, np.float32) if made is None else run.weights(made.alpha, made.gamma)
    share = two_ways(ta, run.sample.weighted(ta, weights, _STEPS))
    own = config["head"]["class_path"].rpartition(".")[2].lower()
    why = (
        "too few logs carry the weight to tell whether they act in several ways"
        if share is None
        else f"around {share:.0%} of the steps that carry the weight, logs act in two ways in the same place"
    )
    if share is not None and share >= _TWO_WAYS and own != "mixture":
        yield Suggestion("head", own, f"{why}, of which one action a state is the mean", "head=mixture", (last,))
    elif run.beside_bc > BESIDE_BC and own != "regression":
        error = f"its held-out error is {run.beside_bc:.0%} of that of cloning all of TA alike"
        yield Suggestion("head", own, error, "head=regression", (last,))
    else:
        yield Suggestion("head", own, why)


def _of_method(run: Examined, measured: Sequence[Measured]) -> Suggestion:
    ta, own, setting = run.task.ta, run.summary["method"], run.experiment.config["setting"]
    known_as = choice_of(measured, run.experiment.config["method"])
    alike = min(run.followers.share(ta.lengths), run.followers.share(np.ones(len(ta))))
    ordered = run.experiment.setting.ordered and len(consecutive(run.task.ts)) > 0
    here, words = _possible(run, measured, lambda rows: better_on_data(rows, run.summary, known_as) or ("", ""))
    if here:
        return Suggestion("method", own, words, here, _from(run))
    if not words:  # nothing was measured on this data
        better, why = _possible(run, measured, lambda rows: better_on_most(cut_alike(rows, setting), known_as))
        if better:
            return Suggestion("method", own, why, better, _from(run))
    goes = f"{alike:.0%} of TA goes where TS goes"
    if own == WEIGHS and alike >= _ALIKE:
        return Suggestion("method", own, f"{goes}: all of it may be cloned", f"method={CLONES_ALL}", _from(run))
    if own == CLONES_ALL and alike < FOLLOWED:
        return Suggestion("method", own, f"{goes}: TS should have a say", f"method={WEIGHS}", _from(run))
    if not words:
        better, words = _possible(
            run, measured, lambda rows: better_on_most(like_setting(rows, setting, ordered), known_as)
        )
        if better:
            return Suggestion("method", own, words, better, _from(run))
    return Suggestion("method", own, f"{goes}; {words}{_rewarded(run, measured)}")


def _rewarded(run: Examined, measured: Sequence[Measured]) -> str:
    """Which methods could learn from recorded rewards instead, of those that have not been tried on this data."""
    if run.summary["verdict"]["level"] == "good":
        return ""
    tried = {one.choice for one in measured if one.data == run.summary["data"]["recipe"]}
    left = [one for one in REWARDED if one not in {*tried, f"method={run.summary['method']}"}]
    left = [one for one in left if _can_train(run.experiment, one)]
    return f"; TA has rewards: {' and '.join(left)} would learn from these, without TS" if left else ""


def _possible(
    run: Examined, measured: Sequence[Measured], better: Callable[[Sequence[Measured]], tuple[str, str]]
) -> tuple[str, str]:
    """What is found to be better among the methods that can be trained on the run's data."""
    choice, words = better(measured)
    while choice and not _can_train(run.experiment, choice):
        measured = [one for one in measured if one.choice != choice]
        choice, words = better(measured)
    return choice, words


def _can_train(experiment: Experiment, choice: str) -> bool:
    """Whether the data and environment of an experiment have what a method needs: the expert's actions, rewards, ..."""
    config = {**experiment.config, "method": composed_config(choice.split())["method"]}
    try:
        other = read_experiment(config, experiment)
        check_stages(other)
        check_parts(other)
    except Refusal:
        return False
    return True


def _from(run: Examined, name: str = "") -> tuple[str, ...]:
    """The stages from one on; all of them."""
    return run.stages[run.stages.index(name) if name else 0 :]
