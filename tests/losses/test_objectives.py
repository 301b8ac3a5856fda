"""The losses against numbers worked out by hand.

All logits are 0 or +-ln 3, so that every softplus is a logarithm of a small fraction:
softplus(0) = ln 2, softplus(ln 3) = ln(1 + 3) = ln 4, softplus(-ln 3) = ln(1 + 1/3) = ln(4/3).

    TS = (ln 3, 0):   pos = (ln(4/3) + ln 2)/2 = ln(8/3)/2 = 0.4904146    neg = (ln 4 + ln 2)/2 = 1.0397208
    U  = (0, -ln 3):  neg = (ln 2 + ln(4/3))/2 = ln(8/3)/2 = 0.4904146
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from tailo_pl.losses.discriminator import (
    LogitTerms,
    Objective,
    cross_entropy,
    debiased,
    debiased_unbounded,
    discriminator_loss,
    interpolate,
    lipschitz_terms,
    logit_terms,
)
from tailo_pl.losses.likelihood import censored_log_densities, squashed_log_densities

TS = (math.log(3), 0.0)
U = (0.0, -math.log(3))


def squashed_log_likelihood(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    return squashed_log_densities(mean, log_variance, actions).sum(-1)


def censored_log_likelihood(mean: Tensor, log_variance: Tensor, actions: Tensor) -> Tensor:
    return censored_log_densities(mean, log_variance, actions).sum(-1)


def mean_terms(ts: tuple[float, ...] = TS, u: tuple[float, ...] = U) -> LogitTerms:
    rows = logit_terms(torch.tensor(ts, dtype=torch.float64), torch.tensor(u, dtype=torch.float64))
    return LogitTerms(*[term.mean() for term in rows])


class TestDiscriminatorLosses:
    def test_terms_per_row(self) -> None:
        pos_ts, neg_ts, neg_u = logit_terms(torch.tensor(TS), torch.tensor(U))
        assert pos_ts.tolist() == pytest.approx([0.2876821, 0.6931472])  # ln(4/3), ln 2
        assert neg_ts.tolist() == pytest.approx([1.3862944, 0.6931472])  # ln 4, ln 2
        assert neg_u.tolist() == pytest.approx([0.6931472, 0.2876821])  # ln 2, ln(4/3)

    def test_terms_of_runaway_logits_are_finite(self) -> None:
        # softplus(1e4) = 1e4 and softplus(-1e4) = 0, where the logarithm of a sigmoid would be -inf.
        terms = logit_terms(torch.tensor([1e4, -1e4]), torch.tensor([1e4, -1e4]))
        assert terms.pos_ts.tolist() == [0, 1e4]
        assert terms.neg_ts.tolist() == terms.neg_u.tolist() == [1e4, 0]

    def test_debiased_with_the_max_inactive(self) -> None:
        # 0.2*0.4904146 + max(0, 0.4904146 - 0.2*1.0397208 = 0.2824704) = 0.0980829 + 0.2824704
        assert debiased(mean_terms(), 0.2).item() == pytest.approx(0.3805533, abs=1e-7)

    def test_debiased_with_the_max_active(self) -> None:
        # 0.5*0.4904146 + max(0, 0.4904146 - 0.5*1.0397208 = -0.0294458) = 0.2452073 + 0
        assert debiased(mean_terms(), 0.5).item() == pytest.approx(0.2452073, abs=1e-7)

    def test_active_max_stops_the_gradient_of_the_unlabelled(self) -> None:
        u = torch.tensor(U, requires_grad=True)
        for eta_p, moves in ((0.2, True), (0.5, False)):
            terms = LogitTerms(*[term.mean() for term in logit_terms(torch.tensor(TS), u)])
            (gradient,) = torch.autograd.grad(debiased(terms, eta_p), u)
            assert bool(gradient.abs().sum() > 0) == moves

    def test_debiased_unbounded(self) -> None:
        # the same sums without the max: 0.0980829 + 0.2824704 and 0.2452073 - 0.0294458
        assert debiased_unbounded(mean_terms(), 0.2).item() == pytest.approx(0.3805533, abs=1e-7)
        assert debiased_unbounded(mean_terms(), 0.5).item() == pytest.approx(0.2157615, abs=1e-7)

    def test_cross_entropy(self) -> None:
        # 0.4904146 + 0.4904146 = ln(8/3)
        assert cross_entropy(mean_terms()).item() == pytest.approx(0.9808293, abs=1e-7)

    @pytest.mark.parametrize(
        ("objective", "eta_p", "beta_2", "expected"),
        [
            ("debiased", 0.5, 0.3, 0.2452073),
            ("debiased_unbounded", 0.5, 0.3, 0.2157615),
            ("cross_entropy", 0.5, 0.3, 0.9808293),
            ("mixed", 0.2, 0.0, 0.9808293),  # cross entropy alone
            ("mixed", 0.2, 1.0, 0.3805533),  # debiased alone
            ("mixed", 0.2, 0.25, 0.8307603),  # 0.25*0.3805533 + 0.75*0.9808293
        ],
    )
    def test_chosen_by_name(self, objective: Objective, eta_p: float, beta_2: float, expected: float) -> None:
        loss = discriminator_loss(mean_terms(), objective, eta_p=eta_p, beta_2=beta_2)
        assert loss.item() == pytest.approx(expected, abs=1e-7)


class TestPenalty:
    def test_interpolate(self) -> None:
        # 0.25*(0, 8) + 0.75*(4, 0) = (3, 2); mix 0 is the other side, mix 1 is TS
        ts, u = torch.tensor([[0.0, 8.0]] * 3), torch.tensor([[4.0, 0.0]] * 3)
        points = interpolate(ts, u, torch.tensor([0.25, 0.0, 1.0]))
        assert points.tolist() == [[3, 2], [4, 0], [0, 8]]

    def test_lipschitz_terms(self) -> None:
        # ||(3, 4)|| = 5: (5-1)^2 = 16; ||(0, 1)|| = 1: 0; ||(0, 0)|| = 0: 1; ||(0.3, 0.4)|| = 0.5: 0.25
        rows = torch.tensor([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0], [0.3, 0.4]])
        assert lipschitz_terms(rows).tolist() == pytest.approx([16, 0, 1, 0.25])

    def test_zero_gradient_can_be_differentiated(self) -> None:
        rows = torch.zeros(2, 3, requires_grad=True)
        lipschitz_terms(rows).sum().backward()
        assert rows.grad is not None
        assert rows.grad.isfinite().all()


def random_rows(rows: int = 40, dim: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    log_variance = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    actions = 1.98 * torch.rand(rows, dim, generator=generator, dtype=torch.float64) - 0.99
    return mean, log_variance, actions


class TestSquashedLikelihood:
    def test_by_hand(self) -> None:
        # a = tanh(1) = 0.7615942 under N(0, 1): log N(1) = -0.9189385 - 0.5 = -1.4189385, and the change of
        # variables -log(1 - a^2) = -log(0.4199743) = +0.8675617.
        actions = torch.tensor([[math.tanh(1.0)]], dtype=torch.float64)
        zero = torch.zeros(1, 1, dtype=torch.float64)
        assert squashed_log_likelihood(zero, zero, actions).tolist() == pytest.approx([-0.5513769], abs=1e-6)
        # Mean 2, log-variance ln 4: z = (1-2)/2, -0.5*(0.25 + 1.3862944 + 1.8378771) = -1.7370857, + 0.8675617
        value = squashed_log_likelihood(zero + 2, zero + math.log(4), actions)
        assert value.tolist() == pytest.approx([-0.8695240], abs=1e-6)

    def test_equal_to_torch_distributions(self) -> None:
        mean, log_variance, actions = random_rows()
        expected = TransformedDistribution(Normal(mean, (log_variance / 2).exp()), [TanhTransform()]).log_prob(actions)
        torch.testing.assert_close(squashed_log_likelihood(mean, log_variance, actions), expected.sum(-1))

    def test_is_a_density(self) -> None:
        grid = torch.linspace(-1, 1, 200_001, dtype=torch.float64)[:, None]
        shape = torch.ones_like(grid)
        density = squashed_log_likelihood(0.3 * shape, -1.0 * shape, grid).exp()
        assert torch.trapezoid(density, grid[:, 0]).item() == pytest.approx(1, abs=1e-4)

    def test_bounds_are_clamped(self) -> None:
        # atanh(1 - 1e-6) = 0.5*ln((2 - 1e-6)/1e-6) = 7.2543286
        mean, log_variance = torch.full((2, 1), 0.5).double(), torch.zeros(2, 1).double()
        at_bound = squashed_log_likelihood(mean, log_variance, torch.tensor([[1.0], [-1.0]]).double())
        expected = [-0.5 * (x - 0.5) ** 2 - 0.9189385 - math.log(2e-6) for x in (7.2543286, -7.2543286)]
        assert at_bound.tolist() == pytest.approx(expected, abs=1e-4)


class TestCensoredLikelihood:
    def test_interior_is_the_squashed_density(self) -> None:
        mean, log_variance, actions = random_rows()
        torch.testing.assert_close(
            censored_log_likelihood(mean, log_variance, actions), squashed_log_likelihood(mean, log_variance, actions)
        )

    @pytest.mark.parametrize(
        ("action", "mean", "std", "expected"),
        [
            (1.0, 2.0, 3.0, math.log(0.5)),  # half of the Gaussian lies beyond its own mean
            (-1.0, -2.0, 0.1, math.log(0.5)),
            (1.0, 4.0, 2.0, math.log(0.8413447)),  # P(x >= 2) = Phi((4-2)/2) = Phi(1)
            (1.0, 0.0, 2.0, math.log(0.1586553)),  # Phi(-1)
            (-1.0, 0.0, 2.0, math.log(0.1586553)),  # P(x <= -2), the same by symmetry
            (-1.0, 2.0, 2.0, math.log(0.02275013)),  # Phi(-2)
        ],
    )
    def test_a_bound_is_the_tail_beyond_it(self, action: float, mean: float, std: float, expected: float) -> None:
        value = censored_log_likelihood(
            *(torch.tensor([[number]], dtype=torch.float64) for number in (mean, 2 * math.log(std), action))
        )
        assert value.item() == pytest.approx(expected, abs=1e-6)

    def test_tail_is_the_mass_of_the_distribution(self) -> None:
        mean, log_variance, _ = random_rows()
        signs = torch.where(torch.arange(mean.numel()).reshape(mean.shape) % 2 == 0, 1.0, -1.0).double()
        # P(x >= 2) and P(x <= -2) by the complementary error function, which keeps its digits in the tails
        distance = torch.where(signs > 0, 2 - mean, 2 + mean) / (log_variance / 2).exp()
        mass = 0.5 * torch.erfc(distance / math.sqrt(2))
        torch.testing.assert_close(censored_log_likelihood(mean, log_variance, signs), mass.log().sum(-1))

    def test_bounds_and_interior_in_one_row(self) -> None:
        # log Phi((4-2)/2) = -0.1727538 at the bound, -0.5513769 inside (see TestSquashedLikelihood)
        value = censored_log_likelihood(
            torch.tensor([[4.0, 0.0]]), torch.tensor([[math.log(4), 0.0]]), torch.tensor([[1.0, math.tanh(1.0)]])
        )
        assert value.item() == pytest.approx(-0.7241307, abs=1e-5)

    def test_tolerance_decides_what_is_at_the_bound(self) -> None:
        mean, log_variance = torch.full((2, 1), 2.0), torch.zeros(2, 1)
        inside, outside = censored_log_likelihood(mean, log_variance, torch.tensor([[0.9998], [0.99995]]))
        assert outside.item() == pytest.approx(math.log(0.5), abs=1e-6)
        assert inside.item() == pytest.approx(
            squashed_log_likelihood(mean[:1], log_variance[:1], torch.tensor([[0.9998]])).item(), abs=1e-3
        )


@pytest.mark.parametrize("likelihood", [squashed_log_likelihood, censored_log_likelihood])
@pytest.mark.parametrize("log_variance", [-10.0, -3.0, 4.0])
def test_gradients_are_finite_at_the_bounds(likelihood, log_variance: float) -> None:
    mean = torch.tensor([[0.0], [0.0], [9.0], [-9.0], [0.0]], requires_grad=True)
    log_variances = torch.full((5, 1), log_variance, requires_grad=True)
    # In float32; 1.0000001 is what mapping an action to [-1, 1] may round to.
    value = likelihood(mean, log_variances, torch.tensor([[1.0], [-1.0], [-1.0], [1.0], [1.0000001]]))
    value.sum().backward()
    assert value.isfinite().all()
    assert mean.grad.isfinite().all()
    assert log_variances.grad.isfinite().all()
    assert mean.grad[0] > 0  # an action at the upper bound pulls the mean up
    assert mean.grad[1] < 0
