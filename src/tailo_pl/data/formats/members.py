"""Files inside a data set's folder: none outside of it is ever opened, whatever the data set says."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from tailo_pl.errors import UserError, one_line
from tailo_pl.files import is_plain

_LARGEST_TEXT = 256 << 20


def member(folder: Path, relative: str, expected: str) -> Path:
    """A file of the folder by its relative name: no way upwards, no link at any place of it.

    Args:
        folder: of the data set. It may be a link itself: the user has named it.
        relative: as the data set names the file.
        expected: what should be there.
    """
    if not is_plain(relative):
        raise UserError(f"{folder}: {one_line(repr(relative))} found as a file's name, expected a path inside")
    path = folder
    for part in relative.split("/"):
        path = path / part
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            raise UserError(f"{folder}: {relative} cannot be read ({error.strerror}), expected {expected}") from error
        if stat.S_ISLNK(mode):
            raise UserError(f"{folder}: {relative} is a link or behind one, expected a file of this folder")
    if not stat.S_ISREG(mode):
        raise UserError(f"{folder}: {relative} is no file, expected {expected}")
    return path


def read_member_json(folder: Path, relative: str, expected: str) -> Any:
    """What a JSON file of the folder holds."""
    return _parsed(folder, relative, read_member(folder, relative, expected))


def read_member_lines(folder: Path, relative: str, expected: str) -> list[Any]:
    """What each line of a file of JSON lines holds."""
    lines = read_member(folder, relative, expected).splitlines()
    return [_parsed(folder, f"{relative}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]


def read_member(folder: Path, relative: str, expected: str) -> str:
    """The text of a file of the folder."""
    path = member(folder, relative, expected)
    try:
        if path.stat().st_size > _LARGEST_TEXT:
            raise UserError(f"{folder}: {relative} has {path.stat().st_size:,} bytes, expected {expected}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder}: {relative} cannot be read ({error.strerror}), expected {expected}") from error
    except ValueError as error:
        raise UserError(f"{folder}: {relative} is not UTF-8 text, expected {expected}") from error


def _parsed(folder: Path, where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{folder}: {where}: not valid JSON ({one_line(error)})") from error


def identity(folder: Path, names: tuple[str, ...]) -> list[list[object]]:
    """What changes when one of a folder's files does: name, size and time of all below these names."""
    found: list[list[object]] = []
    for name in names:
        for place, _, files in os.walk(folder / name):
            for file in files:
                path = os.path.join(place, file)
                status = os.lstat(path)
                found.append([os.path.relpath(path, folder), status.st_size, status.st_mtime_ns])
    return [[str(folder.resolve()), 0, 0], *sorted(found, key=str)]
