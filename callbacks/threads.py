"""Threads: how many cores a stage's arithmetic uses."""

from __future__ import annotations

import os
from typing import ClassVar

import torch
from lightning import Callback, LightningModule, Trainer

from tailo_pl.errors import require_range


class Threads(Callback):
    """Sets PyTorch's number of CPU threads before a stage begins, and back when it has ended.

    Small batches gain little from a second thread and lose much when another process wants the core: all threads
    wait for the slowest at the end of every operation.

    Several processes of a run share the cores: together they never have more threads than there are.

    Args:
        count: threads of this process; None: as many as PyTorch takes by itself.
    """

    without_effect: ClassVar[bool] = True

    def __init__(self, count: int | None) -> None:
        if count is not None:
            require_range("threads", count, 1, closed="[)")
        self._count = count
        self._before = torch.get_num_threads()

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._before = torch.get_num_threads()
        if self._count is not None:
            torch.set_num_threads(min(self._count, share_of_cores()))

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        torch.set_num_threads(self._before)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        torch.set_num_threads(self._before)  # Lightning calls no teardown then


def share_of_cores() -> int:
    """Cores for each process of the run on this machine; torchrun and srun say how many there are."""
    names = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE")
    processes = next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), 1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // processes)
