"""Source `d4rl`: D4RL's published files, from D4RL's own folder on this machine or downloaded into it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tailo_pl.data import cache
from tailo_pl.data.download import fetch
from tailo_pl.data.formats import open_file
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.hdf5 import Hdf5File
from tailo_pl.data.formats.imports import import_files
from tailo_pl.data.formats.step_reader import Ending
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.d4rl_datasets import DATASETS, dataset_path
from tailo_pl.data.sources.recipe import Recipe
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.bodies import D4RL as BODY
from tailo_pl.errors import UserError

_MAKER = 1  # of the cache entries: count up when the same file would be written differently
_SUFFIXES = (".hdf5", ".h5")
_OPTIONAL = ("rewards", "terminals", "timeouts")


class D4RL(Source):
    """D4RL's datasets: a part is one file, all trajectories of which bear the dataset's name as their origin.

    A trajectory ends with a terminal or a timeout; where a file has no timeouts also after the episode length of its
    task. What is left behind the last end is a trajectory as well.

    Args:
        parts: for each name of a part a dataset (`hopper-expert-v2`), or the path of a file of D4RL's layout or of the
            method's authors (`.pt`). A name not among them is one of these itself; one that is None is made here.
        download: download what is not on this machine.
        recipe: how the environment makes data; None: it makes none.
    """

    def __init__(
        self, parts: dict[str, str | None] | None = None, download: bool = True, recipe: Recipe | None = None
    ) -> None:
        self._parts = {name: wanted for name, wanted in (parts or {}).items() if wanted is not None}
        self._made = None if recipe is None else Bundled("d4rl", recipe)
        self._not_published = set(parts or {}) - set(self._parts)
        self._download = download
        self._open: dict[str, tuple[Trajectories, str]] = {}

    def part(self, name: str) -> Trajectories:
        return self._opened(name)[0]

    def fingerprint(self, name: str) -> str:
        return self._opened(name)[1]

    def recipe(self, name: str) -> str:
        if name in self._not_published and self._made is not None:
            return self._made.recipe(name)
        return self.fingerprint(name)

    def describe(self) -> str:
        used = [self._parts.get(name, name) for name in self._open]
        return f"d4rl: {', '.join(used) or 'no dataset opened yet'}"

    def body(self, name: str) -> str | None:
        if name in self._not_published and self._made is not None:
            return self._made.body(name)
        return BODY if self._parts.get(name, name).startswith("antmaze") else None

    def action_bounds(self, name: str) -> Bounds | None:
        # D4RL scales the actions of all its tasks to [-1, 1] but those of these three.
        wanted = self._parts.get(name, name)
        if wanted not in DATASETS or wanted.startswith(("flow", "carla", "minigrid")):
            return None
        width = self.part(name).actions.shape[1]
        return (-1.0,) * width, (1.0,) * width

    def _opened(self, name: str) -> tuple[Trajectories, str]:
        """The trajectories of a part, and the name of their content."""
        if name in self._not_published and self._made is not None:
            return self._made.part(name), self._made.fingerprint(name)
        if name not in self._open:
            file = self._file(name)
            identity = file.identity()
            entry = f"d4rl-{file.label}"
            trajectories = cache.cached(entry, identity, file.copy)
            self._open[name] = trajectories, cache.content_fingerprint(entry, identity)
        return self._open[name]

    def _file(self, name: str) -> _File:
        wanted = self._parts.get(name, name)
        if "/" in wanted or wanted.endswith((*_SUFFIXES, ".pt")):
            path = Path(wanted).expanduser()
            return _File(path, path.stem, None)
        if wanted not in DATASETS:
            near = difflib.get_close_matches(wanted, DATASETS, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "expected a name of `tailo data list d4rl`"
            raise UserError(
                f"source d4rl: part {name}: no dataset {wanted!r}, {hint} (a file: source.parts.{name}=PATH.hdf5)"
            )
        path, dataset = dataset_path(wanted), DATASETS[wanted]
        if not path.exists():
            if not self._download:
                raise UserError(
                    f"{path}: not there, expected the file of {wanted} as source.download=false; it is published as "
                    f"{dataset.url}, and source=bundled needs no file"
                )
            fetch(dataset.url, path, check=_require_steps)
        return _File(path, wanted, dataset.horizon)


@dataclass(frozen=True)
class _File:
    """A file of D4RL's layout.

    Args:
        path: where it is.
        label: what people call it.
        horizon: episode length of its task; None: not known.
    """

    path: Path
    label: str
    horizon: int | None

    def identity(self) -> dict[str, object]:
        """What tells this file from another one, or from itself after a change."""
        try:
            status = self.path.stat()
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error.strerror}), expected a file of D4RL") from error
        return {
            "source": "d4rl",
            "maker": _MAKER,
            "file": str(self.path.resolve()),
            "size": status.st_size,
            "changed": status.st_mtime_ns,
            "horizon": self.horizon,
        }

    def copy(self, folder: Path) -> None:
        """Write all steps into `folder` as a cache entry holds them."""
        if self.path.suffix == ".pt":
            import_files([self.path], open_file, folder, Columns())
        else:
            import_files([self.path], Hdf5File, folder, self._columns(), ending=Ending(horizon=self.horizon))
        trajectories = len(np.load(folder / "starts.npy"))
        cache.save_labels(folder, [self.label] * trajectories)

    def _columns(self) -> Columns:
        """D4RL's own names and no others; its next observations repeat what the next row says."""
        with Hdf5File(self.path) as file:
            there = [name for name in file.fields if "/" not in name]
        found = {role: role if role in there else None for role in _OPTIONAL}
        for role in [role for role, name in found.items() if name is None]:
            _refuse_typo(self.path, role, there)
        if self.horizon is None and not found["terminals"] and not found["timeouts"]:
            raise UserError(f"{self.path}: no field terminals found among {', '.join(there)}, expected it or timeouts")
        return Columns("observations", "actions", None, **found, episode=None, step=None)


def _refuse_typo(path: Path, role: str, there: Iterable[str]) -> None:
    """A field that nearly has the name was probably meant: without it the data would silently be other data."""
    near = difflib.get_close_matches(role, there, n=1, cutoff=0.8)
    if near:
        raise UserError(f"{path}: field {near[0]} found, expected {role}")


def _require_steps(path: Path) -> None:
    """Refuse a download that is not D4RL's: opens, finds all storage and reads the first steps."""
    with Hdf5File(path) as file:
        for name in ("observations", "actions"):
            if name not in file.fields:
                raise UserError(f"{path}: no field {name} found, expected D4RL's layout")
        if next(file.batches(["observations", "actions"]), None) is None:
            raise UserError(f"{path}: no rows found, expected at least one step")
