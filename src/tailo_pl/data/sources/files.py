"""Source `files`: people's own recordings, TS and TA from files of their own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tailo_pl.data.formats import SUFFIXES, ending_of, open_file
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.step_reader import Ending
from tailo_pl.data.sources.imported import Imported, Patterns, Reading, file_identity, places


class Files(Imported):
    """Recordings in files.

    Args:
        ts: the expert's states: a file, a folder, a pattern such as `logs/*.csv`, or a list of these. A file that tells
            no trajectories apart is one.
        ta: state-action trajectories, likewise; their files must tell trajectories apart.
        columns: which fields of the files hold what.
        ts_columns: the same for TS; None: as `columns`.
        action_low: lower bounds of the actions, one number for all dimensions or one each.
        action_high: upper bounds.
        drop_nan: leave out steps with a NaN instead of refusing them.
        clip_actions: bring actions within the given bounds instead of refusing them.
    """

    kind = "files"
    telling = True

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        columns: Columns | None = None,
        ts_columns: Columns | None = None,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
        drop_nan: bool = False,
        clip_actions: bool = False,
    ) -> None:
        super().__init__(ts, ta, action_low, action_high, drop_nan, clip_actions)
        columns = columns or Columns()
        self._columns = {"ts": ts_columns or columns, "ta": columns}

    def reading(self, name: str) -> Reading:
        paths = expand(f"source.{name}", self._patterns[name])
        return Reading(
            paths,
            partial(open_file, holes=self._drop_nan),
            self._columns[name],
            [file_identity(path) for path in paths],
            Ending(whole_file=True) if name == "ts" else None,
            "source.ts_columns.{}" if name == "ts" else "source.columns.{}",
        )


def expand(option: str, patterns: Patterns) -> list[Path]:
    """The files that paths, folders and patterns mean, in order, each once."""

    def inside(folder: Path) -> list[Path]:
        return sorted(file for file in folder.iterdir() if ending_of(file) in SUFFIXES)

    return places(option, patterns, inside, ", ".join(SUFFIXES))
