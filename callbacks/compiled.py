"""Compiled: a stage's arithmetic through torch.compile."""

from __future__ import annotations

import shutil
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer

from tailo_pl.errors import UserError


class Compiled(Callback):
    """Compiles what a module computes of each batch, `row_losses`, for the time of training.

    The first step then takes a quarter of a minute. What is measured, validated and played keeps the module as it is.

    Args:
        enabled: False does nothing.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled

    def check(self, name: str, trainer: Trainer, module: LightningModule) -> None:
        """Refuse a stage that has nothing to compile, and a machine that cannot."""
        if not self._enabled:
            return
        if not getattr(module, "compilable", False):
            raise UserError(f"compile: true given, but stage {name} ({type(module).__name__}) is not compiled")
        on_cpu = trainer.strategy.root_device.type == "cpu"
        if on_cpu and not any(map(shutil.which, ("g++", "c++", "clang++", "cl"))):
            raise UserError("compile: no C++ compiler found, expected one on the PATH, or compile=false")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._enabled:
            module: Any = pl_module
            module.row_losses = torch.compile(module.row_losses, dynamic=False)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        pl_module.__dict__.pop("row_losses", None)  # the class's own stands again

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        pl_module.__dict__.pop("row_losses", None)
