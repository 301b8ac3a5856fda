"""The duals of SMODICE and LobsDICE: by hand, at the optimum of a chain that can be solved, and where it breaks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tailo_pl.inputs.weights import trajectory_weights
from tailo_pl.losses.dice import (
    Divergence,
    chi2_conjugate,
    dual_loss,
    lobsdice_conjugate,
    lobsdice_reward,
    lobsdice_weights,
    slack,
    smodice_weights,
)
from tailo_pl.models.reduction import batch_log_mean_exp

GAMMA = 0.9
# s1 -> s2 -> s3 -> s4 -> s5 -> s5, each step recorded once; states are numbered from 0 here.
Steps = tuple[tuple[int, int], ...]
STEPS: Steps = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 4))
REWARDS = torch.tensor([0.3, -0.2, 0.5, 0.1, 1.0], dtype=torch.float64)
VISITS = torch.tensor([(1 - GAMMA) * GAMMA**k for k in range(4)] + [GAMMA**4], dtype=torch.float64)  # the only policy's
RATIO = VISITS * 5  # to the data, which has every step equally often


class TestByHand:
    """Two states with V = (1, 2), one step each way, R = (0.5, -1), g = 0.9, s0 the first."""

    e = slack(torch.tensor([0.5, -1.0]), torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0]), 0.9)

    def test_slack(self) -> None:
        assert self.e.tolist() == pytest.approx([0.5 + 1.8 - 1, -1 + 0.9 - 2])  # 1.3, -2.1

    def test_kl(self) -> None:
        loss = dual_loss(torch.tensor(1.0), batch_log_mean_exp(self.e, 2), 0.9)
        assert loss.item() == pytest.approx(0.1 + math.log((math.exp(1.3) + math.exp(-2.1)) / 2))
        assert smodice_weights(self.e, "kl").tolist() == pytest.approx([math.exp(1.3), math.exp(-2.1)])

    def test_half_chi2_as_published(self) -> None:
        assert chi2_conjugate(self.e, "chi2_half").tolist() == pytest.approx([1.69 / 2 + 1.3, 4.41 / 2 - 2.1], rel=1e-5)
        assert smodice_weights(self.e, "chi2_half").tolist() == pytest.approx([2.3, 0.0])

    def test_full_chi2(self) -> None:
        assert chi2_conjugate(self.e, "chi2").tolist() == pytest.approx([1.69 / 4 + 1.3, 4.41 / 4 - 2.1], rel=1e-5)
        assert smodice_weights(self.e, "chi2").tolist() == pytest.approx([1.65, 0.0])

    def test_lobsdice(self) -> None:
        log_mean_exp = batch_log_mean_exp(self.e / 1.1, 2)
        exps = [math.exp(1.3 / 1.1), math.exp(-2.1 / 1.1)]
        assert lobsdice_conjugate(log_mean_exp, 0.1, 2).item() == pytest.approx(1.1 * math.log(sum(exps)))
        expected = [one / (sum(exps) / 2) for one in exps]
        assert lobsdice_weights(self.e, log_mean_exp, 0.1).tolist() == pytest.approx(expected, rel=1e-5)

    def test_lobsdice_reward_is_a_bounded_logit(self) -> None:
        rewards = lobsdice_reward(torch.tensor([-100.0, 0.0, 2.0, 100.0], dtype=torch.float64))
        assert rewards[0].item() == pytest.approx(-math.log(1 / 1e-3 - 1 + 1e-3))  # -6.9
        assert rewards[1].item() == pytest.approx(-math.log(1 / 0.501 - 1 + 1e-3))
        assert rewards[2].item() == pytest.approx(2.0, abs=0.05)
        assert rewards[3].item() == pytest.approx(-math.log(1 / 1.001 - 1 + 1e-3), rel=1e-3)  # 13.8


def smodice_loss(values: torch.Tensor, divergence: Divergence, steps: Steps) -> torch.Tensor:
    e = slack_of(values, steps)
    count = len(steps)
    conjugate = batch_log_mean_exp_64(e) if divergence == "kl" else chi2_conjugate(e, divergence).sum() / count
    return dual_loss(values[0], conjugate, GAMMA)


def batch_log_mean_exp_64(e: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(e, 0) - math.log(len(e))


def slack_of(values: torch.Tensor, steps: Steps) -> torch.Tensor:
    here, there = (torch.tensor(side) for side in zip(*steps, strict=True))
    return slack(REWARDS[here], values[here], values[there], GAMMA)


def minimised(loss_of: object) -> torch.Tensor:
    """Values at which a convex loss of five values is smallest."""
    values = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([values], max_iter=2000, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe")  # fmt: skip  # noqa: E501

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = loss_of(values)  # type: ignore[operator]
        loss.backward()
        return loss

    optimiser.step(closure)
    return values.detach()


class TestChain:
    """Only one way through the chain exists, so its occupancy d* is known, and with it the dual's optimum."""

    @pytest.mark.parametrize(
        ("divergence", "distance"),
        [
            ("kl", (VISITS * torch.log(RATIO)).sum()),
            ("chi2_half", ((RATIO - 1) ** 2 / 2).mean()),
            ("chi2", ((RATIO - 1) ** 2).mean()),
        ],
    )
    def test_smodice_settles_at_the_closed_form(self, divergence: Divergence, distance: torch.Tensor) -> None:
        values = minimised(lambda v: smodice_loss(v, divergence, STEPS))
        optimum = (VISITS * REWARDS).sum() - distance  # of E_d*[R] - D_f(d* || d)
        assert smodice_loss(values, divergence, STEPS).item() == pytest.approx(optimum.item(), abs=1e-8)
        weights = smodice_weights(slack_of(values, STEPS), divergence)
        assert (weights / weights.mean()).tolist() == pytest.approx(RATIO.tolist(), rel=1e-4)
        if divergence != "kl":  # which leaves the weights' common factor open
            assert weights.tolist() == pytest.approx(RATIO.tolist(), rel=1e-4)

    def test_lobsdice_settles_at_the_closed_form(self) -> None:
        alpha = 0.1

        def loss(values: torch.Tensor) -> torch.Tensor:
            log_mean_exp = batch_log_mean_exp_64(slack_of(values, STEPS) / (1 + alpha))
            return dual_loss(values[0], lobsdice_conjugate(log_mean_exp, alpha, 5), GAMMA)

        values = minimised(loss)
        # E_d*[R] - (1 + alpha) * KL, with log-sum-exp in place of log-mean-exp
        optimum = (VISITS * REWARDS).sum() - (1 + alpha) * (VISITS * torch.log(VISITS)).sum()
        assert loss(values).item() == pytest.approx(optimum.item(), abs=1e-8)
        e = slack_of(values, STEPS)
        weights = lobsdice_weights(e, batch_log_mean_exp_64(e / (1 + alpha)), alpha)
        assert weights.tolist() == pytest.approx(RATIO.tolist(), rel=1e-4)


class TestMissingStep:
    """The step from s2 to s3 is gone: s2 is reached and never left, s3 left and never reached."""

    broken = (*STEPS[:1], *STEPS[2:])

    def descend(self, steps: Steps, *updates: int) -> list[tuple[torch.Tensor, float]]:
        """Values and loss after so many updates of plain gradient descent."""
        values, reached = torch.zeros(5, dtype=torch.float64, requires_grad=True), []
        for update in range(max(updates) + 1):
            loss = smodice_loss(values, "kl", steps)
            if update in updates:
                reached.append((values.detach().clone(), loss.item()))
            (gradient,) = torch.autograd.grad(loss, values)
            with torch.no_grad():
                values -= 2 * gradient
        return reached

    def test_the_intact_chain_settles(self) -> None:
        optimum = (VISITS * (REWARDS - torch.log(RATIO))).sum().item()
        (values, early), (later, late) = self.descend(STEPS, 1000, 1200)
        assert early == pytest.approx(optimum, abs=1e-6) and late == pytest.approx(optimum, abs=1e-6)
        assert later.tolist() == pytest.approx(values.tolist(), abs=1e-6)

    def test_the_broken_one_runs_away(self) -> None:
        (early, first), (late, second), (later, third) = self.descend(self.broken, 400, 800, 1200)
        # As much in the last third as in the one before: nothing levels off.
        assert first - second > 1 and second - third == pytest.approx(first - second, rel=0.05)
        for falls in (0, 1):
            assert early[falls] - late[falls] > 10 and late[falls] - later[falls] > 10
        assert late[2] - early[2] > 10 and later[2] - late[2] > 10

    def test_tailos_weights_hardly_notice(self) -> None:
        """Before normalisation: a far better state beside them, whose weight is known, is the largest."""
        gamma, alpha, best = 0.998, 1.25, 5.0
        largest = math.exp(alpha * best) / (1 - gamma)

        def weights(scores: list[float]) -> np.ndarray:
            offsets = np.array([0, len(scores), len(scores) + 1])
            return trajectory_weights(np.array([*scores, best]), offsets, alpha=alpha, gamma=gamma)[:-1] * largest

        scores = REWARDS.tolist()
        whole, incomplete = weights(scores), weights([scores[0], *scores[2:]])
        assert incomplete == pytest.approx(np.delete(whole, 1), rel=0.05)
