"""Models of the dynamics: their likelihood, and what MOPO and MOReL make of what they do not know."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def bounded_log_variance(raw: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """A log-variance between learnt bounds: high - softplus(high - x), then low + softplus(x - low)."""
    raw = high - softplus(high - raw)
    return low + softplus(raw - low)


def gaussian_terms(mean: Tensor, log_variance: Tensor, targets: Tensor) -> Tensor:
    """(mu - y)^2 / sigma^2 + log sigma^2 of each number: twice -log N(y; mu, sigma^2) but for a constant."""
    return (mean - targets).square() * torch.exp(-log_variance) + log_variance


def largest_deviation(deviations: Tensor) -> Tensor:
    """u(s, a) = max over the models of |sigma(s, a)|: MOPO's estimate of a model's error.

    Args:
        deviations: sigma of each model at each row, (models, rows, numbers).
    """
    return deviations.square().sum(-1).amax(0).sqrt()


def penalised(rewards: Tensor, uncertainty: Tensor, penalty: float) -> Tensor:
    """MOPO's reward r - lambda*u(s, a)."""
    return rewards - penalty * uncertainty


def disagreement(predictions: Tensor) -> Tensor:
    """The largest distance between what two models predict of a row.

    Args:
        predictions: (models, rows, numbers).
    """
    pairs = torch.combinations(torch.arange(len(predictions), device=predictions.device))
    between = predictions[pairs[:, 0]] - predictions[pairs[:, 1]]
    return between.square().sum(-1).amax(0).sqrt()


def unknown(disagreements: Tensor, largest: Tensor, share: float) -> Tensor:
    """MOReL's cut: whether models disagree by more than a share of the largest disagreement on the data."""
    return disagreements > share * largest
