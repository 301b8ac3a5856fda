"""Source `arrays`: TS and TA that were arrays in memory, kept in a folder so that a run of them stays whole."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from tailo_pl.data import cache
from tailo_pl.data.settings import Task
from tailo_pl.data.sources.imported import given_bounds
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

PARTS = ("ts", "ta")


class Arrays(Source):
    """What `keep` has written, memory-mapped.

    Args:
        folder: with one folder below it for TS and one for TA.
        action_low: lower bounds of the actions, one number for all dimensions or one each; None: the data's.
        action_high: upper bounds.
    """

    def __init__(
        self,
        folder: str,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
    ) -> None:
        if (action_low is None) != (action_high is None):
            raise UserError("action_low, action_high: only one of them given, expected both or neither")
        self._folder = Path(folder)
        self._low, self._high = action_low, action_high
        self._open: dict[str, Trajectories] = {}

    def part(self, name: str) -> Trajectories:
        if name not in PARTS:
            raise UserError(f"source arrays: no part {name!r}, expected ts or ta (setting=given)")
        if name not in self._open:
            try:
                self._open[name] = cache.read(self._folder / name)
            except (OSError, ValueError, KeyError) as error:
                raise UserError(f"{self._folder / name}: cannot be read ({error}), expected kept arrays") from error
        return self._open[name]

    def fingerprint(self, name: str) -> str:
        self.part(name)
        return cache.folder_fingerprint(self._folder / name)

    def action_bounds(self, name: str) -> Bounds | None:
        if self._low is None or self._high is None:
            return None
        return given_bounds(self._low, self._high, self.part(name).actions.shape[1])

    def describe(self) -> str:
        return f"arrays kept in {self._folder}"


def keep(task: Task, root: Path) -> Path:
    """Write TS and TA below `root`, under a name that says what they hold; the folder for `Arrays`.

    The same data is written once.
    """
    scratch = root / f".making-{uuid.uuid4().hex}"
    try:
        try:
            for name, part in zip(PARTS, (task.ts, task.ta), strict=True):
                (scratch / f".{name}").mkdir(parents=True)
                cache.save(part, scratch / f".{name}")
                cache.publish(scratch / f".{name}", scratch / name, {"source": "arrays", "part": name})
            folder = root / cache.fingerprint([cache.folder_fingerprint(scratch / name) for name in PARTS])
            if not folder.exists():
                os.replace(scratch, folder)
        except OSError as error:
            raise UserError(f"{root}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder
