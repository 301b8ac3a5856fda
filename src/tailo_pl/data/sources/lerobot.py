"""Source `lerobot`: LeRobot data sets, v3.0 and v2.x, from folders or by their id on the Hub."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.data.formats import lerobot_meta as meta
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.lerobot import ACTION, STATE, LeRobotSet
from tailo_pl.data.formats.lerobot_stats import action_range
from tailo_pl.data.formats.members import identity
from tailo_pl.data.hub import data_set_folder
from tailo_pl.data.sources.imported import Choice, Imported, Patterns, Reading, chosen_numbers, places
from tailo_pl.errors import UserError

log = logging.getLogger(__name__)


class LeRobot(Imported):
    """LeRobot data sets. TS may be recorded without actions, as by guiding an arm by hand.

    Bounds of the actions come from the data sets' `stats.json` where they have one, otherwise from the data.

    Args:
        ts: folder of the data set with the expert's states, or its id (`org/name`) on the Hub, or a list of these.
        ta: folders or ids of the logs, likewise.
        features: columns that make up a state, joined in this order.
        action: the column of the actions.
        ts_episodes: numbers of TS's episodes, as a list or as `0:50,60`; null: all. Only with a single data set.
        ta_episodes: the same for TA.
        ts_tasks: texts or numbers of TS's tasks; null: all.
        ta_tasks: the same for TA.
        action_low: lower bounds of the actions, one number for all dimensions or one each.
        action_high: upper bounds.
        drop_nan: leave out steps with a NaN instead of refusing them.
        clip_actions: bring actions within the given bounds instead of refusing them.
        download: fetch from the Hub what is not on this machine.
        revision: of the data set on the Hub; null: its main one.
    """

    kind = "lerobot"

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        features: list[str] | None = None,
        action: str = ACTION,
        ts_episodes: Choice | None = None,
        ta_episodes: Choice | None = None,
        ts_tasks: list[str | int] | None = None,
        ta_tasks: list[str | int] | None = None,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
        drop_nan: bool = False,
        clip_actions: bool = False,
        download: bool = True,
        revision: str | None = None,
    ) -> None:
        super().__init__(ts, ta, action_low, action_high, drop_nan, clip_actions)
        self._features, self._action = features or [STATE], action
        self._episodes = {
            "ts": chosen_numbers("source.ts_episodes", ts_episodes),
            "ta": chosen_numbers("source.ta_episodes", ta_episodes),
        }
        self._tasks = {"ts": ts_tasks, "ta": ta_tasks}
        self._download, self._revision = download, revision
        self._fps: dict[str, float] = {}

    def reading(self, name: str) -> Reading:
        folders = self._folders(name)
        episodes, tasks = self._episodes[name], self._tasks[name]
        if episodes is not None and len(folders) > 1:
            raise UserError(f"source.{name}_episodes: given for {len(folders)} data sets, expected a single one")
        self._look(name, folders)
        rewards = "next.reward" if name == "ta" and all(_has(folder, "next.reward") for folder in folders) else None
        return Reading(
            folders,
            lambda folder: LeRobotSet(folder, episodes, tasks, holes=self._drop_nan),
            columns_of(self._features, self._action, rewards),
            [[identity(folder, ("meta", "data")) for folder in folders], episodes, tasks],
            option="source.features ({})",
        )

    def known_bounds(self, width: int) -> tuple[str, Any, Any] | None:
        """Of `stats.json` (v2.1: of the episodes' statistics), where every data set of TA has it."""
        ranges = []
        for folder in self._folders("ta"):
            found = action_range(folder, self._action, width)
            if found is None:
                return None
            ranges.append((f"{folder.name}/{found[0]}", *found[1:]))
        where = ", ".join(one[0] for one in ranges)
        return where, np.min([one[1] for one in ranges], axis=0), np.max([one[2] for one in ranges], axis=0)

    def _folders(self, name: str) -> list[Path]:
        given = self._patterns[name]
        wanted = [given] if isinstance(given, str) else given
        at = [data_set_folder(one, f"source.{name}", self._download, self._revision) for one in wanted]
        return places(f"source.{name}", [str(one) for one in at], lambda folder: [folder], "a LeRobot data set")

    def _look(self, name: str, folders: list[Path]) -> None:
        """Say what is left out, and hold the data sets' rates against each other."""
        for folder in folders:
            info = meta.read_info(folder)
            for feature in self._features:
                if feature not in info.features or feature in info.skipped:
                    usable = [key for key, one in info.features.items() if one.width is not None]
                    found = info.skipped.get(feature)
                    said = f"{feature!r} is of type {found}" if found else f"no feature {feature!r}"
                    raise UserError(f"{folder}: {said}, expected some of {', '.join(usable)} (source.features)")
            if info.skipped:
                listed = ", ".join(f"{key} ({kind})" for key, kind in info.skipped.items())
                log.info("%s: images and videos are left out: %s", folder, listed)
            self._fps[f"{name} {folder}"] = info.fps
        rates = {folder.name: meta.read_info(folder).fps for folder in folders}
        if len(set(rates.values())) > 1:
            listed = ", ".join(f"{folder} {fps:g}" for folder, fps in rates.items())
            raise UserError(f"source.{name}: data sets of different fps found ({listed}), expected one rate")
        if len(set(self._fps.values())) > 1:
            listed = ", ".join(f"{folder} {fps:g}" for folder, fps in self._fps.items())
            log.warning("TS and TA were recorded at different fps (%s)", listed)


def columns_of(features: list[str], action: str | None, rewards: str | None = None) -> Columns:
    """Which columns of a data set's rows hold what."""
    return Columns(features, action, None, rewards, None, None, "episode_index", None)


def _has(folder: Path, feature: str) -> bool:
    return feature in meta.read_info(folder).features
