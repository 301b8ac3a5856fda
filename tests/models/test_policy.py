"""WeightedBCPolicy: bounds, weights, and that it learns what is weighted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import torch
from lightning import Trainer
from torch import nn

from tailo_pl.data.batches import WeightedBatch
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.losses.likelihood import Likelihood
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.acting import actor
from tailo_pl.models.heads import Gaussian

pytestmark = pytest.mark.usefixtures("seeded")

LOW, HIGH = [-1.0, 0.0], [3.0, 0.5]


def small(**arguments) -> WeightedBCPolicy:
    return WeightedBCPolicy(
        **{"observation_dim": 3, "action_low": LOW, "action_high": HIGH, "hidden": (8, 8), **arguments}
    )


def with_heads(mean: list[float], head: list[float]) -> WeightedBCPolicy:
    """A policy whose heads give these numbers at every state."""
    policy = small()
    last = policy.actor.network[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    with torch.no_grad():
        last.bias.copy_(torch.tensor(mean + head))
    return policy


class TestActions:
    def test_within_the_bounds(self) -> None:
        policy = small()
        with torch.no_grad():
            for parameter in policy.actor.parameters():
                parameter.mul_(20)  # saturate some of the actions
            actions = policy(torch.randn(500, 3))
        assert (actions >= torch.tensor(LOW)).all() and (actions <= torch.tensor(HIGH)).all()
        assert (actions.max(0).values - actions.min(0).values > 0.5 * (torch.tensor(HIGH) - torch.tensor(LOW))).all()

    def test_deterministic_action_is_tanh_of_the_mean(self) -> None:
        # tanh(0) = 0: the middle, 1 and 0.25; tanh(0.5 ln 3) = 0.5: -1 + 0.75*4 = 2 and 0 + 0.75*0.5 = 0.375
        assert with_heads([0, 0], [0, 0])(torch.zeros(1, 3)).tolist()[0] == pytest.approx([1, 0.25])
        half = 0.5 * math.log(3)
        assert with_heads([half, half], [9, -9])(torch.zeros(1, 3)).tolist()[0] == pytest.approx([2, 0.375])

    def test_normalise(self) -> None:
        mapped = small().bounds.normalise(torch.tensor([LOW, HIGH, [1.0, 0.25], [2.0, 0.375]]))
        torch.testing.assert_close(mapped, torch.tensor([[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]))

    def test_normalise_undoes_forward(self) -> None:
        policy, states = small(), torch.randn(20, 3)
        torch.testing.assert_close(policy.bounds.normalise(policy(states)), policy.acting(states))

    def test_takes_raw_states(self) -> None:
        policy, states = small(), torch.randn(5, 3)
        plain = policy(states)
        mean, std = torch.tensor([5.0, -100.0, 0.0]), torch.tensor([2.0, 30.0, 1e-2])
        policy.standardise.set(mean, std)
        torch.testing.assert_close(policy(states * std + mean), plain, rtol=1e-4, atol=1e-4)

    def test_actor_is_the_policy_on_arrays(self) -> None:
        policy, states = small(), np.random.default_rng(0).normal(size=(6, 3))
        actions = actor(policy)(states)
        assert isinstance(actions, np.ndarray)
        with torch.no_grad():
            np.testing.assert_array_equal(actions, policy(torch.from_numpy(states).float()))


class TestLoss:
    @pytest.mark.parametrize("likelihood", get_args(Likelihood))
    def test_is_the_weighted_mean(self, make_trainer: Callable[..., Trainer], likelihood: Likelihood) -> None:
        policy = small(head=Gaussian(likelihood))
        policy.trainer = make_trainer(max_steps=1000)
        states = torch.randn(10, 3)
        actions = torch.tensor(LOW) + torch.rand(10, 2) * (torch.tensor(HIGH) - torch.tensor(LOW))
        actions[0] = torch.tensor(HIGH)
        weights = torch.rand(10)
        loss = policy.training_step(WeightedBatch(states, actions, weights, 10), 0)
        rows = policy.actor.losses(policy.standardise(states), policy.bounds.normalise(actions))
        assert loss.item() == pytest.approx((weights * rows).sum().item() / 10, rel=1e-5)

    def test_likelihoods_differ_at_the_bounds(self, make_trainer: Callable[..., Trainer]) -> None:
        batch = WeightedBatch(torch.zeros(1, 3), torch.tensor([HIGH]), torch.ones(1), 1)
        losses = []
        for likelihood in get_args(Likelihood):
            policy = small(head=Gaussian(likelihood))
            policy.trainer = make_trainer(max_steps=1000)
            losses.append(policy.training_step(batch, 0).item())
        assert abs(losses[0] - losses[1]) > 1

    def test_weight_zero_does_not_count(self, make_trainer: Callable[..., Trainer]) -> None:
        policy = small()
        policy.trainer = make_trainer(max_steps=1000)
        states, actions = torch.randn(4, 3), torch.full((4, 2), 0.2)
        weights = torch.tensor([1.0, 0.0, 0.5, 0.0])
        changed = actions.clone()
        changed[[1, 3]] = 0.4
        one, two = (policy.training_step(WeightedBatch(states, a, weights, 4), 0) for a in (actions, changed))
        assert one == two


class TestTraining:
    @pytest.fixture
    def data(self, task_data, trajectories_of: Callable[..., Trajectories]) -> Callable[..., TaskData]:
        """At every state, half of the rows act +0.5 and half of them -0.5."""
        states = np.random.default_rng(0).normal(3, 2, (400, 3))
        actions = np.where(np.arange(400)[:, None] % 2 == 0, 0.5, -0.5) * [1, 1]
        ta = trajectories_of(states, [100] * 4, actions=actions)
        return lambda **arguments: task_data(ta, ta, batches="weighted", batch_size=64, **arguments)

    def policy(self, **arguments) -> WeightedBCPolicy:
        return small(action_low=[-1.0, -1.0], action_high=[1.0, 1.0], learning_rate=1e-2, **arguments)

    @pytest.mark.parametrize("likelihood", get_args(Likelihood))
    @pytest.mark.parametrize("sampling", ["uniform", "proportional"])
    def test_follows_the_weights(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer], likelihood: Likelihood, sampling: str
    ) -> None:
        weights = np.where(np.arange(400) % 2 == 0, 1.0, 0.0).astype(np.float32)
        policy, task = self.policy(head=Gaussian(likelihood)), data(weights=weights, sampling=sampling)
        make_trainer(max_steps=200).fit(policy, datamodule=task)
        with torch.no_grad():
            actions = policy(torch.from_numpy(task.task.ta.observations))
        assert (actions - 0.5).abs().mean() < 0.1

    def test_without_weights_it_cannot_know(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        policy, task = self.policy(), data()
        make_trainer(max_steps=200).fit(policy, datamodule=task)
        with torch.no_grad():
            actions = policy(torch.from_numpy(task.task.ta.observations))
        assert actions.mean().abs() < 0.2
        assert (actions - 0.5).abs().mean() > 0.2

    @pytest.mark.parametrize(
        ("likelihood", "size"),
        # Squashed is not tried at the bounds: the method calls it brittle there.
        [("squashed", 0.5), ("censored", 0.5), ("censored", 1.0)],
    )
    def test_actions_depend_on_states(
        self,
        task_data,
        trajectories_of: Callable[..., Trajectories],
        make_trainer: Callable[..., Trainer],
        likelihood: Likelihood,
        size: float,
    ) -> None:
        states = np.random.default_rng(0).normal(size=(300, 3))
        ta = trajectories_of(states, [300], actions=size * np.sign(states[:, :2]))
        policy = self.policy(head=Gaussian(likelihood), hidden=(32, 32))
        make_trainer(max_steps=250).fit(policy, datamodule=task_data(ta, ta, batches="weighted", batch_size=64))
        with torch.no_grad():
            actions = policy(torch.from_numpy(ta.observations)).numpy()
        assert (np.sign(actions) == np.sign(ta.actions)).mean() > 0.93
        assert np.abs(actions).mean() == pytest.approx(size, abs=0.1)

    def test_weight_decay_follows_the_loss_scale(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        weights = np.random.default_rng(0).random(400).astype(np.float32) ** 3
        expected = {"uniform": 1e-5, "proportional": 1e-5 / weights.astype(np.float64).mean()}
        for sampling, decay in expected.items():
            trainer = make_trainer(max_steps=1)
            trainer.fit(self.policy(), datamodule=data(weights=weights, sampling=sampling))
            group = trainer.optimizers[0].param_groups[0]
            assert group["weight_decay"] == pytest.approx(decay, rel=1e-6)
            assert group["lr"] == 1e-2

    def test_optimiser_is_adam_on_the_network_alone(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        trainer, policy, task = make_trainer(max_steps=3), self.policy(), data()
        trainer.fit(policy, datamodule=task)
        assert type(trainer.optimizers[0]) is torch.optim.Adam
        torch.testing.assert_close(policy.standardise.mean, task.statistics[0], rtol=0, atol=0)
        torch.testing.assert_close(policy.standardise.std, task.statistics[1], rtol=0, atol=0)

    def test_export_takes_raw_states(self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]) -> None:
        policy, task = self.policy(), data()
        make_trainer(max_steps=3).fit(policy, datamodule=task)
        fresh = self.policy()
        fresh.load_state_dict(policy.state_dict())
        raw = torch.from_numpy(task.task.ta.observations)
        assert torch.equal(fresh(raw), policy(raw))
        assert policy.standardise.mean[0] > 2  # of raw states around 3, not of standardised ones


def test_the_papers_network() -> None:
    policy = WeightedBCPolicy(4, [-1.0, -1.0], [1.0, 1.0])
    shapes = [tuple(parameter.shape) for parameter in policy.actor.parameters()]
    assert shapes == [(256, 4), (256,), (256, 256), (256,), (4, 256), (4,)]
    assert [type(layer).__name__ for layer in policy.actor.network] == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert (policy.learning_rate, policy.weight_decay) == (1e-4, 1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"action_low": [0.0, 1.0], "action_high": [1.0, 1.0]}, "action bounds"),
        ({"action_low": [0.0, 2.0], "action_high": [1.0, 1.0]}, "action bounds"),
        ({"action_low": [0.0], "action_high": [1.0, 1.0]}, "action bounds"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        small(**arguments)
