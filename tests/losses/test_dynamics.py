"""Losses of models of the dynamics, MOPO's penalty, MOReL's cut and its natural gradients, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from tailo_pl.losses.dynamics import (
    bounded_log_variance,
    disagreement,
    gaussian_terms,
    largest_deviation,
    penalised,
    unknown,
)
from tailo_pl.losses.npg import advantages, conjugate_gradient, gaussian_divergence, natural_step
from tailo_pl.losses.sac import soft_values, temperature_terms


def test_likelihood_by_hand() -> None:
    # Mean 1, variance 4, target 5: 16/4 + log 4, which is -2 log N(5; 1, 4) - log 2 pi.
    terms = gaussian_terms(torch.tensor([1.0]), torch.tensor([math.log(4)]), torch.tensor([5.0]))
    assert terms.item() == pytest.approx(4 + math.log(4))
    density = Normal(1.0, 2.0).log_prob(torch.tensor(5.0)).item()
    assert terms.item() == pytest.approx(-2 * density - math.log(2 * math.pi))


@given(st.floats(-60, 60))
def test_log_variances_keep_to_their_bounds(raw: float) -> None:
    low, high = torch.tensor(-10.0, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    bounded = bounded_log_variance(torch.tensor(raw, dtype=torch.float64), low, high).item()
    assert -10 <= bounded <= 0.5 + 1e-4
    if -7 < raw < -3:
        assert bounded == pytest.approx(raw, abs=0.1)


def test_penalty_of_mopo_by_hand() -> None:
    # Two models, two rows: |(3, 4)| = 5 and |(0, 1)| = 1; |(0, 0)| = 0 and |(6, 8)| = 10.
    deviations = torch.tensor([[[3.0, 4.0], [0.0, 0.0]], [[0.0, 1.0], [6.0, 8.0]]])
    found = largest_deviation(deviations)
    assert found.tolist() == [5, 10]
    assert penalised(torch.tensor([2.0, 1.0]), found, 0.5).tolist() == [-0.5, -4]


def test_cut_of_morel_by_hand() -> None:
    # Three models of a row at (0, 0), (3, 4), (0, 8): distances 5, 8 and 5. They agree on the second row.
    predictions = torch.tensor([[[0.0, 0.0], [1.0, 1.0]], [[3.0, 4.0], [1.0, 1.0]], [[0.0, 8.0], [1.0, 1.0]]])
    found = disagreement(predictions)
    assert found.tolist() == [8, 0]
    assert unknown(found, torch.tensor(23.9), 1 / 3).tolist() == [True, False]
    assert unknown(found, torch.tensor(24.1), 1 / 3).tolist() == [False, False]


def test_soft_values_by_hand() -> None:
    assert soft_values(torch.tensor(2.0), torch.tensor(-3.0), torch.tensor(0.5)).item() == 3.5
    # Entropy 1 is below its target 4, so a step against the gradient raises the temperature.
    log_temperature = torch.zeros((), requires_grad=True)
    temperature_terms(log_temperature, torch.tensor(-1.0), 4.0).backward()
    assert log_temperature.grad is not None and log_temperature.grad.item() == -3


def test_advantages_by_hand() -> None:
    """Two paths: one of three steps that runs out of time, one that falls at its second."""
    rewards = torch.tensor([[1.0, 2.0], [0.0, 4.0], [3.0, 0.0]])
    values = torch.tensor([[1.0, 1.0], [2.0, 1.0], [0.0, 0.0]])
    next_values = 0.5 * torch.tensor([[2.0, 1.0], [0.0, 0.0], [6.0, 0.0]])
    going = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    found = advantages(rewards, values, next_values, going, 0.25)
    # d = 1, -2, 6 and 1.5, 3.
    assert found[:, 0].tolist() == [1 + 0.25 * (-2 + 0.25 * 6), -2 + 0.25 * 6, 6]
    assert found[:2, 1].tolist() == [1.5 + 0.25 * 3, 3]


def test_divergence_is_that_of_gaussians() -> None:
    mean, log_std, old, old_log_std = torch.randn(4, 5, 2, generator=torch.Generator().manual_seed(0))
    expected = kl_divergence(Normal(old, old_log_std.exp()), Normal(mean, log_std.exp())).sum(-1)
    assert torch.allclose(gaussian_divergence(mean, log_std, old, old_log_std), expected, atol=1e-5)


@given(st.integers(0, 1000))
def test_conjugate_gradients_solve_and_the_step_has_its_length(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    half = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    matrix, target = half @ half.T + torch.eye(4), torch.randn(4, generator=generator, dtype=torch.float64)
    solution = conjugate_gradient(lambda vector: matrix @ vector, target, 20)
    assert torch.allclose(matrix @ solution, target, atol=1e-4)
    step = natural_step(target, solution, 0.02)
    assert (step @ matrix @ step).item() == pytest.approx(0.02, rel=1e-3)
