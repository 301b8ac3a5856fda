"""Losses of IQL, MARWIL and DWBC, by hand; rewards and returns from scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tailo_pl.inputs.rewards import step_rewards, trajectory_returns
from tailo_pl.losses.dwbc import discriminator_terms, policy_terms, scaled_log_densities
from tailo_pl.losses.iql import advantage_weights, expectile_terms
from tailo_pl.losses.marwil import marwil_log_weights


def test_expectile() -> None:
    assert expectile_terms(torch.tensor([2.0, -2.0]), 0.7).tolist() == pytest.approx([2.8, 1.2])


def test_advantage_weights_are_clipped() -> None:
    assert advantage_weights(torch.tensor([-1.0, 0.5, 9.0]), 3.0, 100.0).tolist() == pytest.approx(
        [math.exp(-3), math.exp(1.5), 100]
    )


def test_marwil_weights_are_in_units_of_the_advantages_spread() -> None:
    weights = torch.exp(marwil_log_weights(torch.tensor([4.0, -2.0]), torch.tensor(4.0), 0.5))
    assert weights.tolist() == pytest.approx([math.e, math.exp(-0.5)])


def test_dwbc_discriminator() -> None:
    (term,) = discriminator_terms(torch.tensor([0.8]), torch.tensor([0.4]), 0.5)
    assert term.item() == pytest.approx(-math.log(0.8) - 2 * math.log(0.6) + math.log(0.2))


def test_dwbc_policy() -> None:
    """d_e = 0.8, eta = 0.5: eta/(d(1-d)) = 3.125; the second of the others is below 0.5 and counts nothing."""
    terms = policy_terms(
        torch.tensor([2.0, 2.0]), torch.tensor([3.0, 3.0]), torch.tensor([0.8, 0.8]), torch.tensor([0.75, 0.4]),
        alpha=7.5, eta=0.5,
    )  # fmt: skip
    assert terms.tolist() == pytest.approx([2 * (7.5 - 3.125 - 1) + 3 * 3, 2 * (7.5 - 3.125 - 1)])


def test_dwbc_sees_densities_between_zero_and_one() -> None:
    densities = torch.tensor([-50.0, -20.0, -5.0, 10.0, 40.0], requires_grad=True)
    scaled = scaled_log_densities(densities)
    assert scaled.tolist() == pytest.approx([0, 0, 0.5, 1, 1]) and not scaled.requires_grad


def test_rewards_of_scores() -> None:
    scores = np.array([0.0, math.log(3), -800.0], dtype=np.float32)
    assert step_rewards(scores, "probability") == pytest.approx([0.5, 0.75, 0.0])
    assert step_rewards(scores, "logit").tolist() == scores.tolist()


def test_returns_along_each_trajectory() -> None:
    returns = trajectory_returns(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 3, 4]), 0.5)
    plain = np.array([1 + 0.5 * 4, 2 + 0.5 * 4, 4, 8])
    assert returns == pytest.approx((plain - plain.mean()) / plain.std())
