"""SMODICE and LobsDICE: the dual of matching the expert's occupancy of states, or of pairs of states.

e = R + g*V(s') - V(s) is the dual's slack at a recorded step; a step counts as much as the conjugate's derivative
there says.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Divergence = Literal["kl", "chi2_half", "chi2"]


def slack(rewards: Tensor, values: Tensor, next_values: Tensor, discount: float) -> Tensor:
    """e = R + g*V(s') - V(s)."""
    return rewards + discount * next_values - values


def dual_loss(initial: Tensor, conjugate: Tensor, discount: float) -> Tensor:
    """(1 - g)*mean V(s0) + the conjugate's term.

    Args:
        initial: mean V(s0).
        conjugate: log mean exp(e) for KL, mean f*(e) otherwise.
        discount: g.
    """
    return (1 - discount) * initial + conjugate


def chi2_conjugate(e: Tensor, divergence: Divergence) -> Tensor:
    """f*(e) of each row: e^2/2 + e for f = (x-1)^2/2 (as published), e^2/4 + e for f = (x-1)^2."""
    return e.square() / (2 if divergence == "chi2_half" else 4) + e


def smodice_weights(e: Tensor, divergence: Divergence) -> Tensor:
    """What a step counts in cloning: exp(e); relu(e + 1); relu(e/2 + 1)."""
    if divergence == "kl":
        return torch.exp(e)
    return torch.relu((e if divergence == "chi2_half" else e / 2) + 1)


def smodice_log_weights(e: Tensor, divergence: Divergence) -> Tensor:
    """log of `smodice_weights`, which does not overflow."""
    return e if divergence == "kl" else torch.log(smodice_weights(e, divergence))


def lobsdice_reward(logits: Tensor) -> Tensor:
    """R = -log(1/(c + 1e-3) - 1 + 1e-3) with c = sigmoid(logit): log c/(1-c), bounded to about [-6.9, 13.8]."""
    return -torch.log(1 / (torch.sigmoid(logits) + 1e-3) - 1 + 1e-3)


def lobsdice_conjugate(log_mean_exp: Tensor, alpha: float, count: int) -> Tensor:
    """(1 + alpha) * logsumexp(e / (1 + alpha)) over a batch of `count` rows.

    Args:
        log_mean_exp: log mean exp(e / (1 + alpha)).
        alpha: strength of the regularisation towards the data.
        count: rows of the batch.
    """
    return (1 + alpha) * (log_mean_exp + math.log(count))


def lobsdice_weights(e: Tensor, log_mean_exp: Tensor, alpha: float) -> Tensor:
    """exp(e / (1 + alpha)) divided by its batch mean."""
    return torch.exp(e / (1 + alpha) - log_mean_exp)
