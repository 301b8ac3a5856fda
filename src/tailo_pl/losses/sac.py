"""Soft actor-critic (Haarnoja et al. 2018): values that count the policy's entropy, at a learnt temperature."""

from __future__ import annotations

from torch import Tensor


def soft_values(values: Tensor, log_likelihoods: Tensor, temperature: Tensor) -> Tensor:
    """min Q(s, a) - tau*log pi(a|s) at an action that the policy drew; the actor raises its mean."""
    return values - temperature * log_likelihoods


def temperature_terms(log_temperature: Tensor, log_likelihoods: Tensor, target_entropy: float) -> Tensor:
    """-log tau * (log pi + target): the temperature rises where the entropy -log pi is below its target."""
    return -log_temperature * (log_likelihoods.detach() + target_entropy)
