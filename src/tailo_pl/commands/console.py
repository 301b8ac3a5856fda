"""What the command line shows, as rich tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal
from rich.table import Table

from tailo_pl.commands.judgement import show_verdict
from tailo_pl.errors import counted
from tailo_pl.screen import console, is_plain, show

if TYPE_CHECKING:  # tables and reports need none of it, and it takes seconds to import
    from tailo_pl.commands.catalogue import Entry
    from tailo_pl.config.experiment import Experiment
    from tailo_pl.data.inspection import Inspection
    from tailo_pl.data.trajectories import Trajectories
    from tailo_pl.envs.evaluation import Evaluation
    from tailo_pl.policies.film import Played
    from tailo_pl.report.writing import Written
    from tailo_pl.runs.scoring import Scores
    from tailo_pl.training.fit import Fitted


def show_names(names: Mapping[str, str], seed: int) -> None:
    """The first line: what is run."""
    console(stderr=True).print(
        f"[bold]{names['env']}[/] · setting {names['setting']} · method {names['method']} · preset {names['preset']} "
        f"· seed {seed}"
    )


def show_data(experiment: Experiment, run_dir: Path) -> None:
    """Before training: on which data, and where it is written."""
    from tailo_pl.runs.describe import describe_data

    data = describe_data(experiment)
    out = console(stderr=True)
    out.print(f"data {data['source']} (fingerprint {data['fingerprint']})")
    out.print(f"TS {counted(data['ts']['states'], 'state')} in {counted(data['ts']['trajectories'], 'trajectory')}")
    counts = [f"{origin} {part['trajectories']:,}" for origin, part in data["ta"]["origins"].items()]
    origins = ", ".join(counts[:6]) + (f" and {len(counts) - 6} more" if len(counts) > 6 else "")
    ta = f"{counted(data['ta']['steps'], 'step')} in {counted(data['ta']['trajectories'], 'trajectory')}"
    out.print(f"TA {ta} ({origins})")
    out.print(f"run {run_dir}", highlight=False, soft_wrap=True)


def show_summary(summary: dict[str, Any], run_dir: Path) -> None:
    """After training: one table, then the score and the path of the policy."""
    table = Table(title=f"{summary['method']} on {summary['env']}, setting {summary['setting']}")
    for column in ("stage", "steps", "ended", "seconds", "CPU s", "quality", "score"):
        table.add_column(column, justify="left" if column in ("stage", "ended", "quality") else "right")
    for stage in summary["stages"]:
        last = stage is summary["stages"][-1]
        table.add_row(
            stage["stage"] + (" (reused)" if stage["reused_from"] else ""),
            f"{stage['steps']:,}",
            _ended(stage["stopped"]),
            f"{stage['seconds']:.1f}",
            f"{stage['cpu_seconds']:.1f}",
            _quality(stage["quality"], summary["data"]["ta"]["trajectories"]),
            _score(summary) if last else "",
        )
    show(table)
    show_verdict(summary["verdict"])
    if summary["score"] is not None:
        console().print(f"reference of the score: {summary['reference']['source']}", highlight=False, soft_wrap=True)
    if not summary["failure"]:
        console().print(f"policy {run_dir / summary['checkpoint']}", highlight=False, soft_wrap=True)


def show_fitted(fitted: Fitted, run: tuple[Path, dict[str, Any] | None] | None) -> None:
    """The outcome of `tailo fit`."""
    out = console()
    if run is None:
        out.print(f"checkpoint {fitted.folder / 'checkpoints' / 'last.ckpt'}", highlight=False, soft_wrap=True)
    elif run[1] is None:
        out.print(f"stage {fitted.folder}", highlight=False, soft_wrap=True)
        out.print(f"`tailo train resume={run[0]}` trains the stages behind it", highlight=False, soft_wrap=True)
    else:
        show_summary(run[1], run[0])
        out.print(f"run {run[0]}", highlight=False, soft_wrap=True)


def show_numbers(numbers: Mapping[str, float]) -> None:
    """The outcome of `tailo validate`."""
    table = Table("held out", "")
    table.columns[1].justify = "right"
    for name, value in numbers.items():
        table.add_row(name.removeprefix("held_out/"), f"{value:.4g}")
    show(table)


def show_evaluation(evaluation: Evaluation, run_dir: Path, *, as_json: bool = False) -> None:
    """The outcome of `tailo evaluate`."""
    if as_json:
        sys.stdout.write(json.dumps({"run": str(run_dir), **asdict(evaluation)}, indent=1) + "\n")
        return
    table = Table(title=f"{counted(evaluation.episodes, 'episode')} of {run_dir}")
    for column in ("score", "return", "length", "success"):
        table.add_column(column, justify="right")
    table.add_row(
        f"{evaluation.score:.1f} ± {evaluation.score_std:.1f}",
        "" if evaluation.mean_return is None else f"{evaluation.mean_return:.2f}",
        f"{evaluation.mean_length:.1f}",
        "" if evaluation.success is None else f"{evaluation.success:.2f}",
    )
    show(table)
    for name, steps in evaluation.subtasks.items():
        known = sorted(step for step in steps if step is not None)
        when = f", half of them by step {known[len(known) // 2]}" if known else ""
        console().print(f"{name}: done in {len(known)} of {len(steps)}{when}", highlight=False, soft_wrap=True)


def show_report(written: Written) -> None:
    """The outcome of `tailo report`: what was missing, then where everything lies."""
    for line in written.missing:
        console(stderr=True).print(f"missing: {line}", highlight=False, markup=False, soft_wrap=True)
    out = console()
    if written.figures:
        out.print(
            f"{len(written.figures)} files of figures in {written.figures[0].parent}", highlight=False, soft_wrap=True
        )
    out.print(f"report {written.page}", highlight=False, markup=False, soft_wrap=True)


def show_listing(entries: Sequence[Entry], *, as_json: bool, complete: bool) -> None:
    """The outcome of `tailo data list`."""
    from tailo_pl.data.cache import home

    if as_json:
        sys.stdout.write(json.dumps([asdict(entry) for entry in entries], indent=1) + "\n")
        return
    # On a terminal what lies in the cache is named by its folder there: whole paths would be folded.
    cache = "" if is_plain() else f"{home() / 'data'}/"
    table = Table(title=f"data (in {cache} unless a path is given)" if cache else "data")
    several = is_plain() or len({entry.source for entry in entries}) > 1
    for column in ("name", *(["source"] if several else []), "on disk", "where"):
        table.add_column(column, justify="right" if column == "on disk" else "left", overflow="fold")
    for entry in entries:
        there = entry.size is not None
        where = entry.path.removeprefix(cache) if there else ""
        source = [entry.source] if several else []
        table.add_row(entry.name, *source, decimal(entry.size or 0) if there else "–", where)
    show(table)
    if not complete:
        console().print(
            "– is made or downloaded when it is used. `tailo data list d4rl` names all of D4RL's data sets.",
            highlight=False,
        )


def show_inspection(inspection: Inspection, *, as_json: bool) -> None:
    """The outcome of `tailo data inspect`."""
    from tailo_pl.commands.inspection_table import tables

    if as_json:
        sys.stdout.write(json.dumps(asdict(inspection), indent=1) + "\n")
        return
    for table in tables(inspection):
        show(table)


def show_converted(trajectories: Trajectories, path: Path) -> None:
    """The outcome of `tailo data convert`."""
    console().print(
        f"{counted(trajectories.steps, 'step')} in {counted(len(trajectories), 'trajectory')} written to {path}",
        highlight=False,
        soft_wrap=True,
    )


def show_scores(scores: Scores, trajectories: Trajectories, what: str, path: Path) -> None:
    """The outcome of `tailo score`: the trajectories that score highest and lowest."""
    table = Table(title=f"{counted(len(trajectories), 'trajectory')} of {what}")
    for column in ("trajectory", "origin", "steps", "mean score", "weight"):
        table.add_column(column, justify="left" if column == "origin" else "right")
    means, shares = trajectories.mean(scores.score), trajectories.mean(scores.weight) * trajectories.lengths
    best = means.argsort()[::-1]
    for number in best[:5].tolist() + (best[-5:].tolist() if len(best) > 10 else best[5:].tolist()):
        table.add_row(
            str(number),
            str(trajectories.origins[number]),
            f"{trajectories.lengths[number]:,}",
            f"{means[number]:.3f}",
            f"{shares[number] / shares.sum():.2%}",
        )
    show(table)
    out = console()
    if len(best) > 10:
        out.print("the five that score highest and the five that score lowest")
    out.print(f"scores {path}", highlight=False, soft_wrap=True)


def show_film(played: Sequence[Played], run_dir: Path, path: Path) -> None:
    """The outcome of `tailo play`."""
    table = Table(title=f"episodes of {run_dir}")
    for column in ("episode", "return", "length", "ended by itself"):
        table.add_column(column, justify="right")
    for number, one in enumerate(played):
        table.add_row(str(number), f"{one.returned:.2f}", f"{one.length:,}", "yes" if one.terminated else "no")
    show(table)
    console().print(f"film {path}", highlight=False, soft_wrap=True)


def _ended(stopped: str) -> str:
    """What ended a stage before all of its steps were done, in a word."""
    return {"all steps done": "", "held-out error": "held-out"}.get(stopped, stopped)


def _quality(numbers: dict[str, float], trajectories: int) -> str:
    """The number that says most: how many logs a discriminator takes for the expert's, how well a policy predicts."""
    if "ta_share" in numbers:
        return f"{numbers['ta_share'] * trajectories:,.0f} of {trajectories:,} logs"
    return f"held-out {numbers['held_out_error']:.3f}" if "held_out_error" in numbers else ""


def _score(summary: dict[str, Any]) -> str:
    return "" if summary["score"] is None else f"{summary['score']:.1f} ± {summary['score_std']:.1f}"
