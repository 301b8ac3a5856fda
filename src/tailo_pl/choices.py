"""What Hydra says of a wrong override, said in one line with what would be right."""

from __future__ import annotations

import difflib
import re
from importlib.resources import files
from pathlib import Path


def choices(group: str) -> list[str]:
    """The choices of a config group, by file name."""
    folder = Path(str(files("tailo_pl.configs"))) / group
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


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
