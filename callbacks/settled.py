"""Settled: when a discriminator has learnt what it will."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches import PairBatches
from tailo_pl.errors import require_range
from tailo_pl.inputs.scores import rank_correlation
from tailo_pl.models.discriminator import PUDiscriminator

STATES = 16  # of each trajectory that is looked at


class Settled(Callback):
    """Stops a discriminator once more training changes neither how it ranks trajectories nor how far it separates.

    Fires every so many steps. It scores the states of TS that training does not see and some trajectories of TA
    (evenly spread, a few states each). A check passes if the trajectories' mean scores are ranked as at the check
    before (Spearman's correlation) and the held-out states of TS stand as far above TA as they did, in units of the
    spread of TA's means. No label of TA is looked at. A stage whose batches keep nothing out of training
    (`held_out: 0`) is left alone.

    Args:
        every_n_steps: steps between checks.
        trajectories: of TA, at most.
        correlation: of the ranks, at least this.
        tolerance: change of the separation, at most this share of it.
        patience: checks in a row that must pass; 0: it never stops, and nothing is checked.
    """

    modules: ClassVar[type[LightningModule]] = PUDiscriminator

    def __init__(
        self,
        every_n_steps: int = 250,
        trajectories: int = 1000,
        correlation: float = 0.99,
        tolerance: float = 0.05,
        patience: int = 2,
    ) -> None:
        require_range("settled.every_n_steps", every_n_steps, 1, closed="[)")
        require_range("settled.trajectories", trajectories, 2, closed="[)")
        require_range("settled.correlation", correlation, 0, 1, closed="(]")
        require_range("settled.tolerance", tolerance, 0, closed="[)")
        require_range("settled.patience", patience, 0, closed="[)")
        self._every, self._count = every_n_steps, trajectories
        self._correlation, self._tolerance, self._patience = correlation, tolerance, patience
        self._means: Tensor | None = None
        self._separation = 0.0
        self._passed = 0
        self._states: tuple[Tensor, Tensor] | None = None

    @property
    def stopped(self) -> str | None:
        """Why training was ended by this callback; None: it was not."""
        return "settled" if self.settled else None

    @property
    def settled(self) -> bool:
        return bool(self._patience) and self._passed >= self._patience

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        data = trainer.datamodule  # type: ignore[attr-defined]
        batches = data.batches
        if not self._patience or not isinstance(batches, PairBatches) or not batches.held_out:
            return
        ta, ts = data.task.ta, data.task.ts
        # Of a TS too small to keep anything out, all states are looked at.
        seen_ts = batches.held_out_ts if len(batches.held_out_ts) else np.arange(ts.steps)
        chosen = np.unique(np.linspace(0, len(ta) - 1, min(self._count, len(ta))).astype(np.int64))
        lengths, firsts = ta.lengths[chosen, None], ta.offsets[chosen, None]
        positions = firsts + np.arange(STATES) * lengths // STATES
        seen = _rows(ta.recording.observations, ta.rows.at(positions.ravel()), pl_module.device)
        held_out = _rows(ts.recording.observations, ts.rows.at(seen_ts), pl_module.device)
        self._states = (seen, held_out)
        trainer.should_stop |= self.settled  # more steps would not have changed that

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._states is None or trainer.global_step % self._every or trainer.global_step == trainer.max_steps:
            return
        with torch.inference_mode():
            means = pl_module(self._states[0]).float().view(-1, STATES).mean(1).cpu().double()
            expert = float(pl_module(self._states[1]).float().mean())
        separation = (expert - float(means.mean())) / max(float(means.std()), 1e-12)
        correlation = 0.0 if self._means is None else rank_correlation(self._means.numpy(), means.numpy()) or 0.0
        change = abs(separation - self._separation) / max(abs(separation), 1e-12)
        passed = correlation >= self._correlation and change <= self._tolerance
        self._passed = self._passed + 1 if passed else 0
        self._means, self._separation = means, separation
        numbers = {"settled/correlation": correlation, "settled/separation": separation}
        for logger in trainer.loggers:
            logger.log_metrics(numbers, step=trainer.global_step)
        trainer.should_stop |= self.settled

    def state_dict(self) -> dict[str, Any]:
        return {"means": self._means, "separation": self._separation, "passed": self._passed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._means, self._separation = state_dict["means"], state_dict["separation"]
        self._passed = state_dict["passed"]


def _rows(table: NDArray[Any], rows: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(table[rows], dtype=np.float32)).to(device)
