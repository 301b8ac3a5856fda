"""What an update is checked with: what it met, and networks without hidden layers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from lightning import Callback
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class Watch(Callback):
    """Keeps the last batch, the weights it met, the gradients it gave and the weights after it."""

    batch: Any
    before: dict[str, Numbers]
    gradients: dict[str, Any]
    """None for weights that had none"""
    after: dict[str, Numbers]
    loss: float

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self.batch = batch
        self.before = {name: value.detach().clone().double().numpy() for name, value in module.state_dict().items()}

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self.gradients = {
            name: None if weight.grad is None else weight.grad.double().numpy().copy()
            for name, weight in module.named_parameters()
        }

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.after = {name: value.detach().clone().double().numpy() for name, value in module.state_dict().items()}
        self.loss = float(outputs["loss"])


def linear(weights: dict[str, Numbers], network: str, inputs: Numbers) -> Numbers:
    """A network without hidden layers."""
    return np.asarray(inputs @ weights[f"{network}.0.weight"].T[:, 0] + weights[f"{network}.0.bias"])


def gradient(factors: Numbers, inputs: Numbers) -> tuple[Numbers, Numbers]:
    """Of mean(factor * output) with respect to the weight and the bias of a linear network."""
    return (factors[:, None] * inputs).mean(0), factors.mean()


def assert_gradient(watch: Watch, network: str, factors: Numbers, inputs: Numbers) -> None:
    """What the step found for a linear network is the gradient of mean(factor * output)."""
    weight, bias = gradient(factors, inputs)
    assert watch.gradients[f"{network}.0.weight"][0] == pytest.approx(weight, abs=1e-5)
    assert watch.gradients[f"{network}.0.bias"][0] == pytest.approx(bias, abs=1e-5)


def standardised(watch: Watch, states: torch.Tensor) -> Numbers:
    return np.asarray((states.double().numpy() - watch.before["standardise.mean"]) / watch.before["standardise.std"])
