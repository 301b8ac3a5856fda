"""TD3 with a cloning term (TD3+BC), and RCE's critics, which learn from examples of success instead of rewards."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def smoothed_action(action: Tensor, noise: Tensor, deviation: float, limit: float) -> Tensor:
    """The target policy's action with clipped noise, within [-1, 1]."""
    return (action + (deviation * noise).clamp(-limit, limit)).clamp(-1, 1)


def td_target(rewards: Tensor, done: Tensor, next_values: Tensor, discount: float) -> Tensor:
    """y = r + g*(1 - done)*Q'(s', a')."""
    return rewards + discount * (1 - done) * next_values


def critic_terms(critics: tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    """(Q1 - y)^2 + (Q2 - y)^2 of each row."""
    return (critics[0] - target).square() + (critics[1] - target).square()


def actor_terms(values: Tensor, scale: Tensor, actions: Tensor, recorded: Tensor) -> Tensor:
    """-lambda*Q(s, pi(s)) + (pi(s) - a)^2 of each row, lambda = alpha / mean|Q|.

    Args:
        values: Q(s, pi(s)).
        scale: lambda.
        actions: pi(s).
        recorded: a.
    """
    return -scale * values + (actions - recorded).square().mean(-1)


def success_odds(logits: Tensor) -> Tensor:
    """w = q / (1 - q + 1e-5) with q = sigmoid(logit)."""
    probability = torch.sigmoid(logits)
    return probability / (1 - probability + 1e-5)


def success_terms(critics: tuple[Tensor, Tensor], odds: Tensor, discount: float) -> Tensor:
    """Cross entropy of each step of TA: label g*w/(1 + g*w), weight 1 + g*w; both critics together, on logits."""
    label = discount * odds / (1 + discount * odds)
    return (1 + discount * odds) * _both(critics, label)


def example_terms(critics: tuple[Tensor, Tensor], discount: float) -> Tensor:
    """Cross entropy of each example of success: label 1, weight 1 - g; both critics together, on logits."""
    return (1 - discount) * _both(critics, torch.ones_like(critics[0]))


def _both(critics: tuple[Tensor, Tensor], label: Tensor) -> Tensor:
    first, second = (binary_cross_entropy_with_logits(logits, label, reduction="none") for logits in critics)
    return first + second
