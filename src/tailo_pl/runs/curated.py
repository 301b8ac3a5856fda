"""What curation writes: the table of episodes, weights of every frame, and the kept episodes in their format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyarrow import csv, parquet

from tailo_pl.data.formats import WRITTEN, ending_of, write_file
from tailo_pl.data.opening import kind_of
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.files import whole_file, write_text
from tailo_pl.runs.scoring import Scores

DELETE = "episodes_to_delete.json"


@dataclass(frozen=True)
class Pile:
    """Logs that are judged, and what they are called where they lie.

    Args:
        logs: their steps.
        kind: their layout.
        paths: files or folders, in order.
        episodes: each trajectory's number within its file or data set.
        within: the number of its file or data set among `paths`.
    """

    logs: Trajectories
    kind: str
    paths: list[Path]
    episodes: NDArray[np.int64]
    within: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str], logs: Trajectories, kind: str | None) -> Pile:
        """Number the trajectories as their files do."""
        from tailo_pl.data.hub import data_set_folder
        from tailo_pl.data.sources.files import expand

        paths = [data_set_folder(name, "data", download=False) for name in names]
        kind = kind or kind_of(paths[0])
        if kind == "lerobot":
            from tailo_pl.data.formats.lerobot import LeRobotSet

            numbers = [LeRobotSet(path).episodes.number for path in paths]
        elif kind == "robomimic":
            from tailo_pl.data.formats.robomimic import RobomimicFile

            numbers = []
            for path in paths:
                with RobomimicFile(path) as file:
                    numbers.append(np.array(file.demos))
        else:
            paths = expand("data", [str(path) for path in paths]) if kind == "files" else paths
            changes = np.flatnonzero(np.append(True, logs.origins[1:] != logs.origins[:-1]))
            numbers = [np.arange(count) for count in np.diff(np.append(changes, len(logs)))]
        within = np.repeat(np.arange(len(numbers)), [len(some) for some in numbers])
        return cls(logs, kind, paths, np.concatenate(numbers), within)

    def write_kept(self, kept: NDArray[np.bool_], out: Path) -> list[Path]:
        """Write the kept episodes in the format they came in; other layouts than files and LeRobot's as `.npz` or
        Parquet. Beside a LeRobot data set goes a list of the episodes to delete with LeRobot's own tool."""
        if self.kind != "lerobot":
            allowed = WRITTEN if self.kind == "files" else (".npz", ".parquet")
            if ending_of(out) not in allowed:
                raise UserError(f"{out}: unknown format, expected one of {', '.join(allowed)}")
            write_file(out, self.logs.take(kept))
            return [out]
        from tailo_pl.data.formats.lerobot_writing import write_episodes

        written = []
        for number, path in enumerate(self.paths):
            here = self.within == number
            folder = out if len(self.paths) == 1 else out / path.name
            if kept[here].any():
                folder.parent.mkdir(parents=True, exist_ok=True)
                write_episodes(path, kept[here], folder)
                written.append(folder)
            listed = out.with_name(f"{out.name}-{path.name}-{DELETE}")
            write_text(listed, json.dumps(self.episodes[here & ~kept].tolist()) + "\n")
            written.append(listed)
        return written


def write_table(columns: dict[str, Any], path: Path) -> None:
    """Write a table as `.csv` or `.parquet`, whole or not at all."""
    table = pa.table(columns)
    try:
        with whole_file(path) as scratch:
            if path.suffix == ".csv":
                csv.write_csv(table, scratch)
            else:
                parquet.write_table(table, scratch, write_page_checksum=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error


def write_weights(scores: Scores, episodes: NDArray[np.int64], logs: Trajectories, path: Path) -> None:
    """R and W of every frame, keyed as other trainers know frames; W is divided by its mean, as sample weights are."""
    columns = {
        "index": np.arange(logs.steps),
        "episode_index": episodes[scores.episode],
        "frame_index": scores.step,
        "weight": (scores.weight / scores.weight.mean(dtype=np.float64)).astype(np.float32),
        "score": scores.score,
    }
    write_table(columns, path)
