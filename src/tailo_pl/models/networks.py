"""The networks: multi-layer perceptrons whose first layer is a fixed standardisation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


def with_absorbing(states: Tensor, absorbing: Tensor | None) -> Tensor:
    """Standardised states with one more number: 0, or 1 for the absorbing state, whose other numbers are 0.

    Args:
        states: (rows, dim).
        absorbing: 1 for the rows that stand for the absorbing state; None: no row does.
    """
    if absorbing is None:
        return torch.cat([states, states.new_zeros(len(states), 1)], -1)
    absorbing = absorbing[:, None]
    return torch.cat([states * (1 - absorbing), absorbing], -1)


def mlp(
    inputs: int, hidden: Sequence[int], outputs: int, activation: type[nn.Module], *, last_bias: bool = True
) -> nn.Sequential:
    """Linear layers with `activation` between them."""
    widths = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs, bias=last_bias))


class SquashedMean(nn.Module):
    """The deterministic action of a Gaussian squashed by tanh: tanh of the mean, the first half of what a network says.

    Args:
        network: from standardised states to mean and whatever describes the spread.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, states: Tensor) -> Tensor:
        mean, _ = self.network(states).float().chunk(2, dim=-1)
        return torch.tanh(mean)


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


def input_gradients(function: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """grad_x f(x) of each row, in float32 (a penalty's curvature is below what half precision resolves)."""
    with torch.autocast(points.device.type, enabled=False):
        points = points.detach().float().requires_grad_()
        (gradients,) = torch.autograd.grad(function(points).sum(), points, create_graph=True)
    return gradients


def move_towards(follower: nn.Module, leader: nn.Module, rate: float) -> None:
    """follower <- (1 - rate)*follower + rate*leader, weight by weight: target networks and averages."""
    torch._foreach_lerp_(list(follower.parameters()), [weight.data for weight in leader.parameters()], rate)


def follower_of(leader: nn.Module) -> nn.Module:
    """A copy that no gradient reaches."""
    return copy.deepcopy(leader).requires_grad_(False)


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """What is computed meanwhile passes gradients through the module, not into its weights."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)
