"""HandedOn: an array of an earlier stage, as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tailo_pl.inputs.stage_input import Origin, StageInput


@dataclass(frozen=True)
class HandedOn(StageInput):
    """What an earlier stage hands on.

    Args:
        stage: its name.
        output: which of its outputs.
    """

    stage: str
    output: str

    @property
    def stages(self) -> tuple[str, ...]:
        return (self.stage,)

    def make(self, origin: Origin) -> NDArray[Any]:
        return origin.handed_on(self.stage, self.output)
