"""Source `minari`: datasets of the Minari library, from its own folder on this machine or downloaded by it."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tailo_pl.data import cache
from tailo_pl.data.formats.array_files import ArrayWriter
from tailo_pl.data.progress import listener
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.observations import Piece, follow, pieces
from tailo_pl.errors import UserError

_MAKER = 1  # of the cache entries: count up when the same dataset would be written differently
log = logging.getLogger(__name__)


class Minari(Source):
    """Minari datasets: a part is one dataset, whose trajectories all bear the dataset's id as their origin.

    A state is the observation as one row of float32, its pieces in the order of `tailo_pl.envs.observations.pieces`,
    which is that of env=gym too.

    Args:
        parts: Minari's id (`mujoco/hopper/expert-v0`) for each name of a part. A name not among them is an id itself.
        keys: pieces of the observation that make up the state; a key that holds others means all of them. None: all.
        download: let Minari download what is not on this machine.
    """

    def __init__(
        self, parts: dict[str, str] | None = None, keys: list[str] | None = None, download: bool = True
    ) -> None:
        if keys is not None and not keys:
            raise UserError("source.keys: an empty list given, expected keys of the observations, or null for all")
        self._parts, self._keys, self._download = dict(parts or {}), keys, download
        self._open: dict[str, tuple[Trajectories, str, Bounds | None]] = {}

    def part(self, name: str) -> Trajectories:
        return self._opened(name)[0]

    def fingerprint(self, name: str) -> str:
        return self._opened(name)[1]

    def describe(self) -> str:
        named = ", ".join(dict.fromkeys(self._parts.values())) or "datasets named by the setting"
        return f"minari: {named}" + (f" (keys {', '.join(self._keys)})" if self._keys else "")

    def action_bounds(self, name: str) -> Bounds | None:
        return self._opened(name)[2]

    def _opened(self, name: str) -> tuple[Trajectories, str, Bounds | None]:
        """The trajectories of a part, the name of their content, and the bounds of their actions."""
        if name not in self._open:
            dataset = _load(self._parts.get(name, name), self._download)
            identity = {"source": "minari", "maker": _MAKER, "keys": self._keys, **dataset.identity()}
            entry = f"minari-{dataset.id.replace('/', '-')}"
            trajectories = cache.cached(entry, identity, lambda folder: dataset.copy(folder, self._keys))
            self._open[name] = trajectories, cache.content_fingerprint(entry, identity), dataset.action_bounds()
        return self._open[name]


@dataclass(frozen=True)
class _Dataset:
    """A dataset that Minari has opened."""

    id: str
    folder: Path
    opened: Any

    def identity(self) -> dict[str, Any]:
        """What tells this dataset from another one, or from itself after a change."""
        files = [
            [path.relative_to(self.folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns]
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "metadata.json"  # holds notes, such as the author, that may change
        ]
        steps, version = self.opened.total_steps, self.opened.minari_version
        return {"dataset": self.id, "files": cache.fingerprint(files), "steps": steps, "minari": version}

    def copy(self, folder: Path, keys: Sequence[str] | None) -> None:
        """Write all steps into `folder` as a cache entry holds them, an episode at a time.

        Minari also has the state after an episode's last step. It is left out: nobody acted in it.
        """
        actions, wanted = self._action_piece(), self._observation_pieces(keys)
        episodes, total = self.opened.total_episodes, self.opened.total_steps
        if not episodes:
            raise _error(self.id, "no episodes found, expected at least one")
        tell = listener.get()
        starts: list[int] = []
        rows = seen = incomplete = 0
        with ArrayWriter(folder) as writer:
            for number, episode in self._episodes():
                steps = len(episode.rewards)
                seen += steps
                if not steps:
                    continue
                observed = [self._follow(piece, episode.observations, number) for piece in wanted]
                if all(len(values) == steps for values in observed):
                    # Some published datasets lost an observation in a few episodes (Minari's issue 199). Nothing says
                    # which one, so states and actions may be out of step.
                    incomplete += 1
                    continue
                states = [self._numbers(*pair, number, steps, steps + 1) for pair in zip(wanted, observed, strict=True)]
                writer.add(
                    {
                        "observations": np.concatenate(states, axis=1),
                        "actions": self._numbers(actions, episode.actions, number, steps, steps),
                        "rewards": self._column("rewards", episode, number),
                        "terminals": self._column("terminations", episode, number).astype(bool),
                        "timeouts": self._column("truncations", episode, number).astype(bool),
                    }
                )
                starts.append(rows)
                rows += steps
                tell(self.id, rows, total)
        if seen != total:
            raise _damaged(self.id, self.folder, f"{seen:,} steps found, expected {total:,} as its metadata says")
        if not starts:
            raise _error(self.id, "no episode with one more observation than actions found, expected at least one")
        if incomplete:
            left_out = f"{incomplete} of {episodes} episodes left out, which hold as many observations as actions"
            log.warning("source minari: %s: %s", self.id, left_out)
        np.save(folder / "starts.npy", np.array(starts, dtype=np.int64))
        cache.save_labels(folder, [self.id] * len(starts))

    def action_bounds(self) -> Bounds | None:
        """The bounds of the actions, unless some action has none."""
        low, high = self.opened.action_space.low.reshape(-1), self.opened.action_space.high.reshape(-1)
        bounded = np.isfinite(low).all() and np.isfinite(high).all()
        return (tuple(low.tolist()), tuple(high.tolist())) if bounded else None

    def _action_piece(self) -> Piece:
        space = self.opened.action_space
        if not isinstance(space, spaces.Box):
            raise _error(self.id, f"actions: space {type(space).__name__} found, expected Box (continuous actions)")
        return Piece("actions", (), int(np.prod(space.shape)))

    def _observation_pieces(self, keys: Sequence[str] | None) -> list[Piece]:
        """The pieces of the observation that were asked for, in that order."""
        try:
            return pieces(self.opened.observation_space, keys, "source.keys")
        except UserError as error:
            raise _error(self.id, str(error)) from error

    def _episodes(self) -> Iterator[tuple[int, Any]]:
        """Every episode with its number, read one at a time."""
        episodes: Iterator[Any] | None = None
        for number in range(self.opened.total_episodes + 1):
            try:
                episodes = episodes or iter(self.opened.iterate_episodes())
                episode = next(episodes, None)
            except Exception as error:  # on a damaged file Minari and the libraries below it raise all kinds
                raise _damaged(self.id, self.folder, f"episode {number} cannot be read ({_said(error)})") from error
            if episode is None:
                return
            yield number, episode

    def _follow(self, piece: Piece, field: Any, number: int) -> Any:
        try:
            return follow(field, piece)
        except (KeyError, IndexError, TypeError) as error:
            raise _damaged(self.id, self.folder, f"{piece.name}: none found in episode {number}") from error

    def _column(self, field: str, episode: Any, number: int) -> NDArray[np.float32]:
        steps = len(episode.rewards)
        return self._numbers(Piece(field, (), 1), getattr(episode, field), number, steps, steps)[:, 0]

    def _numbers(self, piece: Piece, values: Any, number: int, steps: int, expected: int) -> NDArray[np.float32]:
        """The first `steps` entries of the `expected` there should be, (steps, width)."""
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise _error(self.id, f"{piece.name}: type {array.dtype} found in episode {number}, expected numbers")
        if array.size != expected * piece.width or len(array) != expected:
            raise _damaged(
                self.id,
                self.folder,
                f"{piece.name}: shape {array.shape} found in episode {number}, "
                f"expected {expected} times {piece.width} numbers",
            )
        matrix = array[:steps].reshape(steps, piece.width)
        with np.errstate(over="ignore"):
            narrow = matrix.astype(np.float32, copy=False)
        if not np.isfinite(narrow).all():
            step, dimension = np.argwhere(~np.isfinite(narrow))[0]
            found = matrix[step, dimension]
            expectation = "a number within the range of float32" if np.isfinite(found) else "finite numbers"
            raise _error(
                self.id,
                f"{piece.name}: {found} found in episode {number}, step {step}, dimension {dimension}, "
                f"expected {expectation}",
            )
        return narrow


def _load(dataset_id: str, download: bool) -> _Dataset:
    """Open a dataset, downloading it first where that is needed and wanted."""
    try:
        minari = import_module("minari")
    except ModuleNotFoundError as error:
        raise UserError("source minari: needs the package minari (pip install 'tailo_pl[minari]')") from error
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except (ValueError, TypeError) as error:
        raise _error(dataset_id, f"not an id, expected NAMESPACE/NAME-vNUMBER{_hint(dataset_id)}") from error
    folder = _root() / dataset_id
    if not (folder / "data").exists():
        if not download:
            raise _error(
                dataset_id, f"not found in {_root()}, expected it there as source.download=false{_hint(dataset_id)}"
            )
        _download(minari, dataset_id)
    _require_spaces(dataset_id, folder)
    try:
        return _Dataset(dataset_id, folder, minari.load_dataset(dataset_id))
    except Exception as error:  # see _Dataset._episodes
        raise _damaged(dataset_id, folder, f"cannot be read ({_said(error)})") from error


def _download(minari: Any, dataset_id: str) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):  # Minari prints
            minari.download_dataset(dataset_id)
    except Exception as error:  # no network, no such dataset, no package for the remote's protocol
        raise _error(
            dataset_id, f"not found in {_root()} and cannot be downloaded ({_said(error)}){_hint(dataset_id)}"
        ) from error
    finally:
        for line in filter(None, map(str.strip, said.getvalue().splitlines())):
            log.info("minari: %s", line)


def _require_spaces(dataset_id: str, folder: Path) -> None:
    """Refuse a dataset that does not state its spaces.

    Minari would make the environment that the dataset names to ask it, and with that run whatever it names.
    """
    path = folder / "data" / "metadata.json"
    try:
        metadata = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise _damaged(dataset_id, folder, f"{path} cannot be read ({_said(error)})") from error
    for key in ("observation_space", "action_space"):
        if not isinstance(metadata, dict) or not isinstance(metadata.get(key), str):
            raise _error(dataset_id, f"{path}: no {key} found, expected the space's description")


def _root() -> Path:
    """Where Minari keeps its datasets."""
    where = import_module("minari.storage.datasets_root_dir")
    try:
        return Path(where.get_dataset_path())
    except OSError as error:
        raise UserError(f"source minari: {error.filename}: cannot be made ({error.strerror})") from error


def local_datasets() -> list[tuple[str, Path, int]]:
    """The datasets on this machine: id, folder, bytes. None where the package is missing."""
    if find_spec("minari") is None:
        return []
    folders = sorted(path.parents[1] for path in _root().rglob("data/metadata.json"))
    sizes = [sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) for folder in folders]
    return [(folder.relative_to(_root()).as_posix(), folder, size) for folder, size in zip(folders, sizes, strict=True)]


def _hint(dataset_id: str) -> str:
    """Datasets on this machine with a similar id."""
    near = difflib.get_close_matches(dataset_id, [name for name, _, _ in local_datasets()], n=3)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _said(error: Exception) -> str:
    """What an error of another library says, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _error(dataset_id: str, message: str) -> UserError:
    return UserError(f"source minari: {dataset_id}: {message}")


def _damaged(dataset_id: str, folder: Path, message: str) -> UserError:
    return _error(dataset_id, f"{message}; is the dataset in {folder} complete?")
