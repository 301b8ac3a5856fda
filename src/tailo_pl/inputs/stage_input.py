"""StageInput: what a stage reads beside its task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tailo_pl.data.settings import Setting, Task


@dataclass(frozen=True)
class Origin:
    """What inputs are made from.

    Args:
        task: TS and TA.
        setting: how they were cut.
        fingerprint: names the content of the task.
        handed_on: reads what an earlier stage handed on: its name, then that of the output.
    """

    task: Task
    setting: Setting
    fingerprint: str
    handed_on: Callable[[str, str], NDArray[Any]]


class StageInput(ABC):
    """An array made before a stage is trained, from the task and what earlier stages handed on.

    An input of its own is one dataclass: its fields are what a configuration gives and, with `version`, its whole
    identity, so a stage is trained anew when one of them changes.
    """

    version = 1  # raised when the same fields come to mean another array (annotated, it would hide the fields' types)

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the earlier stages it reads."""
        return ()

    def check(self, task: Task, setting: Setting) -> None:
        """Raise `UserError` if the task lacks what this input needs. Called before anything is trained."""
        return None

    @abstractmethod
    def make(self, origin: Origin) -> NDArray[Any]:
        """The array."""

    def identity(self, keys: Mapping[str, str]) -> dict[str, Any]:
        """What decides the array: the class, its fields, and the keys of the stages it reads."""
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return {"class": name, "version": self.version, **vars(self), "stages": [keys[stage] for stage in self.stages]}
