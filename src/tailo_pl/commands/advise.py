"""`tailo advise`: what to choose and to try next without a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tailo_pl.commands.options import PATH, composing
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.runs.advice import Judged


@click.command()
@click.argument("given", nargs=-1, metavar="RUN... | KEY=VALUE...", help="Finished runs, or what would be trained on.")
@click.option("--trial", "trials", multiple=True, metavar="RUN=SUCCESS", help="Outcome of a real trial, from 0 to 1.")
@click.option("--trials", "file", type=PATH, default=Path("trials.json"), help="Where trials are kept.")
@composing
def advise(given: tuple[str, ...], trials: tuple[str, ...], file: Path) -> None:
    """Choose without a simulator: tailo advise RUN or source=FILES.

    Of one run: which alpha, gamma, beta_1, head and method its own numbers and data speak for. Of several: which is the
    most promising, and with --trial which to try next on the real thing.
    """
    from tailo_pl.runs.trials import parse_trial

    outcomes = [parse_trial(text) for text in trials]
    folders = [Path(one) for one in given if (Path(one) / "config.yaml").exists()]
    overrides = [one for one in given if Path(one) not in folders]
    if overrides and (folders or not all("=" in one for one in overrides)):
        raise UserError(f"advise: {overrides[0]!r} given, expected folders of finished runs, or key=value alone")
    if overrides:
        _of_data(overrides)
    elif folders:
        _of_runs(folders, outcomes, file)
    else:
        raise UserError("advise: nothing given, expected folders of finished runs, or source=... key=value")


def _of_data(overrides: list[str]) -> None:
    from tailo_pl.commands.making import making_data
    from tailo_pl.config.compose import composed
    from tailo_pl.runs.checks import check
    from tailo_pl.screen import console

    with making_data():
        check(composed(overrides))
    out = console()
    out.print("the data shows nothing that speaks against training on it", highlight=False)
    out.print(f"next: tailo train {' '.join(overrides)}, then tailo advise RUN", highlight=False, soft_wrap=True)


def _of_runs(folders: list[Path], outcomes: list[tuple[str, float]], file: Path) -> None:
    from tailo_pl.commands.advice_table import show_agreement, show_checkpoint, show_order, show_told
    from tailo_pl.runs.advice import agreement, chosen_of, judged, told_apart
    from tailo_pl.runs.trials import Candidate, in_order, read_trials, write_trials

    runs = judged(folders)
    known = read_trials(file)
    for run, success in outcomes:
        if Path(run) not in folders:
            raise UserError(f"--trial: {run!r} given, expected one of the runs {', '.join(map(str, folders))}")
        known.setdefault(str(Path(run)), []).append(success)
    if outcomes:
        write_trials(file, known)
    candidates = [
        Candidate(str(one.path), one.promise, len(done := known.get(str(one.path), [])), sum(done)) for one in runs
    ]
    show_order(runs, in_order(candidates))
    for other in runs[1:]:
        show_agreement(runs[0].path, other.path, agreement(runs[0].path, other.path))
    show_told(told_apart(runs, [chosen_of(run.path) for run in runs]))
    show_checkpoint(runs[0])
    if runs[0].summary["failure"] is None:
        _of_one(runs[0])


def _of_one(run: Judged) -> None:
    """What the run's own numbers and data speak for."""
    from tailo_pl.commands.advice_table import show_choices, show_next, show_suggestions
    from tailo_pl.runs.measured import read_measured
    from tailo_pl.runs.suggestions import Examined, choices, suggestions

    examined = Examined(run)
    advised = None
    if examined.experiment.weights is not None:
        everything, own, advised = choices(examined)
        show_choices(run.path, everything, own, advised)
        advised = None if advised is own else advised
    found = list(suggestions(examined, read_measured()))
    show_suggestions(found)
    show_next(found, advised, examined.stages)
