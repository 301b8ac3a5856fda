"""Networks side by side: layers of which every member has its own weights, computed as one batched product."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


class MemberLinear(nn.Module):
    """nn.Linear of every member, each with initial weights of its own: (members, rows, inputs) to the outputs.

    Args:
        members: how many.
        inputs: numbers in.
        outputs: numbers out.
        bias: whether it has one.
    """

    def __init__(self, members: int, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        layers = [nn.Linear(inputs, outputs, bias=bias) for _ in range(members)]
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().T for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers])) if bias else None

    def forward(self, values: Tensor) -> Tensor:
        if self.bias is None:
            return torch.bmm(values, self.weight)
        return torch.baddbmm(self.bias, values, self.weight)


class MemberNorm(nn.Module):
    """nn.LayerNorm of every member.

    Args:
        members: how many.
        width: numbers that are normalised together.
    """

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, width))
        self.bias = nn.Parameter(torch.zeros(members, 1, width))

    def forward(self, values: Tensor) -> Tensor:
        return torch.addcmul(self.bias, layer_norm(values, values.shape[-1:]), self.weight)
