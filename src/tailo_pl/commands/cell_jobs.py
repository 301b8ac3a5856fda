"""Cells of `tailo reproduce` as jobs of one of Hydra's launchers: on a cluster, or beside each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailo_pl.commands.logs import quieten
from tailo_pl.commands.sweep import notes, own_folder, through_hydra
from tailo_pl.files import write_text
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.reproduce import State, Watch, alone_in, beginning, keep, worker_options

if TYPE_CHECKING:
    from omegaconf import DictConfig


def launched(
    asked: Asked, results: Path, runs: Path, launcher: str, options: Sequence[str], *, episodes: int, watch: Watch
) -> State:
    """Hand every missing cell to a launcher as a job, wait for all of them, and keep what came of them.

    Args:
        asked: which.
        results: folder in which results are kept.
        runs: folder of the runs; jobs on other machines must see it too.
        launcher: Hydra's name of it.
        options: overrides of its settings, `hydra.launcher.partition=gpu`.
        episodes: that each trained policy plays.
        watch: is shown what came of each cell.

    Returns:
        How far it came.
    """
    state = beginning(asked, results, jobs=1)
    if not state.waiting:
        return state
    told, cells = worker_options(asked, runs.absolute(), episodes), list(state.waiting)
    arguments, numbers = [f"runs={runs}", *options], ",".join(map(str, range(len(cells))))
    jobs = ["-m", f"+cell={numbers}", f"hydra/launcher={launcher}", *options]
    with alone_in(runs), notes(arguments) as answers:
        try:
            with own_folder(arguments) as own:
                through_hydra([*jobs, *own], partial(_job, cells, told, answers))
        finally:  # an interrupted wait loses nothing that has been measured
            for number, cell in enumerate(cells):
                if (said := answers / str(number)).exists():
                    state.waiting.remove(cell)
                    watch(state, keep(json.loads(said.read_text()), cell, state, asked, results))
    for cell in list(state.waiting):
        state.waiting.remove(cell)
        nothing = {"error": "its job ended without a result; the same command goes on with it"}
        watch(state, keep(nothing, cell, state, asked, results))
    return state


def _job(cells: Sequence[Cell], told: Mapping[str, Any], answers: Path, config: DictConfig) -> None:
    """One cell, perhaps on another machine. What comes of it is written down: an error that left here would stop the
    other jobs."""
    from tailo_pl.paper.worker import answer

    quieten()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    cell = cells[config.cell]
    write_text(answers / str(config.cell), json.dumps(answer({"overrides": cell.overrides, "seed": cell.seed, **told})))
