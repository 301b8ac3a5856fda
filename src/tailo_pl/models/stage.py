"""What all trained modules share: raw states in, statistics from the data, numbers logged every so often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import lightning
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.errors import require_range
from tailo_pl.models.networks import Standardise

if TYPE_CHECKING:
    from tailo_pl.data.datamodule import TaskData
    from tailo_pl.data.settings import Task


class StageModule(lightning.LightningModule):
    """Base of the modules that a stage trains.

    Args:
        observation_dim: numbers in a state.
        learning_rate: Adam's step size.
    """

    def __init__(self, observation_dim: int, learning_rate: float) -> None:
        super().__init__()
        require_range("observation_dim", observation_dim, 1, closed="[)")
        require_range("learning_rate", learning_rate, 0)
        self.observation_dim = observation_dim
        self.learning_rate = learning_rate
        self.standardise = Standardise(observation_dim)

    @property
    def data(self) -> TaskData:
        """The data module of the running fit."""
        return cast("TaskData", self.trainer.datamodule)  # type: ignore[attr-defined]

    def setup(self, stage: str) -> None:
        if stage == "fit":
            self.standardise.set(*self.data.statistics)

    def log_now_and_then(self, numbers: dict[str, Tensor]) -> None:
        """Log on the steps at which Lightning writes anyway, and the last; between them nothing is synchronised."""
        step = self.global_step + 1
        if step % self.trainer.log_every_n_steps == 0 or step == self.trainer.max_steps:  # type: ignore[attr-defined]
            self.log_dict({name: value.detach() for name, value in numbers.items()})

    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        """What later stages read of this one once it is trained, by name; nothing unless a module says otherwise."""
        return {}

    def quality(self, task: Task, outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """How well it turned out, judged from the data alone; `outputs` is what it hands on."""
        return {}
