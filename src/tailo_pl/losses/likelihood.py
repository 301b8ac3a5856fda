"""Likelihoods of recorded actions under a Gaussian squashed by tanh, as pure functions on tensors."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Likelihood = Literal["squashed", "censored"]


def squashed_log_densities(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    """log-density of actions in [-1, 1] under a tanh-squashed Gaussian, for each dimension.

    Args:
        mean: Gaussian mean before tanh.
        log_variance: its log-variance.
        actions: data actions mapped to [-1, 1]; clamped to +-(1 - 1e-6).
    """
    return _log_density(mean, log_variance, actions.clamp(-1 + 1e-6, 1 - 1e-6))


def censored_log_densities(
    mean: Tensor, log_variance: Tensor, actions: Tensor, *, tail: float = 2.0, tolerance: float = 1e-4
) -> Tensor:
    """As `squashed_log_densities`, but an action at its bound stands for everything beyond it.

    Recorded actions often sit exactly at +-1 because they were clipped. Pulling them back through atanh makes
    targets of +-7 that drown all others; here they only say that the Gaussian lies beyond +-`tail`. Actions that
    only come close to a bound keep their density, so smooth data loses nothing. The two together are a training
    objective, not a normalised density: values are comparable within this likelihood only.

    Args:
        mean: Gaussian mean before tanh.
        log_variance: its log-variance.
        actions: data actions mapped to [-1, 1].
        tail: the point before tanh beyond which the Gaussian should lie for an action at its bound.
        tolerance: an action within this distance of +-1 counts as at its bound.
    """
    at_bound = actions.abs() >= 1 - tolerance
    # Both branches of `where` are differentiated, so the density must stay finite for the rows it is not used for.
    density = _log_density(mean, log_variance, actions.clamp(-1 + tolerance, 1 - tolerance))
    # P(x >= tail) at the upper bound, P(x <= -tail) at the lower one: both ndtr((sign*mean - tail) / std).
    tail_mass = torch.special.log_ndtr((actions.sign() * mean - tail) * torch.exp(-0.5 * log_variance))
    return torch.where(at_bound, tail_mass, density)


def _log_density(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    scaled = (torch.atanh(actions) - mean) * torch.exp(-0.5 * log_variance)
    gaussian = -0.5 * (scaled.square() + log_variance + math.log(2 * math.pi))
    # Change of variables: log |d tanh(x)/dx| = log(1 - a^2), which does not depend on the network.
    return gaussian - torch.log1p(-actions.square())
