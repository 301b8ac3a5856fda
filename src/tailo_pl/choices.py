"""What Hydra says of a wrong override, said in one line with what would be right."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def choices(group: str) -> list[str]:
    """The choices of a config group, by file name."""
    folder = Path(str(files("tailo_pl.configs"))) / group
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


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
    if found := re.search(r"Could not find '(\w+)/([^']+)'", text):
        group, choice = found.groups()
        there = [name for name in choices(group) if not name.startswith("default_for_")]
        near = difflib.get_close_matches(choice, there, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"{group}: {choice!r} given, expected one of {', '.join(there)}{hint}"
    if found := re.search(r"Could not override '([^']+)'", text):
        return f"{found.group(1)}: unknown key; `tailo train --cfg job` lists the keys there are"
    if found := re.search(r"Value '(.*)' of type '\w+' could not be converted to (\w+).*full_key: (\S+)", text):
        value, kind, key = found.groups()
        return f"{key}: {value!r} given, expected {kind.lower()}"
    if found := re.search(r"Missing mandatory value.*full_key: (\S+)", text):
        return f"{found.group(1)}: not given, expected {found.group(1)}=..."
    if found := re.search(r"Interpolation key '([^']+)' not found.*full_key: (\S+)", text):
        missing, key = found.groups()
        return f"{key}: needs {missing}, which is not there"
    return f"config: {text}"
