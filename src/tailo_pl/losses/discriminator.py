"""The losses of a discriminator, as pure functions on tensors.

They take means that are already reduced over the whole (possibly distributed) batch, because two
of them are not linear in those means. Everything is written on logits: softplus(-D) = -log c, softplus(D) = -log(1-c).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

Objective = Literal["debiased", "debiased_unbounded", "cross_entropy", "mixed"]


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
