"""Finished stages: what is kept of each, found again by its key and shared between runs."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch.distributed as dist

from tailo_pl.files import is_plain, write_json, write_text
from tailo_pl.locks import turn
from tailo_pl.runs.inside import is_own_file, real, require_inside
from tailo_pl.training.ranks import is_first, wait_for_all

INDEX = ".stages"  # under the runs' root: key of a finished stage -> its folder


@dataclass(frozen=True)
class StageResult:
    """What is known of a finished stage; written to `stage.json` as the last act of it."""

    schema: int
    stage: str
    key: str
    steps: int
    loss: float | None
    seconds: float
    cpu_seconds: float
    checkpoint: str
    evaluations: list[dict[str, Any]]
    chosen_step: int
    stopped: str
    """why training ended at that step"""
    quality: dict[str, float] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    """what it read of earlier stages and what it hands on: without one of them it is not finished"""
    diverged: int | None = None
    """the step at which a number was no longer finite"""
    reused_from: str | None = None


def finished(folder: Path, key: str) -> StageResult | None:
    """The result of a stage in its folder, where it is whole and of this key."""
    try:
        result = StageResult(**json.loads((folder / "stage.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    if result.key != key or not is_plain(result.checkpoint) or not isinstance(result.files, list):
        return None
    if not isinstance(result.quality, dict):
        return None
    expected = [*result.files, *([result.checkpoint] if result.diverged is None else [])]
    return result if all(is_own_file(folder, name) for name in expected) else None


def reuse(root: Path, folder: Path, key: str) -> None:
    """Copy a finished stage of another run: small files, and each run stays whole when others are deleted."""
    known = require_inside(root / INDEX, root)
    try:
        where = (known / key).read_text().strip() if is_own_file(known, key) else ""
    except (OSError, UnicodeDecodeError):
        return
    if not is_plain(where):
        return
    other = root / where
    result = finished(other, key) if real(other) == other else None
    if result is None:
        return
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(other, scratch, ignore=_links)
    reused = StageResult(**{**asdict(result), "reused_from": str(other.relative_to(root))})
    write_json(scratch / "stage.json", asdict(reused))
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(scratch, folder)


def _links(folder: str, names: list[str]) -> list[str]:
    """What is not copied: links, and whatever else is neither a file nor a folder."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if path.is_symlink() or not (path.is_file() or path.is_dir())]


def index(root: Path, folder: Path, key: str) -> None:
    """Let other runs find a finished stage."""
    write_text(_index(root) / key, str(real(folder).relative_to(root)))


def training_alone(root: Path | None, key: str) -> AbstractContextManager[None]:
    """Only one run at a time trains a stage; others that want the same one wait, and then reuse it.

    Of a run of several processes none waits: the others would wait for it, and lose patience.
    """
    if root is None or dist.is_initialized():
        return nullcontext()
    return turn(_index(root) / f".{key}.lock", "a stage that another run is training too")


def finished_anywhere(root: Path | None, folder: Path, key: str) -> StageResult | None:
    """The result of a stage that is finished, in its folder or in another run."""
    if is_first() and root is not None and finished(folder, key) is None:
        reuse(root, folder, key)
    wait_for_all()
    return finished(folder, key)


def _index(root: Path) -> Path:
    where = require_inside(root / INDEX, root)
    where.mkdir(exist_ok=True)
    return where
