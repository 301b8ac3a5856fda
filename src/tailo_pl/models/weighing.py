"""HandsOnWeights: methods that end in weighted cloning without an actor of their own; a policy stage follows them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tailo_pl.data.batches import KnownSteps, known_steps
from tailo_pl.data.settings import Task
from tailo_pl.data.transitions import Steps
from tailo_pl.errors import UserError
from tailo_pl.models.actor import Actor
from tailo_pl.models.policy import PolicyModule


class Weighing(PolicyModule):
    """Base of the methods that clone with weights that they learn beside the policy."""

    actor: Actor[Any]

    @property
    def weighed_steps(self) -> Steps:
        """Which steps have a weight: those whose next state is recorded, unless a method needs less."""
        return "next"

    @abstractmethod
    def log_weights(self, steps: KnownSteps) -> Tensor:
        """Logarithm of what each step counts in cloning, up to a constant."""


class HandsOnWeights(Weighing):
    """Put before such a method it makes a stage that learns all but the actor.

    Hands on `weights`: one for every step of TA, the largest 1; 0 for steps that have none.
    """

    acts = False

    def setup(self, stage: str) -> None:
        super().setup(stage)
        self.actor.requires_grad_(False)  # no loss reaches it; several processes would wait for one

    @property
    def acting(self) -> nn.Module:
        raise UserError(f"{type(self).__name__}: weighs steps and does not act, expected the stage that follows it")

    @torch.inference_mode()
    def hand_on(self, task: Task) -> Mapping[str, NDArray[Any]]:
        logarithms = np.full(task.ta.steps, -np.inf)
        for positions, steps in known_steps(self.data, self.weighed_steps):
            logarithms[positions] = self.log_weights(steps.to(self.device)).double().cpu().numpy()
        largest = logarithms.max()
        if not np.isfinite(largest):
            raise UserError(f"stage {self.data.stage}: no step of TA has a weight above 0, expected some to clone")
        return {"weights": np.exp(logarithms - largest).astype(np.float32)}
