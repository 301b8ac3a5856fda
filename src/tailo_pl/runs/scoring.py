"""Scoring new logs with a trained run: R(s) and W(s, a) of every step, no retraining."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.opening import How
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.files import whole_file
from tailo_pl.models import PUDiscriminator
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.summary import read_summary
from tailo_pl.runs.trained import load_module

SUFFIXES = (".npz", ".csv", ".parquet")


class Scores(NamedTuple):
    """One entry per step."""

    episode: NDArray[np.int64]
    step: NDArray[np.int64]
    score: NDArray[np.float32]
    """R(s)"""
    weight: NDArray[np.float32]
    """W(s, a), divided by the largest in this data"""


def layout_of(run_dir: Path) -> How:
    """How the run's own recordings are laid out: kind, columns, features."""
    return How.of_source(load_run(run_dir).config["source"])


def score(run_dir: Path, data: Trajectories) -> Scores:
    """R and W of every step of `data`, with the discriminator whose scores weighted the run's policy."""
    experiment = load_run(run_dir)
    if read_summary(run_dir)["failure"]:  # which an unfinished run does not even have
        raise UserError(f"{run_dir}: this run ended in a numerical error, nothing to score with")
    weights = experiment.weights
    if weights is None:
        raise UserError(f"{run_dir}: method {experiment.names['method']} has no discriminator, nothing to score with")
    discriminator = load_module(run_dir, weights.scores, PUDiscriminator)
    expected, found = discriminator.observation_dim, data.recording.observations.shape[1]
    if found != expected:
        raise UserError(f"data: {found} dimensions in a state found, expected {expected} as in {run_dir}")
    scores = discriminator.scores(data)
    step = np.arange(data.steps) - np.repeat(data.offsets[:-1], data.lengths)
    return Scores(data.trajectory_of_step, step, scores, weights.of(scores, data.offsets))


def write_scores(scores: Scores, path: Path) -> None:
    """Write scores as `.npz`, `.csv` or `.parquet`, whole or not at all."""
    if path.suffix not in SUFFIXES:
        raise UserError(f"{path}: cannot write {path.suffix or 'this'}, expected one of {', '.join(SUFFIXES)}")
    if path.exists():
        raise UserError(f"{path}: this file exists; choose another name, or delete it")
    try:
        with whole_file(path) as scratch:
            _write(scores._asdict(), scratch, path.suffix)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error


def _write(columns: dict[str, NDArray[Any]], scratch: Path, suffix: str) -> None:
    if suffix == ".npz":
        with scratch.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **columns)
        return
    import pyarrow
    from pyarrow import csv, parquet

    table = pyarrow.table(columns)
    if suffix == ".csv":
        csv.write_csv(table, scratch)
    else:
        parquet.write_table(table, scratch, write_page_checksum=True)
