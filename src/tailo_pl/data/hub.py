"""Data sets and policies of the Hugging Face Hub, fetched into this project's own cache as plain files."""

from __future__ import annotations

import logging
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from tailo_pl.data import cache
from tailo_pl.errors import UserError, one_line

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_COMPLETE = ".complete"
log = logging.getLogger(__name__)


def is_id(name: str) -> bool:
    """Whether this could be a repository's name, `org/name`."""
    return bool(_ID.fullmatch(name)) and ".." not in name


def data_set_folder(given: str, option: str, download: bool, revision: str | None = None) -> Path:
    """The folder of a data set: the one that is given, or that of the Hub's data set of this name, fetched if missing.

    Args:
        given: a path or an id.
        option: as the user calls it.
        download: fetch it if it is not there.
        revision: of the data set; None: its main one.
    """
    path = Path(given).expanduser()
    if path.exists() or not is_id(given):
        return path
    if not download:
        raise UserError(f"{option}: {given!r} is not there, expected a folder as source.download=false")
    return fetched(given, "dataset", ["meta/*", "data/*"], revision)


def fetched(name: str, kind: str, patterns: list[str], revision: str | None = None) -> Path:
    """A repository's files in a folder of the cache, fetched once: deleting the folder fetches them again.

    Plain files rather than the Hub's own cache, which is made of links.

    Args:
        name: of the repository.
        kind: dataset or model.
        patterns: which of its files.
        revision: None: the main one.
    """
    folder = cache.home() / "hub" / kind / name.replace("/", "--") / (revision or "main").replace("/", "--")
    if (folder / _COMPLETE).is_file():
        return folder
    try:
        client(name).snapshot_download(
            name,
            repo_type=kind,
            revision=revision,
            local_dir=folder,
            allow_patterns=patterns,
            max_workers=4,
            endpoint=os.environ.get("HF_ENDPOINT"),
        )
        (folder / _COMPLETE).touch()
    except UserError:
        raise
    except Exception as error:  # no network, no such repository, no permission: the library has an error for each
        raise UserError(f"{name}: neither a folder here nor to be had from the Hub ({one_line(error)})") from error
    log.info("%s: %s of the Hub, in %s", name, kind, folder)
    return folder


def client(name: str) -> Any:
    """The Hub's library."""
    try:
        hub, utilities = import_module("huggingface_hub"), import_module("huggingface_hub.utils")
    except ImportError as error:
        raise UserError(
            f"{name}: not there; taking it from the Hub needs huggingface_hub (pip install 'tailo_pl[robots]')"
        ) from error
    utilities.disable_progress_bars()
    return hub
