"""The same training steps without a framework: what there is to be had. Also: the authors' arithmetic, float64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from rows import clock
from torch import Tensor, nn
from torch.nn.functional import softplus


def network(inputs: int, outputs: int, activation: type[nn.Module], dtype: torch.dtype) -> nn.Sequential:
    layers = [nn.Linear(inputs, 256), activation(), nn.Linear(256, 256), activation(), nn.Linear(256, outputs)]
    return nn.Sequential(*layers).to(dtype)


def policy_steps(states: Tensor, actions: Tensor, weights: Tensor, batch: int, steps: int) -> Callable[[], float]:
    """Weighted cloning of a squashed Gaussian; seconds per step."""
    net = network(states.shape[1], 2 * actions.shape[1], nn.ReLU, states.dtype)
    adam = torch.optim.Adam(net.parameters(), lr=1e-4, weight_decay=1e-5, fused=True)
    mean, std = states.mean(0), states.std(0)

    def run() -> float:
        began = clock()
        for _ in range(steps):
            rows = torch.randint(len(states), (batch,))
            centre, head = net((states[rows] - mean) / std).chunk(2, -1)
            log_variance = 7 * torch.tanh(head) - 3
            clamped = actions[rows].clamp(-1 + 1e-6, 1 - 1e-6)
            squares = (torch.atanh(clamped) - centre).square() * torch.exp(-log_variance)
            loss = (weights[rows] * 0.5 * (squares + log_variance).sum(-1)).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        return (clock() - began) / steps

    return run


def discriminator_steps(ts: Tensor, ta: Tensor, batch: int, steps: int) -> Callable[[], float]:
    """Cross entropy with the gradient penalty; seconds per step."""
    net = network(ts.shape[1], 1, nn.Tanh, ts.dtype)
    adam = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    mean, std = ta.mean(0), ta.std(0)

    def run() -> float:
        began = clock()
        for _ in range(steps):
            one = (ts[torch.randint(len(ts), (batch,))] - mean) / std
            two = (ta[torch.randint(len(ta), (batch,))] - mean) / std
            logits = net(torch.cat([one, two])).squeeze(-1)
            between = (two + torch.rand(batch, 1, dtype=ts.dtype) * (one - two)).requires_grad_()
            (slope,) = torch.autograd.grad(net(between).sum(), between, create_graph=True)
            loss = softplus(-logits[:batch]).mean() + softplus(logits[batch:]).mean()
            loss = loss + 10 * (slope.norm(dim=-1) - 1).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        return (clock() - began) / steps

    return run


def matrix_products(rows: int, dtype: torch.dtype, count: int) -> Callable[[], float]:
    """rows x 256 times 256 x 256; seconds per product."""
    left, right = torch.randn(rows, 256).to(dtype), torch.randn(256, 256).to(dtype)

    def run() -> float:
        began = clock()
        for _ in range(count):
            torch.mm(left, right)
        return (clock() - began) / count

    return run
