"""Natural policy gradients (Kakade 2001): advantages along paths, and the step that a trust region allows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def advantages(rewards: Tensor, values: Tensor, next_values: Tensor, going: Tensor, decay: float) -> Tensor:
    """A_t = d_t + decay*A_{t+1} along each path, d_t = r_t + next_values_t - V_t (Schulman et al. 2016).

    Args:
        rewards: (steps, paths).
        values: V(s_t).
        next_values: g*V(s_{t+1}); 0 where the step ended its episode.
        going: 1 where step t + 1 belongs to the path too, else 0.
        decay: g*lambda.
    """
    found = rewards + next_values - values
    for step in range(len(found) - 2, -1, -1):
        found[step] += decay * going[step] * found[step + 1]
    return found


def gaussian_divergence(mean: Tensor, log_std: Tensor, old_mean: Tensor, old_log_std: Tensor) -> Tensor:
    """KL(old || new) of diagonal Gaussians, one number per row."""
    squares = (old_mean - mean).square() + torch.exp(2 * old_log_std)
    return (log_std - old_log_std + 0.5 * squares * torch.exp(-2 * log_std) - 0.5).sum(-1)


def conjugate_gradient(product: Callable[[Tensor], Tensor], target: Tensor, iterations: int) -> Tensor:
    """x of F x = target, F symmetric and positive definite, by so many iterations or until it is found.

    Args:
        product: F times a vector.
        target: the right-hand side.
        iterations: at most.
    """
    solution, residual = torch.zeros_like(target), target.clone()
    direction, square = residual.clone(), residual @ residual
    for _ in range(iterations):
        if square < 1e-10:
            break
        along = product(direction)
        rate = square / (direction @ along)
        solution, residual = solution + rate * direction, residual - rate * along
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return solution


def natural_step(gradient: Tensor, natural: Tensor, size: float) -> Tensor:
    """sqrt(size / g.F^-1 g) * F^-1 g: the step along the natural gradient whose length under F is sqrt(size)."""
    return torch.sqrt(size / (gradient @ natural).clamp_min(1e-20)) * natural
