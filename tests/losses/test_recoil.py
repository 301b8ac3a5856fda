"""ReCOIL's losses by hand, and where they settle on a chain of five states with a fork."""

from __future__ import annotations

import math

import pytest
import torch

from tailo_pl.losses.recoil import gumbel_errors, gumbel_terms, recoil_critic_terms, recoil_target

GAMMA, TEMPERATURE = 0.99, 50.0


def test_errors_are_cut_above_seven() -> None:
    errors = gumbel_errors(torch.tensor([3.0, 100.0]), torch.tensor([1.0, 0.0]), 2.0)
    assert errors.tolist() == [1.0, 7.0]


def test_terms_by_hand() -> None:
    terms = gumbel_terms(torch.tensor([0.0, 1.0, 7.0]), torch.tensor(7.0))
    scale = math.exp(-7)
    assert terms.tolist() == pytest.approx([0.0, scale * (math.e - 2), 1 - 8 * scale], abs=1e-6)


def test_target_by_hand() -> None:
    target = recoil_target(torch.tensor([10.0, 10.0]), torch.tensor([0.0, 1.0]), 0.99, -2.0, 200.0)
    assert target.tolist() == pytest.approx([-2 + 9.9, -200.0])


def test_critics_by_hand() -> None:
    terms = recoil_critic_terms((torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])), torch.tensor([1.0, 0.0]))
    assert terms.tolist() == [2.0, 10.0]
    assert recoil_critic_terms((torch.tensor([190.0]), torch.tensor([200.0])), 200.0).tolist() == [50.0]


def test_a_chain_of_five_settles_at_the_closed_form() -> None:
    """From s2 one recorded step ends the episode, the other goes on as the expert does; no step is the expert's own
    but that one. V of a state with two equally frequent steps is T log mean exp(Q / T)."""
    # Steps of TA: state, number of its Q, next state (None: the episode ends).
    steps = [(0, 0, 1), (1, 1, 2), (2, 2, 3), (2, 3, None), (3, 4, 4), (4, 5, None)]
    expert = 2  # the Q of the step s2 -> s3
    q, v = torch.zeros(6, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
    q.requires_grad_(), v.requires_grad_()
    here = torch.tensor([state for state, _, _ in steps])
    numbers = torch.tensor([number for _, number, _ in steps])
    there = torch.tensor([0 if state is None else state for _, _, state in steps])
    done = torch.tensor([float(state is None) for _, _, state in steps], dtype=torch.float64)
    for _ in range(4000):
        errors = gumbel_errors(q.detach()[numbers], v[here], TEMPERATURE)
        largest = errors.detach().max().clamp(min=-1)
        target = recoil_target(v.detach()[there], done, GAMMA, -2.0, 200.0)
        loss = TEMPERATURE**2 * torch.exp(largest) * gumbel_terms(errors, largest).sum()
        loss = loss + recoil_critic_terms((q[numbers], q[numbers]), target).sum() / 2
        loss = loss + recoil_critic_terms((q[[expert]], q[[expert]]), 200.0).sum() / 2
        gradients = torch.autograd.grad(loss, (q, v))
        with torch.no_grad():
            q -= 0.3 * gradients[0]
            v -= 0.3 * gradients[1]

    def soft(one: float, other: float) -> float:
        return TEMPERATURE * math.log((math.exp(one / TEMPERATURE) + math.exp(other / TEMPERATURE)) / 2)

    end = -2 - GAMMA * 200
    v3 = -2 + GAMMA * end
    shared = (200 + (-2 + GAMMA * v3)) / 2  # TS says 200, TA what follows, as often
    v2 = soft(shared, end)
    expected = [-2 + GAMMA * (-2 + GAMMA * v2), -2 + GAMMA * v2, v2, v3, end]
    assert v.tolist() == pytest.approx(expected, abs=0.01)
    assert shared > end and v2 > v3
