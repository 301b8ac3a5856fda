"""Where configurations are, what can be chosen there, and what Hydra says of a wrong choice, in one line."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig


_own: list[Path] = []  # the user's own folder, searched behind the package's; empty: there is none


def use_folder(path: Path | None) -> None:
    """Search this folder too, until told otherwise: its `env/mine.yaml` is `env=mine`."""
    _own.clear()
    if path is None:
        return
    if not path.is_dir():
        raise UserError(f"--config-dir: {str(path)!r} given, expected a folder")
    (package,) = folders()
    for file in path.rglob("*.yaml"):
        if (package / file.relative_to(path)).exists():  # Hydra would take the package's without a word
            raise UserError(f"--config-dir: {file}: tailo_pl has a file of this name, expected another name")
    _own.append(path.resolve())


def folders() -> list[Path]:
    """Where configurations are: the package's folder first, then the user's."""
    return [Path(str(files("tailo_pl.configs"))), *_own]


def search_flag() -> list[str]:
    """What makes Hydra's command line search the user's folder. (Unlike an override it may stand between flags.)"""
    return [f"--config-dir={path}" for path in _own]


def search_override() -> list[str]:
    """What makes Hydra's `compose` search the user's folder."""
    quoted = [str(path).replace("\\", "\\\\").replace("'", "\\'") for path in _own]
    return [f"hydra.searchpath=['file://{path}']" for path in quoted]


def groups() -> list[str]:
    """The groups there are choices of."""
    found = {path.name for folder in folders() for path in folder.iterdir() if any(path.rglob("*.yaml"))}
    return sorted(found)


def choices(group: str) -> list[str]:
    """The choices of a config group, by file name."""
    return sorted({name for folder in folders() for name in _files(folder / group)})


def choice_file(group: str, name: str) -> Path:
    """The file of one of the `choices`."""
    return next(path for folder in folders() if (path := folder / group / f"{name}.yaml").exists())


def _files(folder: Path) -> list[str]:
    """Without those that begin with an underscore, which are parts of others."""
    found = (path for path in folder.rglob("*.yaml") if not path.name.startswith("_"))
    return [path.relative_to(folder).with_suffix("").as_posix() for path in found]


def resolved(config: DictConfig) -> dict[str, Any]:
    """A composed configuration with every reference in it followed."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        values: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(_not_among(str(error), config) or explain(str(error))) from error
    return dict(values)


def _not_among(message: str, config: DictConfig) -> str:
    """What a reference that leads nowhere could have named instead; empty where nothing is known."""
    from omegaconf import OmegaConf

    found = re.search(r"Interpolation key '([^']+)' not found", message)
    node: Any = OmegaConf.to_container(config)
    path: list[str] = []
    for part in found.group(1).split(".") if found else ():
        if not isinstance(node, dict):
            break
        if part not in node:
            return f"{'.'.join(path)}: {part!r} asked for, expected one of {', '.join(map(str, node))}" if path else ""
        node = node[part]
        path.append(part)
    return ""


def explain(message: str) -> str:
    """Hydra's message as one line that names the thing and what is allowed."""
    text = " ".join(message.split())
    if found := re.search(r"Could not find '([\w/]+)/([^'/]+)' Available options in '[^']+': (.*?) Config ", text):
        group, choice, there = found[1], found[2], found[3].split()
        near = difflib.get_close_matches(choice, there, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"{group}: {choice!r} given, expected one of {', '.join(there)}{hint}"
    if found := re.search(r"Value '(.*)' of type '\w+' could not be converted to (\w+).*full_key: (\S+)", text):
        value, kind, key = found.groups()
        return f"{key}: {value!r} given, expected {kind.lower()}"
    if found := re.search(r"Missing mandatory value.*full_key: (\S+)", text):
        return f"{found.group(1)}: not given, expected {found.group(1)}=..."
    if found := re.search(r"Interpolation key '([^']+)' not found.*full_key: (\S+)", text):
        missing, key = found.groups()
        return f"{key}: needs {missing}, which is not there"
    return f"config: {text}"
