"""HeldOutChoice: which checkpoint to keep, judged without a simulator."""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from tailo_pl.errors import require_range
from tailo_pl.models.dynamics import Dynamics
from tailo_pl.models.policy import WeightedBCPolicy


class HeldOutChoice(Callback):
    """Keeps the weights that did best on held-out data, stops when nothing improves, restores them at the end.

    Fires after each validation. Must stand before callbacks that use the trained module at the end of training.

    Args:
        monitor: name of the validation number; smaller is better.
        patience: validations without improvement after which training stops; 0 never stops it.
        min_delta: improvement, as a share of the best so far, below which a validation counts as none.
    """

    modules: ClassVar[tuple[type[LightningModule], ...]] = (WeightedBCPolicy, Dynamics)

    def __init__(self, monitor: str = "held_out/error", patience: int = 0, min_delta: float = 0.0) -> None:
        require_range("patience", patience, 0, closed="[)")
        require_range("min_delta", min_delta, 0, 1, closed="[)")
        self._monitor = monitor
        self._patience = patience
        self._min_delta = min_delta
        self.best = math.inf
        self.best_step = 0
        self.numbers: dict[str, float] = {}  # of the best validation, by their names without the prefix
        self._reference = math.inf
        self._since = 0
        self._weights: dict[str, Tensor] | None = None
        self._trained: dict[str, Tensor] | None = None  # what training had reached when the choice replaced it

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        value = float(trainer.callback_metrics[self._monitor])
        if value < self.best:
            self.best, self.best_step = value, trainer.global_step
            names = [name for name in trainer.callback_metrics if name.startswith("held_out/")]
            self.numbers = {name.replace("/", "_"): float(trainer.callback_metrics[name]) for name in names}
            self._weights = copy.deepcopy(pl_module.state_dict())
        if value < self._reference * (1 - self._min_delta):
            self._reference, self._since = value, 0
        else:
            self._since += 1
            trainer.should_stop |= self._stopped

    @property
    def stopped(self) -> str | None:
        """Why training was ended by this callback; None: it was not."""
        return "held-out error" if self._stopped else None

    @property
    def _stopped(self) -> bool:
        return bool(self._patience and self._since >= self._patience)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._trained is not None:  # a finished stage is taken further
            pl_module.load_state_dict(self._trained)
            self._trained = None
        trainer.should_stop |= self._stopped  # more steps would not have changed that

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._weights is not None:
            self._trained = copy.deepcopy(pl_module.state_dict())
            pl_module.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        return {
            "best": self.best,
            "best_step": self.best_step,
            "numbers": self.numbers,
            "reference": self._reference,
            "since": self._since,
            "weights": self._weights,
            "trained": self._trained,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.best_step = state_dict["best"], state_dict["best_step"]
        self.numbers = state_dict["numbers"]
        self._reference, self._since = state_dict["reference"], state_dict["since"]
        self._weights, self._trained = state_dict["weights"], state_dict["trained"]
