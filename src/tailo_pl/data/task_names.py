"""Names of a task's data: by what is in it, and by what it comes from."""

from __future__ import annotations

from collections.abc import Callable

from tailo_pl.data.cache import fingerprint
from tailo_pl.data.settings import Setting
from tailo_pl.data.sources.source import Source


def task_fingerprint(source: Source, setting: Setting) -> str:
    """Names the data of a task: the content of the parts, the setting and its parameters."""
    return _task_name(setting, source.fingerprint)


def task_recipe(source: Source, setting: Setting) -> str:
    """Names a task by what its parts come from, which is the same on every machine."""
    return _task_name(setting, source.recipe)


def _task_name(setting: Setting, name: Callable[[str], str]) -> str:
    parts = [name(part) for part in setting.parts]
    return fingerprint({"parts": parts, "setting": type(setting).__qualname__, "parameters": vars(setting)})
