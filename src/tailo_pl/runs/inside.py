"""A run folder may come from anyone: its names are plain, and whatever is written or removed lies inside of it."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tailo_pl.errors import UserError
from tailo_pl.files import is_plain

# What a killed process leaves of the files (`tailo_pl.files.whole_file`) and of the folders that a run writes.
_SCRATCH_FILE = re.compile(r"\.(.+\.(ckpt|csv|json|npy|npz|yaml)|\.key)\.\d+")
_SCRATCH_FOLDER = re.compile(r"\.[\w-][\w.-]*\.\d+")
_LINKS_OF_ITS_OWN = "wandb"  # Weights & Biases keeps links within its folder


def is_own_file(folder: Path, name: Any) -> bool:
    """Whether `folder` has this file itself, not by way of a link."""
    return is_plain(name) and (folder / name).is_file() and real(folder / name) == real(folder) / name


def require_inside(path: Path, folder: Path) -> Path:
    """`path`, which must lie inside `folder` and not be a link."""
    if path.is_symlink() or real(folder) not in real(path).parents:
        raise UserError(f"{path}: leads to {str(real(path))!r}, expected a place of its own inside {folder}")
    return path


def real(path: Path) -> Path:
    """Where a path leads once links are followed. (Unlike `Path.resolve` it takes links in a circle as well.)"""
    return Path(os.path.realpath(path))


def require_there(folder: Path, names: Iterable[str]) -> None:
    """Raise `UserError` where files are missing that a run at work has written: the folder was removed under it."""
    for name in names:
        if not (folder / name).is_file():
            raise UserError(
                f"{folder}: {name} has vanished while the run was at work, expected it to stay; run it again"
            )


def require_own(run_dir: Path) -> None:
    """Raise `UserError` where a run folder holds a link, or anything else that is neither a file nor a folder.

    Whoever writes to such a name would write elsewhere.
    """
    for folder, folders, files in os.walk(run_dir):
        for name in (*folders, *files):
            path = Path(folder, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # another process is at work here, as the lock will tell
                continue
            if stat.S_ISLNK(mode):
                if not _within_its_folder(path, run_dir):
                    raise UserError(f"{path}: a link to {os.readlink(path)!r}, expected no links in a run; remove it")
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UserError(f"{path}: neither a file nor a folder, expected one of them; remove it")


def _within_its_folder(link: Path, run_dir: Path) -> bool:
    """Whether a link is of those that Weights & Biases keeps, and leads to its folder."""
    for folder in link.parents:
        if folder == run_dir:
            break
        if folder.name == _LINKS_OF_ITS_OWN:
            return real(folder) in real(link).parents
    return False


def clear_scratch(run_dir: Path) -> None:
    """Remove what processes that were killed amid writing have left. Only for who holds the run's lock."""
    for folder, folders, files in os.walk(run_dir):
        for name in files:
            if _SCRATCH_FILE.fullmatch(name):
                Path(folder, name).unlink(missing_ok=True)
        for name in folders:
            if Path(folder) == run_dir and _SCRATCH_FOLDER.fullmatch(name):
                shutil.rmtree(run_dir / name)
