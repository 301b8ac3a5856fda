"""What `tailo advise` shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from tailo_pl.runs.advice import Judged, Told
from tailo_pl.runs.suggestions import Choice, Suggestion
from tailo_pl.runs.trials import Candidate
from tailo_pl.screen import console, show


def show_order(runs: Sequence[Judged], order: Sequence[Candidate]) -> None:
    """The runs in the order in which they are worth trying."""
    by_path = {str(run.path): run for run in runs}
    table = Table(title="which to try first")
    for column in ("run", "verdict", "where TS goes", "held-out", "trials", "expected"):
        table.add_column(column, justify="left" if column in ("run", "verdict") else "right", overflow="fold")
    for one in order:
        run = by_path[one.run]
        numbers = run.summary["verdict"]["numbers"]
        share = numbers.get("followed")
        table.add_row(
            escape(one.run),
            escape(run.summary["verdict"]["level"]),
            "" if share is None else f"{share:.0%}",
            f"{run.beside_bc:.0%} of BC's",
            f"{one.successes:g} of {one.trials:g}" if one.trials else "",
            f"{one.mean:.0%}",
        )
    show(table)
    for run in runs:
        console().print(f"{run.path}: {run.summary['verdict']['text']}", highlight=False, markup=False, soft_wrap=True)
    console().print(
        f"try {order[0].run} next, and tell: tailo advise ... --trial {order[0].run}=1 (or 0)",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def show_agreement(one: Path, other: Path, correlation: float | None) -> None:
    """How far two runs' discriminators rank the logs alike."""
    if correlation is not None:
        line = f"{one} and {other} rank the logs alike to {correlation:.2f} (Spearman)"
        console().print(line, highlight=False, markup=False, soft_wrap=True)


def show_told(told: Sequence[Told]) -> None:
    """Which of what the runs differ in their numbers speak for."""
    for one in told:
        line = (
            f"{one.name}: {one.values[0]} rather than {', '.join(one.values[1:])} ({one.why})"
            if one.why
            else f"{one.name}: {', '.join(one.values)} are not told apart by these numbers"
        )
        console().print(line, highlight=False, markup=False, soft_wrap=True)


def show_checkpoint(run: Judged) -> None:
    """Which checkpoint a run kept, and by what."""
    last = run.summary["stages"][-1]
    why = "by held-out error" if last["chosen_step"] != last["steps"] else "the last one"
    line = f"checkpoint of {run.path}: step {last['chosen_step']:,} of {last['steps']:,}, {why}"
    console().print(line, highlight=False, markup=False, soft_wrap=True)


def show_choices(run_dir: Path, everything: Sequence[Choice], own: Choice, advised: Choice) -> None:
    """What other values of alpha and gamma would do."""
    table = Table(title=f"the weights of {escape(str(run_dir))} with other values; nothing is trained for this")
    for column in ("alpha", "gamma", "weight where TS goes", "at first", "TS covered", "logs that carry it", ""):
        table.add_column(column, justify="right")
    for one in everything:
        mark = " and ".join(name for name, this in (("own", own), ("advised", advised)) if one is this)
        shares = (f"{one.followed:.0%}", f"{one.followed_at_first:.0%}", f"{one.covered:.0%}")
        table.add_row(f"{one.alpha:g}", f"{one.gamma:g}", *shares, f"{one.trajectories:.1f}", mark)
    show(table)
    line = (
        "its own are as good as any of these"
        if advised is own
        else f"{advised.alpha:g} and {advised.gamma:g} rather than {own.alpha:g} and {own.gamma:g}: "
        f"{advised.followed:.0%} of the weight would be where TS goes instead of {own.followed:.0%}, and "
        f"{advised.followed_at_first:.0%} of it where logs begin instead of {own.followed_at_first:.0%}"
    )
    console().print(f"alpha and gamma: {line}", highlight=False, markup=False, soft_wrap=True)


def show_suggestions(found: Sequence[Suggestion]) -> None:
    """What speaks for other values than a run's, or for its own."""
    for one in found:
        chosen = f"{one.override} rather than {one.own}" if one.override else f"{one.own} as it is"
        console().print(f"{one.name}: {chosen} ({one.why})", highlight=False, markup=False, soft_wrap=True)


def show_next(found: Sequence[Suggestion], weights: Choice | None, stages: Sequence[str]) -> None:
    """What to run next, and what of it is there already.

    Args:
        found: what is suggested.
        weights: other values of alpha and gamma, where they are advised.
        stages: of the run, in order.
    """
    changed = [one for one in found if one.override]
    whole = [one for one in changed if one.name == "method"]  # beside which the rest means nothing
    overrides = [one.override for one in whole or changed]
    anew = {stage for one in whole or changed for stage in one.stages}
    if weights is not None and not whole:
        overrides = [f"method.alpha={weights.alpha:g}", f"method.gamma={weights.gamma:g}", *overrides]
        anew.add(stages[-1])
    if not overrides:
        return
    reused = [stage for stage in stages if stage not in anew]
    words = f", which reuses {' and '.join(reused)} and trains the rest" if reused else ""
    line = f"next: the same command with {' '.join(overrides)}{words}"
    console().print(line, highlight=False, markup=False, soft_wrap=True)
