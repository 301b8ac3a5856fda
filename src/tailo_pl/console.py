"""What the command line shows, as rich tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tailo_pl.data.progress import listener
from tailo_pl.envs.evaluation import Evaluation
from tailo_pl.experiment import Experiment
from tailo_pl.run import describe_data
from tailo_pl.screen import console, show
from tailo_pl.table import COLUMNS, Row

if TYPE_CHECKING:
    from tailo_pl.report.writing import Written


@contextmanager
def making_data() -> Iterator[None]:
    """Show a bar for every part of the data that is being made meanwhile."""
    tasks: dict[str, TaskID] = {}
    bar = Progress(
        TextColumn("making {task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console(stderr=True),
    )

    def tell(what: str, done: int, total: int) -> None:
        bar.start()  # only now: usually the data is there and nothing is to be shown
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=min(done, total))

    token = listener.set(tell)
    try:
        yield
    finally:
        listener.reset(token)
        if tasks:
            bar.stop()


def show_data(experiment: Experiment, run_dir: Path) -> None:
    """Before training: what is run on which data."""
    data = describe_data(experiment)
    names = experiment.names
    out = console(stderr=True)
    out.print(
        f"[bold]{names['env']}[/] · setting {names['setting']} · method {names['method']} · preset {names['preset']} "
        f"· seed {experiment.config['seed']}"
    )
    out.print(f"data {data['source']} (fingerprint {data['fingerprint']})")
    out.print(f"TS {data['ts']['states']:,} states in {data['ts']['trajectories']:,} trajectories")
    counts = [f"{origin} {part['trajectories']:,}" for origin, part in data["ta"]["origins"].items()]
    origins = ", ".join(counts[:6]) + (f" and {len(counts) - 6} more" if len(counts) > 6 else "")
    out.print(f"TA {data['ta']['steps']:,} steps in {data['ta']['trajectories']:,} trajectories ({origins})")
    out.print(f"run {run_dir}", highlight=False, soft_wrap=True)


def show_summary(summary: dict[str, Any], run_dir: Path) -> None:
    """After training: one table, then the score and the path of the policy."""
    table = Table(title=f"{summary['method']} on {summary['env']}, setting {summary['setting']}")
    for column in ("stage", "steps", "seconds", "CPU s", "loss", "quality", "score"):
        table.add_column(column, justify="left" if column in ("stage", "quality") else "right")
    for stage in summary["stages"]:
        last = stage is summary["stages"][-1]
        table.add_row(
            stage["stage"] + (" (reused)" if stage["reused_from"] else ""),
            f"{stage['steps']:,}",
            f"{stage['seconds']:.1f}",
            f"{stage['cpu_seconds']:.1f}",
            "" if stage["loss"] is None else f"{stage['loss']:.4f}",
            _quality(stage["quality"]),
            _score(summary) if last else "",
        )
    show(table)
    if not summary["failure"]:
        console().print(f"policy {run_dir / summary['checkpoint']}", highlight=False, soft_wrap=True)


def show_evaluation(evaluation: Evaluation, run_dir: Path, *, as_json: bool = False) -> None:
    """The outcome of `tailo evaluate`."""
    if as_json:
        sys.stdout.write(json.dumps({"run": str(run_dir), **asdict(evaluation)}, indent=1) + "\n")
        return
    table = Table(title=f"{evaluation.episodes} episodes of {run_dir}")
    for column in ("score", "return", "length", "success"):
        table.add_column(column, justify="right")
    table.add_row(
        f"{evaluation.score:.1f} ± {evaluation.score_std:.1f}",
        "" if evaluation.mean_return is None else f"{evaluation.mean_return:.2f}",
        f"{evaluation.mean_length:.1f}",
        "" if evaluation.success is None else f"{evaluation.success:.2f}",
    )
    show(table)


def show_table(rows: list[Row]) -> None:
    """The outcome of `tailo table`; columns that say nothing are left out."""
    cells = [row.cells() for row in rows]
    shown = [at for at, column in enumerate(COLUMNS) if column != "data" and any(line[at] for line in cells)]
    table = Table()
    for at in shown:
        table.add_column(
            COLUMNS[at],
            justify="right" if COLUMNS[at] in ("score", "failed", "CPU s") else "left",
            no_wrap=COLUMNS[at] == "score",
        )
    for line in cells:
        table.add_row(*(line[at] for at in shown))
    show(table)


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


def _quality(numbers: dict[str, float]) -> str:
    """The number that says most: how well a discriminator separates, how well a policy predicts held-out actions."""
    if "auroc" in numbers:
        return f"AUROC {numbers['auroc']:.3f}"
    return f"held-out {numbers['held_out_error']:.3f}" if "held_out_error" in numbers else ""


def _score(summary: dict[str, Any]) -> str:
    return "" if summary["score"] is None else f"{summary['score']:.1f} ± {summary['score_std']:.1f}"
