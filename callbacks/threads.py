"""Threads: how many cores a stage's arithmetic uses."""

from __future__ import annotations

import torch
from lightning import Callback, LightningModule, Trainer

from tailo_pl.errors import require_range


class Threads(Callback):
    """Sets PyTorch's number of CPU threads before a stage begins, and back when it has ended.

    Small batches gain little from a second thread and lose much when another process wants the core: all threads
    wait for the slowest at the end of every operation.

    Args:
        count: threads of this process.
    """

    def __init__(self, count: int) -> None:
        require_range("threads", count, 1, closed="[)")
        self._count = count

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._before = torch.get_num_threads()
        torch.set_num_threads(self._count)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        torch.set_num_threads(self._before)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        torch.set_num_threads(self._before)  # Lightning calls no teardown then
