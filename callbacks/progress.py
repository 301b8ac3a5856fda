"""StageProgress: one line per stage, with speed and the latest score."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, ClassVar

from lightning import Callback, LightningModule, Trainer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tailo_pl.callbacks.rollout import RolloutScore
from tailo_pl.screen import console

shown: ContextVar[bool] = ContextVar("shown", default=True)
"""Whether bars are shown at all; what trains within someone else's program may switch them off."""


class StageProgress(Callback):
    """A rich progress bar on standard error: steps, steps per second, the latest rollout score.

    Updated every so many steps by the process of rank 0; it reads only numbers that already are on the host.

    Args:
        every_n_steps: steps between updates.
    """

    without_effect: ClassVar[bool] = True

    def __init__(self, every_n_steps: int = 20) -> None:
        self._every = every_n_steps
        self._bar: Progress | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or not shown.get():
            return
        self._bar = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[score]}"),
            console=console(stderr=True),
        )
        label = getattr(trainer.datamodule, "stage", "")  # type: ignore[attr-defined]
        self._task = self._bar.add_task(
            label, total=trainer.max_steps, completed=trainer.global_step, speed="", score=""
        )
        self._bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._bar is not None and trainer.global_step % self._every == 0:
            self._update(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._stop(trainer)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._stop(trainer)

    def _stop(self, trainer: Trainer) -> None:
        if self._bar is not None:
            self._update(trainer)
            self._bar.stop()
            self._bar = None

    def _update(self, trainer: Trainer) -> None:
        assert self._bar is not None
        task = self._bar.tasks[0]
        speed = task.finished_speed or task.speed
        history = [e for c in trainer.callbacks if isinstance(c, RolloutScore) for e in c.history[-1:]]  # type: ignore[attr-defined]
        self._bar.update(
            self._task,
            completed=trainer.global_step,
            speed=f"{speed:,.0f} steps/s" if speed else "",
            score=f"score {history[-1].score:.1f} ± {history[-1].score_std:.1f}" if history else "",
        )
