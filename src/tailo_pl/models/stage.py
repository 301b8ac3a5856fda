"""What all trained modules share: raw states in, statistics from the data, numbers logged every so often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import lightning
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.errors import UserError, require_range
from tailo_pl.models.description import Described
from tailo_pl.models.networks import Standardise

if TYPE_CHECKING:
    from tailo_pl.data.datamodule import TaskData
    from tailo_pl.data.settings import Task

SCHEMA = 2
SCHEMA_KEY, MODULE_KEY = "tailo_schema", "tailo_module"  # in a checkpoint


class Diverged(Exception):
    """A loss or a weight is no longer a finite number.

    Args:
        step: the update at which it showed, counted from 1.
    """

    def __init__(self, step: int) -> None:
        super().__init__(f"not finite at step {step}")
        self.step = step


class StageModule(Described, lightning.LightningModule):
    """Base of the modules that a stage trains.

    Args:
        observation_dim: numbers in a state.
        learning_rate: Adam's step size.
    """

    needs: ClassVar[tuple[str, ...]] = ("observation_dim",)
    """the arguments that a run fills in from its data: observation_dim, action_low, action_high"""

    full_precision: ClassVar[bool] = False
    """whether it is trained in 32 bits: values are differences of large numbers, and fewer digits would lose them"""

    several_processes: ClassVar[bool] = True
    """whether its loss is that of the global batch on every rank, with every weight in use at every step"""

    compilable: ClassVar[bool] = False
    """whether its arithmetic is in `row_losses`, which `Compiled` compiles"""

    acts: ClassVar[bool] = False
    """whether it is a policy that can be played"""

    usual_steps: ClassVar[int] = 1
    """how many steps of others one of its steps stands for, where something is done every so many steps"""

    def __init__(self, observation_dim: int, learning_rate: float) -> None:
        super().__init__()
        require_range("observation_dim", observation_dim, 1, closed="[)")
        require_range("learning_rate", learning_rate, 0)
        self.observation_dim = observation_dim
        self.learning_rate = learning_rate
        self.standardise = Standardise(observation_dim)
        self._recent: list[Tensor] = []  # losses since the last look at them, the latest of step `_step`
        self._step = 0

    def __setattr__(self, name: str, value: Any) -> None:
        # Lightning notes the hook it is in some forty times a step; nn.Module would look for parameters in it.
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    @property
    def data(self) -> TaskData:
        """The data module of the running fit."""
        return cast("TaskData", self.trainer.datamodule)  # type: ignore[attr-defined]

    def setup(self, stage: str) -> None:
        if stage == "fit":
            self.standardise.set(*self.data.statistics)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[SCHEMA_KEY], checkpoint[MODULE_KEY] = SCHEMA, self.description()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        require_schema(checkpoint)

    def log_now_and_then(self, loss: Tensor, others: Callable[[], dict[str, Tensor]] = dict) -> None:
        """Log on the steps at which Lightning writes anyway, and the last; between them nothing is computed or read.

        A loss that is not finite stops training at the next of these steps.

        Args:
            loss: what is minimised; logged as `loss` unless `others` says otherwise.
            others: makes what is logged beside it.
        """
        trainer = self.trainer
        self._step = trainer.global_step + 1
        self._recent.append(loss.detach())
        if self._step % trainer.log_every_n_steps == 0 or self._step == trainer.max_steps:  # type: ignore[attr-defined]
            self.require_finite()
            self.log_dict({name: value.detach() for name, value in {"loss": loss, **others()}.items()})

    def require_finite(self) -> None:
        """Raise `Diverged` if a loss since the last call was not finite, or a weight is not."""
        if self._recent:
            broken = (~torch.isfinite(torch.stack(self._recent))).nonzero()
            if len(broken):
                raise Diverged(self._step - len(self._recent) + 1 + int(broken[0]))
            self._recent.clear()
        if not all(bool(torch.isfinite(weight).all()) for weight in self.parameters()):
            raise Diverged(self.global_step)

    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        """What later stages read of this one once it is trained, by name; nothing unless a module says otherwise."""
        return {}

    def quality(self, task: Task, outputs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """How well it turned out, judged from the data alone; `outputs` is what it hands on."""
        return {}


def require_schema(checkpoint: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that was written in another format than this version's."""
    if checkpoint.get(SCHEMA_KEY) != SCHEMA:
        raise UserError(f"checkpoint: schema {checkpoint.get(SCHEMA_KEY)} found, this version reads {SCHEMA}")


def value_range(values: Tensor) -> dict[str, Tensor]:
    """What tells a value function that runs away: its least, largest and mean value in the batch, for the log."""
    return {"value_min": values.min(), "value_max": values.max(), "value_mean": values.mean()}
