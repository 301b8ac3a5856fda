"""Small files: plain names for them, read with an error that names them, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from tailo_pl.errors import UserError, one_line

_NAME = re.compile(r"[\w-][\w.-]*")
_FILE_NAME = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")

# libyaml's parser, where PyYAML was built with it, is seven times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_DEEPEST, _MOST_NODES, _LARGEST_INT = 50, 100_000, 1 << 64  # of a file that people or we ourselves would write


def read_yaml(path: Path, expected: str) -> Any:
    """What a YAML file holds, a tree of plain values; `expected` says what it should be when it cannot be read."""
    try:
        text = path.read_text()
        _require_shallow(path, text)
        found = yaml.load(text, _LOADER)
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected {expected}") from error
    except Exception as error:  # values such as `!!bool x` make PyYAML raise whatever it runs into
        raise UserError(f"{path}: not valid YAML ({one_line(error) or type(error).__name__})") from error
    _require_plain(path, found)
    return found


def yaml_text(value: Any) -> str:
    """A value as YAML, in its own order."""
    text: str = yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text


def _require_shallow(path: Path, text: str) -> None:
    """Refuse what is nested too deeply before it is loaded: libyaml ends the process where its stack does."""
    depth = 0
    for event in yaml.parse(text, _LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UserError(f"{path}: values more than {_DEEPEST} levels deep found, expected fewer")


def _require_plain(path: Path, found: Any) -> None:
    """Refuse what JSON could not hold, and references (`*name`) that make much, or an endless tree, of little."""
    left, seen = [found], 0
    while left:
        value = left.pop()
        seen += 1
        if seen > _MOST_NODES:
            raise UserError(f"{path}: more than {_MOST_NODES:,} values found, expected fewer")
        if isinstance(value, dict):
            odd = next((key for key in value if not isinstance(key, str)), None)
            if odd is not None:
                raise UserError(f"{path}: key {one_line(repr(odd))} found, expected text")
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, int) and abs(value) >= _LARGEST_INT:  # Python refuses to write the largest ones out
            raise UserError(f"{path}: a number of {value.bit_length()} bits found, expected at most 64")
        elif not (value is None or isinstance(value, (str, int, float))) or not can_be_written(value):
            raise UserError(f"{path}: {one_line(repr(value))} found, expected text, a number, true, false or null")


def can_be_written(value: Any) -> bool:
    """Whether a value has no halves of characters, which cannot be written to a file or a terminal."""
    try:
        return not isinstance(value, str) or bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def read_json(path: Path, expected: str = "a run's file") -> Any:
    """What a JSON file holds; `expected` says what it should be when it cannot be read."""
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}), expected {expected}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({one_line(error)})") from error


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


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as `.npy`, whole or not at all."""
    with whole_file(path) as scratch, scratch.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write arrays as `.npz`, whole or not at all."""
    with whole_file(path) as scratch, scratch.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_arrays(path: Path, names: Iterable[str], expected: str) -> list[NDArray[Any]]:
    """These arrays of an `.npz`; `expected` says what it should be when it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in names]
    except Exception as error:  # a damaged archive raises whatever its reader runs into
        raise UserError(f"{path}: cannot be read as {expected} ({one_line(error)})") from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file, beside it and no one else's: renamed at the end, gone if anything went wrong.

    Nothing is written through a link: one at the file's place is replaced, one at the scratch file's removed.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # O_EXCL: a new file, or none
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Where to fill a new folder, beside it: renamed at the end, gone if anything went wrong."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        scratch.mkdir(parents=True)
        yield scratch
        os.replace(scratch, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def require_name(what: str, value: Any) -> str:
    """`value`, which must be usable as the name of a folder and harmless as one; `what` is what the user calls it."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise UserError(f"{what}: {value!r} found, expected a name of letters, digits, '_', '-' and '.', '.' not first")
    return value


def require_file_name(what: str, value: Any) -> str:
    """`value`, which must name a file or a folder right here: anything without separators that is not hidden."""
    if not is_plain(value) or "/" in value:
        raise UserError(f"{what}: {value!r} given, expected a plain folder name")
    return str(value)


def is_plain(value: Any) -> bool:
    """Whether this is a relative path of plain names: nothing absolute, nothing upwards, nothing hidden."""
    return isinstance(value, str) and all(_FILE_NAME.fullmatch(part) for part in value.split("/"))
