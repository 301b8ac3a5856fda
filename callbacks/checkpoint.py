"""StageCheckpoint: the state of a stage, one file, replaced as training goes on."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from tailo_pl.errors import require_range
from tailo_pl.models.stage import StageModule
from tailo_pl.runs.inside import require_there
from tailo_pl.training.metrics_log import MetricsLog

LEAVE_AFTER = 6.0  # seconds to reach the next step after a signal


class StageCheckpoint(Checkpoint):
    """Saves `checkpoints/last.ckpt` in the trainer's log folder about every so many steps, and at the end of training.

    A stage that goes on from a checkpoint ends as if it had never stopped. To that end a save waits for a step behind
    which Lightning has nothing left to do: what is logged or validated after a step's last hook would not be repeated.

    In a run of one process Ctrl-C and SIGTERM save at the next such step and then end training. Where that takes too
    long (a rollout), or at a second signal, training ends at once and the last save stands.

    Args:
        every_n_steps: steps between saves; 0 saves only at the end.
    """

    without_effect: ClassVar[bool] = True

    def __init__(self, every_n_steps: int = 0) -> None:
        require_range("every_n_steps", every_n_steps, 0, closed="[)")
        self._every = every_n_steps
        self._due = False
        self._rows: int | None = None
        self.loss: float | None = None  # the last one logged
        self._before = (0.0, 0.0)
        self._started = (time.perf_counter(), time.process_time())
        self._stopping = False
        self._handlers: dict[int, Any] = {}
        self.counts_on: tuple[str, ...] = ()
        """files of the trainer's root folder; without them it was removed, and a save would make it anew, incomplete"""

    @staticmethod
    def path(trainer: Trainer) -> Path:
        """Where the checkpoint of this trainer lies."""
        return Path(trainer.log_dir or trainer.default_root_dir) / "checkpoints" / "last.ckpt"

    @property
    def spent(self) -> tuple[float, float]:
        """Seconds and CPU seconds since the stage began, those before it was interrupted included."""
        now = (time.perf_counter(), time.process_time())
        seconds, cpu = (
            before + end - start for before, end, start in zip(self._before, now, self._started, strict=True)
        )
        return seconds, cpu

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        self._due |= bool(self._every and step % self._every == 0)
        if self._due and step < trainer.max_steps and not _more_to_come(trainer, step):
            self._save(trainer)
            if self._stopping:
                raise KeyboardInterrupt

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.world_size > 1 or threading.current_thread() is not threading.main_thread():
            return
        for number, handler in ((signal.SIGINT, self._stop), (signal.SIGTERM, self._stop), (signal.SIGALRM, _leave)):
            self._handlers[number] = signal.signal(number, handler)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._restore_handlers()  # Lightning calls no teardown then

    def _restore_handlers(self) -> None:
        if self._handlers:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _stop(self, number: int, frame: Any) -> None:
        if self._stopping:
            _leave()
        self._stopping = self._due = True
        signal.setitimer(signal.ITIMER_REAL, LEAVE_AFTER)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if "loss" in trainer.callback_metrics:
            self.loss = float(trainer.callback_metrics["loss"])
        self._save(trainer)
        if self._stopping:  # asked for during the last step or the last rollout
            raise KeyboardInterrupt
        self._restore_handlers()  # now: Lightning, whose own stand below ours, takes its back before `teardown`

    def _save(self, trainer: Trainer) -> None:
        self._due = False
        require_there(Path(trainer.default_root_dir), self.counts_on)
        if isinstance(trainer.lightning_module, StageModule):
            trainer.lightning_module.require_finite()  # the last checkpoint is always a good one
        for log in _logs(trainer):
            log.save()  # what the checkpoint counts on must be there first
            self._rows = len(log.rows)
        trainer.save_checkpoint(self.path(trainer), weights_only=False)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self._rows, "spent": list(self.spent), "loss": self.loss}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._rows, self.loss = state_dict["rows"], state_dict["loss"]
        self._before = (state_dict["spent"][0], state_dict["spent"][1])

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # States are loaded by now, and nothing has been logged yet.
        if self._rows is not None:
            for log in _logs(trainer):
                log.cut_back(self._rows)


def _leave(*signal_and_frame: Any) -> None:
    raise KeyboardInterrupt


def _more_to_come(trainer: Trainer, step: int) -> bool:
    """Whether Lightning logs or validates behind this step's hooks. (With something every step there is no choice.)"""
    intervals = [trainer.log_every_n_steps, trainer.val_check_interval]  # type: ignore[attr-defined]
    return any(isinstance(every, int) and every > 1 and step % every == 0 for every in intervals)


def _logs(trainer: Trainer) -> list[MetricsLog]:
    return [logger for logger in trainer.loggers if isinstance(logger, MetricsLog)]
