"""Losses of TD3+BC and of RCE's critics, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from tailo_pl.losses.td3 import (
    actor_terms,
    critic_terms,
    example_terms,
    smoothed_action,
    success_odds,
    success_terms,
    td_target,
)


def test_target_and_critics() -> None:
    """Two states: the first goes on, the second ended its episode."""
    target = td_target(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 1.0]), torch.tensor([3.0, 100.0]), 0.9)
    assert target.tolist() == pytest.approx([3.7, 2.0])
    terms = critic_terms((torch.tensor([3.0, 2.0]), torch.tensor([4.0, 0.0])), target)
    assert terms.tolist() == pytest.approx([0.7**2 + 0.3**2, 4.0])


def test_smoothing_noise_is_clipped_and_so_is_the_action() -> None:
    noise = torch.tensor([1.0, 9.0, -9.0, 9.0])
    actions = smoothed_action(torch.tensor([0.1, 0.1, 0.1, 0.9]), noise, 0.2, 0.5)
    assert actions.tolist() == pytest.approx([0.3, 0.6, -0.4, 1.0])


def test_actor() -> None:
    actions, recorded = torch.tensor([[0.5, 0.0], [1.0, 1.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0]])
    terms = actor_terms(torch.tensor([2.0, -4.0]), torch.tensor(0.5), actions, recorded)
    assert terms.tolist() == pytest.approx([-1 + 0.125, 2 + 0.5])


def test_odds() -> None:
    odds = success_odds(torch.tensor([0.0, math.log(3)]))
    assert odds.tolist() == pytest.approx([0.5 / 0.50001, 0.75 / 0.25001])
    assert success_odds(torch.tensor(1e4)).item() == pytest.approx(1e5)


def test_steps_towards_success() -> None:
    """w = 2, g = 0.5: label 1/2 with weight 2; critics at probabilities 1/2 and 4/5."""
    critics = (torch.tensor([0.0]), torch.tensor([math.log(4)]))
    expected = 2 * (math.log(2) - 0.5 * (math.log(0.8) + math.log(0.2)))
    assert success_terms(critics, torch.tensor([2.0]), 0.5).item() == pytest.approx(expected)


def test_examples_of_success() -> None:
    critics = (torch.tensor([0.0]), torch.tensor([math.log(4)]))
    assert example_terms(critics, 0.75).item() == pytest.approx(0.25 * (math.log(2) - math.log(0.8)))
