"""Source `zarr`: replay buffers of diffusion policy and its descendants."""

from __future__ import annotations

import logging
from pathlib import Path

from tailo_pl.data.formats.columns import AUTO, Columns
from tailo_pl.data.formats.members import identity
from tailo_pl.data.formats.zarr_buffer import ZarrBuffer, is_zarr
from tailo_pl.data.sources.imported import Choice, Imported, Patterns, Reading, chosen_numbers, file_identity, places
from tailo_pl.errors import UserError

log = logging.getLogger(__name__)


class Zarr(Imported):
    """Replay buffers, folders or `.zarr.zip` files.

    Args:
        ts: the buffer with the expert's states, or a list of these.
        ta: the logs' buffers, likewise.
        features: arrays below `data` that make up a state, joined in this order; null: `state`, or what else it is
            usually called.
        action: the array of the actions; auto: `action`.
        ts_episodes: numbers of TS's episodes, as a list or as `0:50,60`; null: all. Only with a single buffer.
        ta_episodes: the same for TA.
        action_low: lower bounds of the actions, one number for all dimensions or one each.
        action_high: upper bounds.
        drop_nan: leave out steps with a NaN instead of refusing them.
        clip_actions: bring actions within the given bounds instead of refusing them.
    """

    kind = "zarr"

    def __init__(
        self,
        ts: Patterns,
        ta: Patterns,
        features: list[str] | None = None,
        action: str = AUTO,
        ts_episodes: Choice | None = None,
        ta_episodes: Choice | None = None,
        action_low: float | list[float] | None = None,
        action_high: float | list[float] | None = None,
        drop_nan: bool = False,
        clip_actions: bool = False,
    ) -> None:
        super().__init__(ts, ta, action_low, action_high, drop_nan, clip_actions)
        self._columns = columns_of(features, action)
        self._episodes = {
            "ts": chosen_numbers("source.ts_episodes", ts_episodes),
            "ta": chosen_numbers("source.ta_episodes", ta_episodes),
        }

    def reading(self, name: str) -> Reading:
        paths, episodes = self._paths(name), self._episodes[name]
        if episodes is not None and len(paths) > 1:
            raise UserError(f"source.{name}_episodes: given for {len(paths)} buffers, expected a single one")
        with ZarrBuffer(paths[0]) as buffer:
            if buffer.images:
                log.info("%s: images are left out: %s", paths[0], ", ".join(buffer.images))
        files = [identity(path, ("data", "meta")) if path.is_dir() else file_identity(path) for path in paths]
        return Reading(
            paths,
            lambda path: ZarrBuffer(path, episodes),
            self._columns,
            [files, episodes],
            option="source.features ({})",
        )

    def _paths(self, name: str) -> list[Path]:
        def inside(folder: Path) -> list[Path]:
            return [folder] if is_zarr(folder) else sorted(path for path in folder.iterdir() if is_zarr(path))

        return places(f"source.{name}", self._patterns[name], inside, "a .zarr folder or a .zarr.zip")


def columns_of(features: list[str] | None, action: str | None = AUTO) -> Columns:
    """Which arrays of a buffer hold what."""
    return Columns(features or AUTO, action, None, None, None, None, "episode", None)
