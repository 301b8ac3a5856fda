"""The networks: multi-layer perceptrons whose first layer is a fixed standardisation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Standardise(nn.Module):
    """(s - mean) / std with TA's statistics, kept as buffers: the data stays raw, a saved network takes raw states."""

    mean: Tensor
    std: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def set(self, mean: Tensor, std: Tensor) -> None:
        """Take over statistics, once, before training."""
        self.mean.copy_(mean)
        self.std.copy_(std)

    def forward(self, states: Tensor) -> Tensor:
        return (states - self.mean) / self.std


def mlp(inputs: int, hidden: Sequence[int], outputs: int, activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers with `activation` between them."""
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def tanh_gradients(network: nn.Sequential, points: Tensor) -> Tensor:
    """Gradient of a one-output tanh network at each point, as plain arithmetic: one graph for autograd, not two.

    With h_k = tanh(z_k) the chain rule reads, from the output back: g = w_out; g = (g * (1 - h_k^2)) W_k.
    """
    *hidden, out = [layer for layer in network if isinstance(layer, nn.Linear)]
    activations, values = [], points
    for layer in hidden:
        values = torch.tanh(layer(values))
        activations.append(values)
    gradients: Tensor = out.weight
    for layer, activation in zip(reversed(hidden), reversed(activations), strict=True):
        gradients = (gradients * (1 - activation.square())) @ layer.weight
    return gradients
