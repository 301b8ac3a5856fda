"""Batches: a kind of batch that stages train on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from tailo_pl.errors import require_range

if TYPE_CHECKING:
    from tailo_pl.data.datamodule import TaskData
    from tailo_pl.data.settings import Setting, Task


class Batches(ABC):
    """How the batch of a step is made from the task. A kind of its own is one class: arguments, `check`, `maker`.

    Args:
        batch_size: rows per batch, all processes together.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    """names of the inputs these batches use, where the stage has them"""

    data: TaskData
    """the data module these batches are of, which sets it: task, placement, inputs, the generator of each step"""

    def __init__(self, batch_size: int) -> None:
        require_range("batch_size", batch_size, 1, closed="[)")
        self.batch_size = batch_size

    def check(self, task: Task, setting: Setting) -> None:
        """Raise `UserError` if the task lacks what these batches need. Called before anything is trained."""
        return None

    @abstractmethod
    def maker(self) -> Callable[[int], Any]:
        """What makes this process's share of the batch of a step. Called once, when training begins."""

    def validation(self) -> Any | None:
        """One batch of what is kept out of training; None: nothing is."""
        return None

    @property
    def validates(self) -> bool:
        """Whether `validation` will give a batch."""
        return False

    @property
    def loss_scale(self) -> float:
        """Factor from the loss of these batches to that of uniform rows with their weights."""
        return 1.0
