"""The losses of the method, as pure functions on tensors.

Discriminator losses take means that are already reduced over the whole (possibly distributed) batch, because two
of them are not linear in those means. Everything is written on logits: softplus(-D) = -log c, softplus(D) = -log(1-c).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

Objective = Literal["debiased", "debiased_unbounded", "cross_entropy", "mixed"]
Likelihood = Literal["squashed", "censored"]


class LogitTerms(NamedTuple):
    """The three quantities every discriminator loss is made of (rows before, means after a reduction)."""

    pos_ts: Tensor
    """softplus(-D(s)) over TS: -log c"""
    neg_ts: Tensor
    """softplus(D(s)) over TS: -log(1 - c)"""
    neg_u: Tensor
    """softplus(D(s)) over the unlabelled or safe-negative states"""


def logit_terms(logits_ts: Tensor, logits_u: Tensor) -> LogitTerms:
    """Per-row terms from the logits of both sides of a batch."""
    return LogitTerms(softplus(-logits_ts), softplus(logits_ts), softplus(logits_u))


def debiased(terms: LogitTerms, eta_p: float) -> Tensor:
    """Non-negative PU loss: eta*pos(TS) + max(0, neg(U) - eta*neg(TS))."""
    return eta_p * terms.pos_ts + torch.relu(terms.neg_u - eta_p * terms.neg_ts)


def debiased_unbounded(terms: LogitTerms, eta_p: float) -> Tensor:
    """PU loss without the bound: eta*pos(TS) + neg(U) - eta*neg(TS)."""
    return eta_p * terms.pos_ts + terms.neg_u - eta_p * terms.neg_ts


def cross_entropy(terms: LogitTerms) -> Tensor:
    """Plain classification: pos(TS) + neg(U)."""
    return terms.pos_ts + terms.neg_u


def discriminator_loss(terms: LogitTerms, objective: Objective, *, eta_p: float, beta_2: float) -> Tensor:
    """The chosen loss on mean terms; `mixed` is beta_2*debiased + (1-beta_2)*cross_entropy."""
    if objective == "debiased":
        return debiased(terms, eta_p)
    if objective == "debiased_unbounded":
        return debiased_unbounded(terms, eta_p)
    if objective == "cross_entropy":
        return cross_entropy(terms)
    return beta_2 * debiased(terms, eta_p) + (1 - beta_2) * cross_entropy(terms)


def interpolate(ts: Tensor, u: Tensor, mix: Tensor) -> Tensor:
    """x = mix*s_TS + (1-mix)*s_U, one number per row."""
    return u + mix[:, None] * (ts - u)


def lipschitz_terms(gradients: Tensor) -> Tensor:
    """(||grad_x D(x)||_2 - 1)^2 per row."""
    norms: Tensor = torch.linalg.vector_norm(gradients, dim=-1)
    return (norms - 1).square()


def squashed_log_likelihood(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    """log-density of actions in [-1, 1] under a tanh-squashed Gaussian, summed over dimensions, per row.

    Args:
        mean: Gaussian mean before tanh.
        log_variance: its log-variance.
        actions: data actions mapped to [-1, 1]; clamped to +-(1 - 1e-6).
    """
    return squashed_log_densities(mean, log_variance, actions).sum(-1)


def censored_log_likelihood(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    """`censored_log_densities`, summed over dimensions, per row."""
    return censored_log_densities(mean, log_variance, actions).sum(-1)


def squashed_log_densities(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    """As `squashed_log_likelihood`, for each dimension."""
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
