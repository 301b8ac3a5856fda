"""Source `robomimic`: HDF5 files of robomimic, robosuite and MimicGen."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.robomimic import USUAL, RobomimicFile
from tailo_pl.data.sources.imported import Choice, Imported, Patterns, Reading, chosen_numbers, file_identity, places
from tailo_pl.errors import UserError

log = logging.getLogger(__name__)


class Robomimic(Imported):
    """Demonstrations in HDF5 files.

    Bounds of the actions come from the file's `env_args` where they state a controller's, otherwise -1 to 1 where all
    actions lie within, as robomimic has it, otherwise from the data.

    Args:
        ts: the file with the expert's states, a pattern, or a list of these.
        ta: files of the logs, likewise.
        features: observations that make up a state, joined in this order; `states` is the simulator's. Null:
            robomimic's own, where all of them are there.
        ts_filter: filter key of TS (`mask/KEY`); null: all demonstrations.
        ta_filter: the same for TA.
        ts_episodes: numbers of TS's demonstrations, as a list or as `0:50,60`; null: all. Only with a single file.
        ta_episodes: the same for TA.
        action_low: lower bounds of the actions, one number for all dimensions or one each.
        action_high: upper bounds.
        drop_nan: leave out steps with a NaN instead of refusing them.
        clip_actions: bring actions within the given bounds instead of refusing them.
    """

    kind = "robomimic"

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        features: list[str] | None = None,
        ts_filter: str | None = None,
        ta_filter: str | None = None,
        ts_episodes: Choice | None = None,
        ta_episodes: Choice | None = None,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
        drop_nan: bool = False,
        clip_actions: bool = False,
    ) -> None:
        super().__init__(ts, ta, action_low, action_high, drop_nan, clip_actions)
        self._features = features
        self._filters = {"ts": ts_filter, "ta": ta_filter}
        self._episodes = {
            "ts": chosen_numbers("source.ts_episodes", ts_episodes),
            "ta": chosen_numbers("source.ta_episodes", ta_episodes),
        }

    def reading(self, name: str) -> Reading:
        paths = self._paths(name)
        filter_key, episodes = self._filters[name], self._episodes[name]
        if episodes is not None and len(paths) > 1:
            raise UserError(f"source.{name}_episodes: given for {len(paths)} files, expected a single one")
        with RobomimicFile(paths[0], filter_key, episodes) as file:
            columns = columns_of(file, self._features)
            if file.images:
                log.info("%s: images are left out: %s", paths[0], ", ".join(file.images))
        return Reading(
            paths,
            lambda path: RobomimicFile(path, filter_key, episodes),
            columns,
            [[file_identity(path) for path in paths], filter_key, episodes],
            option="source.features ({})",
        )

    def known_bounds(self, width: int) -> tuple[str, Any, Any] | None:
        path = self._paths("ta")[0]
        with RobomimicFile(path) as file:
            found = file.action_range()
        if found is not None and all(len(one) in (1, width) for one in found):
            low, high = (np.broadcast_to(one, width).astype(np.float64) for one in found)
            return f"env_args of {path.name}", low, high
        ta = self.part("ta")
        assert ta.recording.actions is not None
        if all(np.abs(chunk).max() <= 1.0 for chunk in ta.chunks(ta.recording.actions)):
            return "robomimic's range of actions", np.full(width, -1.0), np.full(width, 1.0)
        return None

    def _paths(self, name: str) -> list[Path]:
        def inside(folder: Path) -> list[Path]:
            return sorted(file for file in folder.iterdir() if file.suffix.lower() in (".hdf5", ".h5"))

        return places(f"source.{name}", self._patterns[name], inside, ".hdf5")


def columns_of(file: RobomimicFile, features: list[str] | None) -> Columns:
    """Which fields of the demonstrations hold what."""
    there = [name.removeprefix("obs/") for name in file.fields if name.startswith("obs/")]
    if features is None:
        if not set(USUAL) <= set(there):
            raise UserError(
                f"{file.path}: not all of {', '.join(USUAL)} found; choose with source.features=[...] among "
                f"{', '.join(there)}" + (", states" if "states" in file.fields else "")
            )
        features = list(USUAL)
    names = [feature if feature == "states" else f"obs/{feature}" for feature in features]
    after = [f"next_obs/{feature}" for feature in features]
    return Columns(
        observations=names,
        actions="actions",
        next_observations=list(after) if all(name in file.fields for name in after) else None,
        rewards="rewards" if "rewards" in file.fields else None,
        terminals=None,  # robomimic's `dones` also mark where a demonstration was cut
        timeouts=None,
        episode="episode",
        step=None,
    )
