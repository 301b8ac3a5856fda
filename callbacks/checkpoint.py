"""StageCheckpoint: the state of a stage, one file, replaced as training goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from tailo_pl.errors import require_range


class StageCheckpoint(Checkpoint):
    """Saves `checkpoints/last.ckpt` in the trainer's log folder every so many steps, and at the end of training.

    The end is saved whatever the interval: what training reached is never lost to a remainder.

    Args:
        every_n_steps: steps between saves; 0 saves only at the end.
    """

    def __init__(self, every_n_steps: int = 0) -> None:
        require_range("every_n_steps", every_n_steps, 0, closed="[)")
        self._every = every_n_steps

    @staticmethod
    def path(trainer: Trainer) -> Path:
        """Where the checkpoint of this trainer lies."""
        return Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints" / "last.ckpt"

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._every and trainer.global_step % self._every == 0 and trainer.global_step < trainer.max_steps:
            trainer.save_checkpoint(self.path(trainer), weights_only=False)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        trainer.save_checkpoint(self.path(trainer), weights_only=False)
