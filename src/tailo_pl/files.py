"""Small text files: read with an error that names them, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tailo_pl.errors import UserError


def read_yaml(path: Path, expected: str) -> Any:
    """What a YAML file holds; `expected` says what it should be when it cannot be read."""
    try:
        return yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected {expected}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from error


def read_json(path: Path, expected: str = "a run's file") -> Any:
    """What a JSON file holds; `expected` says what it should be when it cannot be read."""
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected {expected}") from error
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error})") from error


def reason(error: OSError) -> str:
    """Why the system refused, in its words. (numpy only says how much of an array it could write.)"""
    if error.strerror:
        return error.strerror
    return "No space left on device" if "requested and" in str(error) else str(error)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that is whole or not there."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file that is whole or not there."""
    with whole_file(path) as scratch:
        scratch.write_text(text)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file, beside it and no one else's: renamed at the end, gone if anything went wrong."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
