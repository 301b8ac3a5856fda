"""The parts of the networks: multi-layer perceptrons, a fixed standardisation before them, bounds behind them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from tailo_pl.errors import UserError, require_range
from tailo_pl.models.members import MemberLinear, MemberNorm

Norm = Literal["none", "layer"]
ModuleT = TypeVar("ModuleT", bound=nn.Module)
_CUT_DEVIATION = 0.8796256610342398  # of a standard normal number that lies within two deviations


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


class ActionBounds(nn.Module):
    """Maps actions in [-1, 1] to their bounds, and back.

    Args:
        low: lower bound of each action.
        high: upper bound of each action.
    """

    low: Tensor
    high: Tensor

    def __init__(self, low: Sequence[float], high: Sequence[float]) -> None:
        super().__init__()
        if len(low) != len(high) or any(one >= other for one, other in zip(low, high, strict=True)):
            raise UserError(f"action bounds: {low} and {high} given, expected low < high per dimension")
        self.register_buffer("low", torch.tensor(low, dtype=torch.float32))
        self.register_buffer("high", torch.tensor(high, dtype=torch.float32))
        self._unit = set(low) == {-1.0} and set(high) == {1.0}

    def forward(self, actions: Tensor) -> Tensor:
        """Actions in [-1, 1], mapped to the bounds."""
        actions = self.low + 0.5 * (actions + 1) * (self.high - self.low)
        return torch.clamp(actions, self.low, self.high)  # rounding may leave the bounds by the last bit

    def normalise(self, actions: Tensor) -> Tensor:
        """Actions within the bounds, mapped to [-1, 1]."""
        return actions if self._unit else 2 * (actions - self.low) / (self.high - self.low) - 1


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
    inputs: int,
    hidden: Sequence[int],
    outputs: int,
    activation: type[nn.Module],
    *,
    norm: Norm = "none",
    members: int = 1,
    last_bias: bool = True,
) -> nn.Sequential:
    """Linear layers with `activation` between them.

    Args:
        inputs: numbers in.
        hidden: widths of the hidden layers.
        outputs: numbers out.
        activation: behind each hidden layer.
        norm: `layer` normalises each hidden layer, before its activation as is usual in reinforcement learning.
        members: with more than one, as many networks side by side: (members, rows, inputs) in.
        last_bias: whether the last layer has one.
    """
    require_range("members", members, 1, closed="[)")
    for width in hidden:
        require_range("hidden", width, 1, closed="[)")
    linear: Callable[..., nn.Module] = nn.Linear if members == 1 else partial(MemberLinear, members)
    normalise: Callable[..., nn.Module] = nn.LayerNorm if members == 1 else partial(MemberNorm, members)
    layers: list[nn.Module] = []
    for before, after in pairwise([inputs, *hidden]):
        layers += [linear(before, after), *([normalise(after)] if norm == "layer" else []), activation()]
    return nn.Sequential(*layers, linear([inputs, *hidden][-1], outputs, bias=last_bias))


def he_normal(network: nn.Module) -> None:
    """Initial weights of variance 2 / inputs from a normal distribution cut at two deviations; biases 0 (He et al.
    2015, as TensorFlow draws them)."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            deviation = (2 / layer.in_features) ** 0.5 / _CUT_DEVIATION
            nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def network_gradients(network: nn.Sequential, points: Tensor) -> Tensor:
    """Gradient of a one-output tanh or ReLU network at each point, as plain arithmetic: one graph, not two.

    With h_k the hidden layers the chain rule reads, from the output back: g = w_out; g = (g * slope_k) W_k, where the
    slope is 1 - h_k^2 of tanh, and h_k > 0 of ReLU, which no gradient passes.
    """
    *hidden, out = [layer for layer in network if isinstance(layer, nn.Linear)]
    smooth = isinstance(network[1], nn.Tanh)
    slopes, values = [], points
    with nullcontext() if smooth else torch.no_grad():
        for layer in hidden:
            values = torch.tanh(layer(values)) if smooth else torch.relu(layer(values))
            slopes.append(1 - values.square() if smooth else values > 0)
    gradients: Tensor = out.weight
    for layer, slope in zip(reversed(hidden), reversed(slopes), strict=True):
        gradients = (gradients * slope) @ layer.weight
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


def follower_of(leader: ModuleT) -> ModuleT:
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
