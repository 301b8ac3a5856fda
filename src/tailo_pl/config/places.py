"""Where a saved configuration may let a run write: in the run's own folder, and in those the user has allowed.

Trainer, profilers and loggers take options that name places. On the user's own command line they may be anything; in
the folder of a run, which may come from elsewhere, they may not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tailo_pl.errors import UserError
from tailo_pl.runs.inside import real

VARIABLE = "TAILO_ALLOW_FOLDERS"  # how the processes of a run learn which folders were allowed
# Options that name a place from the working directory on, whatever they hold.
_PLACE = re.compile(r"(\w+_)?(dir|dirs|dirpath|directory|file|folder|location|path|paths|root|uri|url)")
# Options that name something below the folder of the log.
_BELOW = frozenset({"filename", "filename_suffix", "name", "sub_dir", "version"})
# Options that never become a path.
_LABELS = frozenset(
    {"class_path", "entity", "experiment_name", "group", "monitor", "notes", "prefix", "project", "tags"}
)
_SERVER = re.compile(r"(https?|databricks|(postgresql|mysql|mssql)(\+\w+)?)://[^/]")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")


def allow_folders(folders: Iterable[str]) -> None:
    """Let saved configurations write to these folders, in this process and those it starts."""
    os.environ[VARIABLE] = os.pathsep.join([*_allowed(), *(str(real(Path(folder))) for folder in folders)])


def require_own_places(config: Mapping[str, Any], path: Path, folder: Path) -> None:
    """Raise `UserError` where trainer or logger of a saved configuration would write outside of a folder.

    Args:
        config: the configuration.
        path: its file, for the message.
        folder: where it may write.
    """
    inside = [real(folder), *map(Path, _allowed())]
    for group in ("trainer", "logger", "callbacks"):
        for field, key, text in _strings(group, group, config.get(group)):
            if not _harmless(key, text, inside):
                raise UserError(
                    f"{path}: {field}: {text!r} found, expected a place inside {folder} "
                    "(--allow-folder FOLDER lets a saved configuration write there)"
                )


def _strings(field: str, key: str, value: Any) -> Iterable[tuple[str, str, str]]:
    """Every text below a field: its full name, the option it belongs to, and the text."""
    if isinstance(value, str):
        yield field, key, value
    elif isinstance(value, Mapping):
        for inner, one in value.items():
            yield from _strings(f"{field}.{inner}", key if key in _LABELS else str(inner), one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _strings(f"{field}[{number}]", key, one)


def _harmless(key: str, text: str, inside: list[Path]) -> bool:
    if key in _LABELS or (key == "tracking_uri" and _SERVER.match(text)):
        return True
    if key == "tracking_uri" and not set("%?") & set(text):  # MLflow's, of a database and of a folder on this machine
        text = text.removeprefix("sqlite:///").removeprefix("file://")
    marked = "/" in text or "\\" in text or text.startswith("~") or text == ".."
    if key in _BELOW:
        below = not (Path(text).is_absolute() or ".." in Path(text).parts or "\\" in text or text.startswith("~"))
        return not marked or (below and "://" not in text)
    if not marked and not _PLACE.fullmatch(key):
        return True
    if _SCHEME.match(text) or "\\" in text or text.startswith("~"):
        return False
    if "\0" in text:
        return False
    return any(real(Path(text)).is_relative_to(folder) for folder in inside)


def _allowed() -> list[str]:
    return [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
