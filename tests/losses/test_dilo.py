"""DILO's losses by hand, their optimum on a chain of five states, and the sum of orthogonal gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.losses.dilo import bounded_chi2_conjugate, mixture_terms, orthogonal_sum, residual

GAMMA, BALANCE, SHARE = 0.9, 0.8, 0.5


def test_conjugate_by_hand() -> None:
    y = torch.tensor([-5.0, -2.0, 0.0, 2.0], dtype=torch.float64)
    assert bounded_chi2_conjugate(y).tolist() == [-1.0, -1.0, 0.0, 3.0]  # y^2/4 + y from -2 up


@given(st.floats(-6, 6))
def test_conjugate_is_the_largest_of_its_lines(y: float) -> None:
    """f*(y) = max over x >= 0 of x*y - (x - 1)^2."""
    x = torch.linspace(0, 6, 6001, dtype=torch.float64)
    largest = (x * y - (x - 1).square()).max().item()
    assert bounded_chi2_conjugate(torch.tensor(y, dtype=torch.float64)).item() == pytest.approx(largest, abs=1e-5)


def test_residual_by_hand() -> None:
    y = residual(torch.tensor([2.0, 0.0]), torch.tensor([1.0, -1.0]), 0.9)
    assert y.tolist() == pytest.approx([0.8, 1.0])


def test_mixture_by_hand() -> None:
    terms = mixture_terms(torch.tensor([2.0]), torch.tensor([-5.0]), 0.25)
    assert terms.tolist() == pytest.approx([0.25 * 3 + 0.75 * (-1 + 5)])


class TestOrthogonalSum:
    def test_by_hand(self) -> None:
        forward, backward = (
            [torch.tensor([1.0, 0.0]), torch.tensor([1.0])],
            [torch.tensor([2.0, 3.0]), torch.tensor([0.0])],
        )
        along = 2 / 2
        expected = [[1 + 0.5 * (2 - along), 0.5 * 3], [1 + 0.5 * (0 - along)]]
        assert [one.tolist() for one in orthogonal_sum(forward, backward, 0.5)] == expected

    @given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.lists(st.floats(-3, 3), min_size=4, max_size=4))
    def test_what_is_added_does_not_work_against_forward(self, one: list[float], other: list[float]) -> None:
        forward, backward = torch.tensor(one, dtype=torch.float64), torch.tensor(other, dtype=torch.float64)
        (total,) = orthogonal_sum([forward], [backward], 1.0)
        if forward.norm() > 1e-3:
            assert ((total - forward) @ forward).item() == pytest.approx(0, abs=1e-9)

    def test_no_forward_gradient(self) -> None:
        (total,) = orthogonal_sum([torch.zeros(2)], [torch.ones(2)], 0.5)
        assert total.tolist() == [0.5, 0.5]


def test_a_chain_of_five_settles_at_the_closed_form() -> None:
    """Pairs 0..4 follow each other, the last itself; TA has all of them and a side step (5) that leads to itself, TS
    the chain's. With the gradient through V(s, s') alone every pair settles where its own terms balance: at
    w = f*'(y) with (1-l)*d_TA = l*(b*d_TS*w + (1-b)*d_TA*(w - 1)), y = 2*(w - 1), V = g*V' - y."""
    values = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    there = torch.tensor([1, 2, 3, 4, 4, 5])
    for _ in range(3000):
        y = residual(values.detach()[there], values, GAMMA)
        # Each row of the chain's five is drawn as often from TS as from TA: 1/5 and 1/6.
        on_chain = mixture_terms(y[:5], torch.zeros(5), SHARE).mean() + mixture_terms(torch.zeros(6), y, SHARE).mean()
        loss = (1 - BALANCE) * values.mean() + BALANCE * on_chain
        (gradient,) = torch.autograd.grad(loss, values)
        with torch.no_grad():
            values -= 5 * gradient
    w = ((1 - BALANCE) / 6 + BALANCE * (1 - SHARE) / 6) / (BALANCE * (SHARE / 5 + (1 - SHARE) / 6))
    chain = -2 * (w - 1) / (1 - GAMMA)  # of the last pair, and so of all before it
    side = -2 * (1 - BALANCE) / (BALANCE * (1 - SHARE)) / (1 - GAMMA)
    assert values.tolist() == pytest.approx([chain] * 5 + [side], abs=1e-6)
    assert chain > side
