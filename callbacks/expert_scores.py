"""ExpertScores: what a discriminator makes of the expert's trajectories in TA while it learns."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor

from tailo_pl.data.layout import Layout
from tailo_pl.errors import require_range
from tailo_pl.models.discriminator import PUDiscriminator


class ExpertScores(Callback):
    """Logs the mean R(s) of the expert's trajectories in TA every N steps, where the data's labels tell which they are.

    Training never sees the labels. Where nobody knows them nothing is logged.

    Args:
        every_n_steps: steps between two looks.
        states: of the expert's, evenly spread, at most.
    """

    modules: ClassVar[type[LightningModule]] = PUDiscriminator

    def __init__(self, every_n_steps: int = 100, states: int = 4096) -> None:
        require_range("expert_scores.every_n_steps", every_n_steps, 1, closed="[)")
        require_range("expert_scores.states", states, 1, closed="[)")
        self._every, self._count = every_n_steps, states
        self._states: Tensor | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        task = trainer.datamodule.task  # type: ignore[attr-defined]
        experts = Layout.of(task).experts
        if experts is None:
            return
        steps = np.flatnonzero(np.repeat(experts, task.ta.lengths))
        seen = steps[np.unique(np.linspace(0, len(steps) - 1, min(self._count, len(steps))).astype(np.int64))]
        rows = np.asarray(task.ta.recording.observations[task.ta.rows.at(seen)], dtype=np.float32)
        self._states = torch.from_numpy(rows).to(pl_module.device)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._states is None or trainer.global_step % self._every:
            return
        with torch.inference_mode():
            score = float(pl_module(self._states).float().mean())
        for logger in trainer.loggers:
            logger.log_metrics({"expert_score": score}, step=trainer.global_step)
