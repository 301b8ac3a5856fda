"""Heads by hand: the loss of a row, the action that is played, and what a policy makes of a head it has never met."""

from __future__ import annotations

import math

import pytest
import torch
from lightning import Trainer
from torch import Tensor

from tailo_pl.data.batches import TransitionBatch, WeightedBatch
from tailo_pl.errors import UserError
from tailo_pl.losses.likelihood import Likelihood
from tailo_pl.models import IQL, MARWIL, LobsDICE, WeightedBCPolicy
from tailo_pl.models.heads import (
    ClippedGaussian,
    Gaussian,
    Head,
    Mixture,
    Regression,
    SquashedGaussian,
    TanhMeanGaussian,
)

pytestmark = pytest.mark.usefixtures("seeded")
HALF = 0.5 * math.log(3)  # tanh of it is 0.5


class TestGaussian:
    def test_log_variance(self) -> None:
        # 7*tanh(0) - 3 = -3; 7*tanh(0.5 ln 3) - 3 = 0.5; it stays within -10 and 4
        mean, log_variance = Gaussian().distribution(torch.tensor([[0.3, -2.0, 0.0, HALF]]))
        assert mean.tolist()[0] == pytest.approx([0.3, -2])
        assert log_variance.tolist()[0] == pytest.approx([-3, 0.5], abs=1e-6)
        assert Gaussian().distribution(torch.tensor([[0.0, 0.0, 50.0, -50.0]]))[1].tolist() == [[4, -10]]

    # Log-variance 0, that is tanh(x) = 3/7; a = tanh(1) under N(0, 1): -1.4189385 + 0.8675617 = -0.5513769.
    # At the bound, mean 2: half of the Gaussian lies beyond 2: ln 2. Squashed: atanh(1 - 1e-6) = 7.2543286,
    # 0.5*5.2543286^2 + 0.9189385 + log(1 - (1 - 1e-6)^2) = 13.8039846 + 0.9189385 - 13.1223639 = 1.6005592.
    @pytest.mark.parametrize(("likelihood", "at_bound"), [("squashed", 1.6005592), ("censored", math.log(2))])
    def test_losses(self, likelihood: Likelihood, at_bound: float) -> None:
        unit = math.atanh(3 / 7)
        outputs = torch.tensor([[0.0, unit], [2.0, unit]], dtype=torch.float64)
        losses = Gaussian(likelihood).losses(outputs, torch.tensor([[math.tanh(1)], [1.0]], dtype=torch.float64))
        assert losses.tolist() == pytest.approx([0.5513769, at_bound], abs=1e-4)

    def test_action(self) -> None:
        assert Gaussian().width(3) == 6
        assert Gaussian().act(torch.tensor([[HALF, 0.0, 9.0, -9.0]])).tolist()[0] == pytest.approx([0.5, 0])


class TestClippedGaussian:
    def test_clips(self) -> None:
        # The log-variance is twice the log-deviation, which stays within -5 and 2.
        head = ClippedGaussian(mean_limit=1.5)
        mean, log_variance = head.distribution(torch.tensor([[9.0, -9.0, 0.3, 0.5, 7.0, -7.0]]))
        assert mean.tolist()[0] == pytest.approx([1.5, -1.5, 0.3]) and log_variance.tolist() == [[1, 4, -10]]
        assert head.act(torch.tensor([[9.0, HALF, 0.0, 0.0]])).tolist()[0] == pytest.approx([math.tanh(1.5), 0.5])

    def test_losses(self) -> None:
        # Mean 2, deviation 2, a = tanh(1): -0.8695240 (tests/losses); two such dimensions add up.
        outputs = torch.tensor([[2.0, 2.0, math.log(2), math.log(2)]], dtype=torch.float64)
        losses = ClippedGaussian(7.0).losses(outputs, torch.full((1, 2), math.tanh(1), dtype=torch.float64))
        assert losses.tolist() == pytest.approx([2 * 0.8695240], abs=1e-6)

    def test_likelihood_of_a_draw(self) -> None:
        # Mean 0, deviation 1, noise 1: the draw is tanh(1), whose log-density is -0.5513769.
        action, likelihood = ClippedGaussian(7.0).drawn(torch.zeros(1, 2), torch.ones(1, 1))
        assert action.item() == pytest.approx(math.tanh(1))
        assert likelihood.tolist() == pytest.approx([-0.5513769], abs=1e-6)

    def test_limit_is_positive(self) -> None:
        with pytest.raises(UserError, match="mean_limit: 0 given"):
            ClippedGaussian(0)


def test_tanh_mean_gaussian() -> None:
    head = TanhMeanGaussian()
    head.prepare(action_dim=2)
    assert head.width(2) == 2 and head.log_std.tolist() == [0, 0]
    with torch.no_grad():
        head.log_std.copy_(torch.tensor([math.log(2), -9.0]))  # the second counts as -5
    outputs, actions = torch.tensor([[HALF, 0.0]]), torch.tensor([[-0.5, 0.0]])
    assert head.act(outputs).tolist()[0] == pytest.approx([0.5, 0])
    # Unit 1: z = -1/2, 0.5*(0.25 + 1.8378771) + 0.6931472 = 1.7370857; unit 2: z = 0, 0.9189385 - 5 = -4.0810615
    assert head.losses(outputs, actions).tolist() == pytest.approx([1.7370857 - 4.0810615], abs=1e-5)


class TestRegression:
    # Distances 0.5 and 0.3: 0.34 / (2 * 0.1^2) = 17; with deviation 1 half of 0.34. Huber, linear beyond 0.1:
    # 0.1 * (2*0.5 - 0.1) = 0.09 and 0.1 * (2*0.3 - 0.1) = 0.05, together 0.14 / (2 * 0.1^2) = 7.
    @pytest.mark.parametrize(
        ("head", "loss"),
        [
            (Regression(), 17.0),
            (Regression(std=1.0), 0.17),
            (Regression("huber"), 7.0),
            (Regression("huber", delta=9), 17),
        ],
    )
    def test_losses(self, head: Regression, loss: float) -> None:
        outputs, actions = torch.tensor([[HALF, 0.0]]), torch.tensor([[0.0, -0.3]])
        assert head.losses(outputs, actions).tolist() == pytest.approx([loss], rel=1e-5)

    def test_huber_is_squared_nearby(self) -> None:
        outputs, actions = torch.zeros(1, 2), torch.tensor([[0.05, -0.09]])
        near = Regression("huber").losses(outputs, actions)
        torch.testing.assert_close(near, Regression().losses(outputs, actions))

    def test_action(self) -> None:
        assert Regression().width(3) == 3
        assert Regression().act(torch.tensor([[HALF, -HALF, 0.0]])).tolist()[0] == pytest.approx([0.5, -0.5, 0])

    @pytest.mark.parametrize(("arguments", "message"), [({"std": 0.0}, "head.std: 0"), ({"delta": -1.0}, "head.delta")])
    def test_bad_arguments(self, arguments: dict[str, float], message: str) -> None:
        with pytest.raises(UserError, match=message):
            Regression(**arguments)  # type: ignore[arg-type]


class TestMixture:
    def test_losses_of_regressions(self) -> None:
        # p = 1/4 and 3/4, actions 0 and 0.5, recorded 0: -log(1/4 + 3/4 * exp(-0.125)) = -log(0.9118727)
        outputs = torch.tensor([[0.0, math.log(3), 0.0, HALF]])
        losses = Mixture(Regression(std=1.0), components=2).losses(outputs, torch.zeros(1, 1))
        assert losses.tolist() == pytest.approx([0.0922549], abs=1e-6)

    def test_losses_of_gaussians(self) -> None:
        # -log of the densities at tanh(1): 0.5513769 of N(0, 1), 0.8695240 of N(2, 4), as above.
        outputs = [0.0, math.log(3), 0.0, math.atanh(3 / 7), 2.0, math.atanh((3 + math.log(4)) / 7)]
        actions = torch.tensor([[math.tanh(1)]], dtype=torch.float64)
        losses = Mixture(Gaussian(), components=2).losses(torch.tensor([outputs], dtype=torch.float64), actions)
        expected = -math.log(0.25 * math.exp(-0.5513769) + 0.75 * math.exp(-0.8695240))
        assert losses.tolist() == pytest.approx([expected], abs=1e-6)

    @pytest.mark.parametrize("of", [Regression(), Regression("huber"), Gaussian("censored"), ClippedGaussian(7.0)])
    def test_of_one_component_is_that_component(self, of: Head) -> None:
        outputs, actions = torch.randn(20, of.width(2)), torch.rand(20, 2) * 2 - 1
        mixture, with_logit = Mixture(of, components=1), torch.cat([torch.randn(20, 1), outputs], -1)
        torch.testing.assert_close(mixture.losses(with_logit, actions), of.losses(outputs, actions))
        assert torch.equal(mixture.act(with_logit), of.act(outputs))

    def test_acts_as_the_strongest_component(self) -> None:
        head = Mixture(Regression(), components=3)
        assert head.width(2) == 9
        outputs = torch.tensor([[0.0, 2.0, 1.0, 9, 9, HALF, -HALF, 9, 9], [3.0, 2.0, 1.0, HALF, 0, 9, 9, 9, 9]])
        assert head.act(outputs)[0].tolist() == pytest.approx([0.5, -0.5])
        assert head.act(outputs)[1].tolist() == pytest.approx([0.5, 0])

    def test_takes_one_of_two_behaviours_where_a_regression_takes_neither(self) -> None:
        actions = torch.where(torch.arange(300)[:, None] % 3 == 0, -0.8, 0.8)  # two thirds go one way
        played = {}
        for head in (Regression(), Mixture(Regression(), components=4)):
            outputs = torch.nn.Parameter(torch.randn(head.width(1)))
            adam = torch.optim.Adam([outputs], lr=0.05)
            for _ in range(300):
                adam.zero_grad()
                head.losses(outputs.expand(300, -1), actions).mean().backward()
                adam.step()
            played[type(head)] = head.act(outputs[None]).item()
        assert played[Mixture] == pytest.approx(0.8, abs=0.02) and played[Regression] == pytest.approx(
            0.8 / 3, abs=0.02
        )

    def test_of_a_head_with_weights_of_its_own(self) -> None:
        policy = WeightedBCPolicy(3, *BOUNDS, head=Mixture(TanhMeanGaussian(), components=2), hidden=(8,))
        assert policy(torch.randn(4, 3)).shape == (4, 2)
        assert sum("log_std" in name for name, _ in policy.named_parameters()) == 1

    def test_of_nothing(self) -> None:
        with pytest.raises(UserError, match=r"head\.components: 0 given, expected a number in \[1, inf\)"):
            Mixture(Regression(), components=0)


@pytest.mark.parametrize(
    "head",
    [Regression(), Regression("huber", delta=0.3), Mixture(Regression(std=0.5), 3), Mixture(Gaussian("censored"), 2)],
)
def test_gradients(head: Head) -> None:
    outputs = torch.randn(6, head.width(2), dtype=torch.float64, requires_grad=True)
    actions = torch.rand(6, 2, dtype=torch.float64) * 2 - 1
    actions[0] = 1.0
    assert torch.autograd.gradcheck(lambda given: head.losses(given, actions), outputs)


class Two(Head):
    """A head as one would add it: two guesses of the action, both learn, their mean is played."""

    def width(self, action_dim: int) -> int:
        return 2 * action_dim

    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        return sum(((guess - actions).square().sum(-1) for guess in outputs.chunk(2, -1)), torch.zeros(()))

    def act(self, outputs: Tensor) -> Tensor:
        return torch.stack(outputs.chunk(2, -1)).mean(0).clamp(-1, 1)


BOUNDS = ([-1.0, -1.0], [1.0, 1.0])


@pytest.mark.parametrize("make", [WeightedBCPolicy, MARWIL, LobsDICE, IQL])
def test_a_new_head_is_one_class(make: type[WeightedBCPolicy]) -> None:
    policy = make(3, *BOUNDS, head=Two(), hidden=(8,))
    assert policy.actor.network(torch.zeros(1, 3)).shape == (1, 4)
    states = torch.randn(5, 3)
    guesses = policy.actor.network(states)
    expected = (0.5 * (guesses[:, :2] + guesses[:, 2:])).clamp(-1, 1)
    torch.testing.assert_close(policy(states), expected)
    assert policy.description()["init_args"]["head"] == {"class_path": f"{__name__}.Two", "init_args": {}}


def test_the_held_out_error_is_that_of_the_played_action(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: dict[str, Tensor] = {}
    batch = WeightedBatch(torch.randn(6, 3), torch.rand(6, 2) - 0.5, torch.rand(6), 6)
    for head in (Gaussian(), ClippedGaussian(7.0), TanhMeanGaussian(), Regression(), Mixture(Regression()), Two()):
        policy = WeightedBCPolicy(3, *BOUNDS, head=head, hidden=(8,))
        monkeypatch.setattr(policy, "log_dict", lambda numbers, batch_size: logged.update(numbers))
        with torch.no_grad():
            policy.validation_step(batch, 0)
            errors = (policy(batch.observations) - batch.actions).square().mean(-1)
            losses = head.losses(policy.actor.outputs(batch.observations), batch.actions)
        for name, rows in (("error", errors), ("loss", losses)):
            expected = (batch.weights * rows).sum() / batch.weights.sum()
            assert logged[f"held_out/{name}"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_head_with_weights_of_its_own_learns_them() -> None:
    policy = WeightedBCPolicy(3, *BOUNDS, head=TanhMeanGaussian(), hidden=(8,), averaging=0.5)
    trained = {name for name, _ in policy.actor.named_parameters()}
    assert "head.log_std" in trained and policy.average is not None
    assert {name for name, _ in policy.average.named_parameters()} == trained
    policy.trainer = Trainer(accelerator="cpu", devices=1, logger=False, max_steps=9, enable_checkpointing=False)
    policy.training_step(WeightedBatch(torch.randn(6, 3), torch.rand(6, 2), torch.ones(6), 6), 0).backward()
    assert policy.actor.head.get_parameter("log_std").grad is not None


def test_noise_of_the_batch_reaches_the_head() -> None:
    seen: list[Tensor | None] = []

    class Noisy(Two):
        def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
            seen.append(noise)
            return super().losses(outputs, actions)

    zeros, noise = torch.zeros(4), torch.randn(4, 2)
    batch = TransitionBatch(
        torch.randn(4, 3), torch.rand(4, 2), torch.randn(4, 3), zeros, zeros, torch.randn(4, 3), zeros, noise, None, 4
    )
    policy = MARWIL(3, *BOUNDS, head=Noisy(), hidden=(8,))
    policy.trainer = Trainer(accelerator="cpu", devices=1, logger=False, max_steps=9, enable_checkpointing=False)
    policy.training_step(batch, 0)
    assert seen[0] is noise


def test_squashed_gaussian_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        SquashedGaussian()  # type: ignore[abstract]
