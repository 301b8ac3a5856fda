"""One update of TD3+BC and one of IQL, worked out by hand with linear networks of one state and one action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Callback
from torch import nn

from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import IQL, TD3BC, IQLWeights, SMODICEWeights

Trained = Callable[[Any, int], "Watch"]


class Watch(Callback):
    """Keeps the last batch, the weights it met, the gradients it gave and the weights after it."""

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self.batch = batch
        self.before = {name: value.detach().clone().double().numpy() for name, value in module.state_dict().items()}

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self.gradients = {
            name: None if weight.grad is None else weight.grad.double().numpy().copy()
            for name, weight in module.named_parameters()
        }

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.after = {name: value.detach().clone().double().numpy() for name, value in module.state_dict().items()}
        self.loss = float(outputs["loss"])


def three_steps() -> tuple[Trajectories, np.ndarray]:
    states = np.array([[-1.0], [0.5], [2.0]], dtype=np.float32)
    actions = np.array([[0.3], [-0.8], [0.1]], dtype=np.float32)
    recording = Recording(states, np.array([0]), actions=actions, terminals=np.array([False, False, True]))
    return Trajectories.of(recording), np.array([1.0, -0.5, 2.0])


@pytest.fixture
def trained(task_data: Any, make_trainer: Any) -> Trained:
    """Fits a module for a few steps on three steps, of which the last ended its episode."""
    ta, rewards = three_steps()

    def fit(module: Any, steps: int) -> Watch:
        data = task_data(ta, ta, batches="transitions", batch_size=16, rewards=rewards)
        watch = Watch()
        make_trainer(max_steps=steps, limit_val_batches=0, callbacks=[watch]).fit(module, datamodule=data)
        return watch

    return fit


def linear(weights: dict[str, np.ndarray], network: str, inputs: np.ndarray) -> np.ndarray:
    """A network without hidden layers."""
    return inputs @ weights[f"{network}.0.weight"].T[:, 0] + weights[f"{network}.0.bias"]


def gradient(factors: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of mean(factor * output) with respect to the weight and the bias of a linear network."""
    return (factors[:, None] * inputs).mean(0), factors.mean()


def assert_gradient(watch: Watch, network: str, factors: np.ndarray, inputs: np.ndarray) -> None:
    weight, bias = gradient(factors, inputs)
    assert watch.gradients[f"{network}.0.weight"][0] == pytest.approx(weight, abs=1e-5)
    assert watch.gradients[f"{network}.0.bias"][0] == pytest.approx(bias, abs=1e-5)


def standardised(watch: Watch, states: torch.Tensor) -> np.ndarray:
    return (states.double().numpy() - watch.before["standardise.mean"]) / watch.before["standardise.std"]


def test_td3bc(trained: Trained, seeded: None) -> None:
    watch = trained(TD3BC(1, [-1], [1], hidden=(), learning_rate=0.05), 2)  # the second step is the actor's, too
    batch, before = watch.batch, watch.before
    s, nexts = standardised(watch, batch.observations), standardised(watch, batch.next_observations)
    a = batch.actions.double().numpy()
    rewards, done, noise = (part.double().numpy() for part in (batch.rewards, batch.done, batch.noise[:, 0]))
    assert 0 < done.mean() < 1

    smooth = np.tanh(linear(before, "target_network", nexts)) + np.clip(0.2 * noise, -0.5, 0.5)
    following = np.hstack([nexts, np.clip(smooth, -1, 1)[:, None]])
    believed = np.minimum(*(linear(before, f"target_critics.{one}", following) for one in ("first", "second")))
    target = rewards + 0.99 * (1 - done) * believed
    inputs = np.hstack([s, a])
    errors = {one: linear(before, f"critics.{one}", inputs) - target for one in ("first", "second")}
    for one, error in errors.items():
        assert_gradient(watch, f"critics.{one}", 2 * error, inputs)

    action = np.tanh(linear(before, "network", s))
    value = linear(before, "critics.first", np.hstack([s, action[:, None]]))
    scale = 2.5 / np.abs(value).mean()
    slope = before["critics.first.0.weight"][0, 1]
    assert_gradient(watch, "network", (-scale * slope + 2 * (action - a[:, 0])) * (1 - action**2), s)
    loss = sum((error**2).mean() for error in errors.values()) + (-scale * value + (action - a[:, 0]) ** 2).mean()
    assert watch.loss == pytest.approx(loss, rel=1e-4)
    for name in ("network.0.weight", "critics.second.0.bias"):
        moved = 0.995 * before[f"target_{name}"] + 0.005 * watch.after[name]
        assert watch.after[f"target_{name}"] == pytest.approx(moved, abs=1e-6)


def test_td3bc_leaves_the_actor_alone_at_odd_steps(trained: Trained, seeded: None) -> None:
    watch = trained(TD3BC(1, [-1], [1], hidden=(4,)), 1)
    assert all(watch.gradients[name] is None for name in watch.gradients if not name.startswith("critics"))
    for name, value in watch.after.items():
        moved = not np.array_equal(value, watch.before[name])
        assert moved == (name.startswith("critics") and watch.gradients[name].any()), name


def test_iql(trained: Trained, seeded: None) -> None:
    module = IQL(1, [-1], [1], hidden=(), learning_rate=0.05)
    nn.init.constant_(module.actor.head.log_std, -0.3)
    nn.init.constant_(module.value[0].bias, module.value[0].bias.item() - 0.6)  # values on both sides of the critics'
    watch = trained(module, 2)
    batch, before = watch.batch, watch.before
    s, nexts = standardised(watch, batch.observations), standardised(watch, batch.next_observations)
    a = batch.actions.double().numpy()
    rewards, done = batch.rewards.double().numpy(), batch.done.double().numpy()
    inputs = np.hstack([s, a])

    values = linear(before, "value", s)
    u = np.minimum(*(linear(before, f"target_critics.{one}", inputs) for one in ("first", "second"))) - values
    assert (u < 0).any() and (u > 0).any()
    asymmetry = np.where(u < 0, 0.3, 0.7)
    assert_gradient(watch, "value", -2 * asymmetry * u, s)
    target = rewards + 0.99 * (1 - done) * linear(before, "value", nexts)
    errors = {one: linear(before, f"critics.{one}", inputs) - target for one in ("first", "second")}
    for one, error in errors.items():
        assert_gradient(watch, f"critics.{one}", 2 * error, inputs)

    weights = np.minimum(np.exp(3 * u), 100)
    log_std = before["actor.head.log_std"][0]
    mean, variance = np.tanh(linear(before, "actor.network", s)), np.exp(2 * log_std)
    gap = a[:, 0] - mean
    assert_gradient(watch, "actor.network", -weights * gap / variance * (1 - mean**2), s)
    assert watch.gradients["actor.head.log_std"][0] == pytest.approx(
        (weights * (1 - gap**2 / variance)).mean(), rel=1e-4
    )
    likelihood = -0.5 * (gap**2 / variance + np.log(2 * np.pi)) - log_std
    loss = (asymmetry * u**2 - weights * likelihood).mean() + sum((error**2).mean() for error in errors.values())
    assert watch.loss == pytest.approx(loss, rel=1e-4)
    moved = 0.995 * before["target_critics.first.0.weight"] + 0.005 * watch.after["critics.first.0.weight"]
    assert watch.after["target_critics.first.0.weight"] == pytest.approx(moved, abs=1e-6)


@pytest.mark.parametrize("kind", ["smodice", "iql"])
def test_weights_that_are_handed_on(kind: str, task_data: Any, make_trainer: Any, seeded: None) -> None:
    """Three steps, of which the last ended its episode."""
    ta, rewards = three_steps()
    data = task_data(ta, ta, batches="transitions", batch_size=16, rewards=rewards)
    made: dict[str, Any] = {
        "smodice": lambda: SMODICEWeights(1, [-1], [1], discount=0.9, hidden=()),
        "iql": lambda: IQLWeights(1, [-1], [1], temperature=0.5, hidden=()),
    }
    module = made[kind]()
    make_trainer(max_steps=3, limit_val_batches=0).fit(module, datamodule=data)
    weights = {name: value.detach().double().numpy() for name, value in module.state_dict().items()}
    states = (ta.observations.astype(np.float64) - weights["standardise.mean"]) / weights["standardise.std"]
    values = linear(weights, "value", states)
    if kind == "smodice":
        slack = rewards - values + 0.9 * np.append(values[1:], 0.0)
        expected = np.exp(slack - slack.max())
    else:
        inputs = np.hstack([states, ta.actions])
        believed = np.minimum(*(linear(weights, f"target_critics.{one}", inputs) for one in ("first", "second")))
        expected = np.exp(0.5 * (believed - values))
        expected /= expected.max()
    assert module.hand_on(data.task)["weights"] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(UserError, match=f"{type(module).__name__}: weighs steps and does not act"):
        module(torch.zeros(1, 1))
