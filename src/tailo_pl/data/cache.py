"""Recorded data on disk: memory-mapped arrays under a name that says what they are, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.rows import Rows
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.files import reason, require_file_name
from tailo_pl.locks import turn

SCHEMA = 1
log = logging.getLogger(__name__)
EntryT = TypeVar("EntryT")


def home() -> Path:
    """Where caches live: TAILO_HOME, or ~/.cache/tailo_pl."""
    return Path(os.environ.get("TAILO_HOME") or Path.home() / ".cache" / "tailo_pl")


def fingerprint(identity: Any) -> str:
    """A short name for anything that JSON can write."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def cached(name: str, identity: Mapping[str, Any], fill: Callable[[Path], None]) -> Trajectories:
    """Trajectories from disk, made first where they are not there.

    Args:
        name: what people call them.
        identity: everything that decides their content; part of the entry's name.
        fill: writes them into the folder it is given, as `save` does.
    """
    return _cached(name, identity, fill, read)


def cached_array(name: str, identity: Mapping[str, Any], make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """An array from disk, made first where it is not there; arguments as of `cached`."""
    return _cached(
        name, identity, lambda folder: np.save(folder / f"{name}.npy", make()), lambda folder: _arrays(folder)[name]
    )


def _cached(
    name: str, identity: Mapping[str, Any], fill: Callable[[Path], None], read: Callable[[Path], EntryT]
) -> EntryT:
    folder = entry_folder(name, identity)
    found, _ = _open(folder, read)
    if found is not None:
        return found
    # Lock and scratch folder come before the work, so that a cache that cannot be written is found at once.
    scratch = folder.with_name(f".making-{folder.name}")
    with _writing(folder), turn(_make_folder(home() / "locks") / f"{folder.name}.lock", str(folder)):
        found, damage = _open(folder, read)
        if found is not None:  # another process has made it meanwhile
            return found
        if damage:
            log.warning("%s: damaged cache entry (%s), building it again", folder, damage)
            shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        _make_folder(scratch)
        try:
            fill(scratch)
            publish(scratch, folder, identity)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return read(folder)


def _open(folder: Path, read: Callable[[Path], EntryT]) -> tuple[EntryT | None, str]:
    """An entry, or what is wrong with it (nothing, where there is none)."""
    if not folder.exists():
        return None, ""
    try:
        return read(folder), ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        return None, str(error)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{folder}: cannot write the data cache ({reason(error)})") from error


def content_fingerprint(name: str, identity: Mapping[str, Any]) -> str:
    """A short name for what an entry holds, from its manifest."""
    return folder_fingerprint(entry_folder(name, identity))


def folder_fingerprint(folder: Path) -> str:
    """A short name for what a folder written by `publish` holds."""
    return fingerprint(json.loads((folder / "manifest.json").read_text())["sha256"])


def entry_folder(name: str, identity: Mapping[str, Any]) -> Path:
    """Where an entry is, or would be."""
    return home() / "data" / f"{require_file_name('data', name)}-{fingerprint({'schema': SCHEMA, **identity})}"


def save(trajectories: Trajectories, folder: Path) -> None:
    """Write trajectories as `read` wants them. (Without index and offsets an entry means all of its steps.)"""
    arrays = {
        **trajectories.recording.arrays(),
        "starts": trajectories.recording.starts,
        "index": trajectories.index,
        "offsets": trajectories.offsets,
    }
    for key, array in arrays.items():
        np.save(folder / f"{key}.npy", array)
    save_labels(folder, trajectories.origins.tolist())
    save_names(folder, trajectories.recording.state_names, trajectories.recording.action_names)


def save_names(folder: Path, states: Sequence[str], actions: Sequence[str]) -> None:
    """Write what the numbers of states and actions are called, where the recording says so."""
    for key, names in (("state_names", states), ("action_names", actions)):
        if names:
            np.save(folder / f"{key}.npy", np.array(names, dtype=np.str_))


def save_labels(folder: Path, origins: Sequence[str]) -> None:
    """Write the label of each trajectory."""
    np.save(folder / "origins.npy", np.array(origins, dtype=np.str_))


def publish(scratch: Path, folder: Path, identity: Mapping[str, Any]) -> None:
    """Add the manifest to a filled folder, then rename it: `folder` appears at once and whole."""
    digests = {path.stem: _digest(path) for path in sorted(scratch.glob("*.npy"))}
    manifest = {"schema": SCHEMA, "identity": dict(identity), "sha256": digests}
    (scratch / "manifest.json").write_text(json.dumps(manifest, indent=1))
    os.replace(scratch, folder)


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot write the data cache ({error.strerror}); set TAILO_HOME") from error
    return folder


def read(folder: Path) -> Trajectories:
    """Open trajectories written by `publish`."""
    arrays = _arrays(folder)
    origins = np.asarray(arrays.pop("origins"))
    if "index" not in arrays:
        return Trajectories.of(recorded(arrays), origins)
    index, offsets = (np.asarray(arrays.pop(key)) for key in ("index", "offsets"))
    return Trajectories(recorded(arrays), Rows.of(index), offsets, origins)


def recorded(arrays: dict[str, NDArray[Any]]) -> Recording:
    """A recording of what `save` writes of it."""
    names: dict[str, Any] = {
        key: tuple(arrays.pop(key).tolist()) for key in ("state_names", "action_names") if key in arrays
    }
    return Recording(starts=np.asarray(arrays.pop("starts")), **names, **arrays)  # type: ignore[arg-type]


def _arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """What an entry holds, checked against its manifest, as copy-on-write memory maps."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if manifest["schema"] != SCHEMA:
        raise UserError(f"{folder}: schema {manifest['schema']} found, this version reads {SCHEMA}")
    arrays = {}
    for key, digest in manifest["sha256"].items():
        path = folder / f"{key}.npy"
        if _digest(path) != digest:
            raise UserError(f"{path}: content differs from the manifest's checksum")
        arrays[key] = np.load(path, mmap_mode="c", allow_pickle=False)
    return arrays


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
