"""One update of TD3+BC, IQL, ReCOIL and DILO, worked out by hand with linear networks of one state and one action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch
from helpers.updates import Numbers, Watch, assert_gradient, gradient, linear, standardised
from torch import nn

from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import DILO, IQL, TD3BC, IQLWeights, ReCOIL, SMODICEWeights
from tailo_pl.models.heads import Regression

Trained = Callable[[Any, int], "Watch"]


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


def clones(watch: Watch, s: Numbers, a: Numbers, weights: Numbers) -> Numbers:
    """That a Gaussian actor around tanh(mean) learns by weighted cloning; its log-likelihood of the actions."""
    log_std = watch.before["actor.head.log_std"][0]
    mean, variance = np.tanh(linear(watch.before, "actor.network", s)), np.exp(2 * log_std)
    gap = a[:, 0] - mean
    assert_gradient(watch, "actor.network", -weights * gap / variance * (1 - mean**2), s)
    assert watch.gradients["actor.head.log_std"][0] == pytest.approx(
        (weights * (1 - gap**2 / variance)).mean(), rel=1e-4
    )
    return np.asarray(-0.5 * (gap**2 / variance + np.log(2 * np.pi)) - log_std)


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
    likelihood = clones(watch, s, a, weights)
    loss = (asymmetry * u**2 - weights * likelihood).mean() + sum((error**2).mean() for error in errors.values())
    assert watch.loss == pytest.approx(loss, rel=1e-4)
    moved = 0.995 * before["target_critics.first.0.weight"] + 0.005 * watch.after["critics.first.0.weight"]
    assert watch.after["target_critics.first.0.weight"] == pytest.approx(moved, abs=1e-6)


def put(network: nn.Sequential, weights: list[float], bias: float) -> None:
    """Give a network without hidden layers these weights."""
    with torch.no_grad():
        network[0].weight.copy_(torch.tensor([weights]))  # type: ignore[operator, union-attr]
        network[0].bias.fill_(bias)  # type: ignore[operator, union-attr]


@pytest.mark.parametrize("expert", ["actions", "pairs"])
def test_recoil(expert: Literal["actions", "pairs"], task_data: Any, make_trainer: Any, seeded: None) -> None:
    module = ReCOIL(
        1, [-1], [1], expert, temperature=0.5, discount=0.9, reward=-0.5, expert_value=3.0, hidden=(),
        learning_rate=0.05,
    )  # fmt: skip
    nn.init.constant_(module.actor.head.log_std, -0.3)
    put(module.value, [0.3], 0.1)
    put(module.target_critics.first, [3.0, 1.0], 1.0)  # values far apart, and not those of the critics
    put(module.target_critics.second, [1.2, -0.5], 1.7)
    (ta, _), (ts, _) = three_steps(), three_steps()
    ts.recording.observations[:] += 0.3
    data = task_data(ts, ta, batches="transitions", batch_size=32, expert=expert)
    watch = Watch()
    make_trainer(max_steps=2, limit_val_batches=0, callbacks=[watch]).fit(module, datamodule=data)
    batch, before = watch.batch, watch.before
    s, nexts = standardised(watch, batch.observations), standardised(watch, batch.next_observations)
    a, done = batch.actions.double().numpy(), batch.done.double().numpy()
    inputs = np.hstack([s, a if expert == "actions" else nexts])
    shown = batch.expert.actions if expert == "actions" else batch.expert.next_observations
    shown = shown.double().numpy() if expert == "actions" else standardised(watch, shown)
    expert_inputs = np.hstack([standardised(watch, batch.expert.observations), shown])
    assert 0 < done.mean() < 1

    values = linear(before, "value", s)
    believed = np.minimum(*(linear(before, f"target_critics.{one}", inputs) for one in ("first", "second")))
    advantages = believed - values
    z = advantages / 0.5
    assert z.min() < 0 and 1 < z.max() < 7
    assert_gradient(watch, "value", -(np.exp(z - z.max()) - np.exp(-z.max())) / 0.5, s)
    target = -0.5 + 0.9 * ((1 - done) * linear(before, "value", nexts) - 3 * done)
    errors = 0.0
    for one in ("first", "second"):
        # As many rows of TS as of TA: the sum of both means is twice the mean of all.
        both = [linear(before, f"critics.{one}", inputs) - target, linear(before, f"critics.{one}", expert_inputs) - 3]
        assert_gradient(watch, f"critics.{one}", 2 * np.concatenate(both), np.vstack([inputs, expert_inputs]))
        errors += sum((error**2).mean() / 2 for error in both)

    weights = np.minimum(np.exp(3 * advantages), 100)
    assert weights.min() < 1 and weights.max() == 100
    likelihood = clones(watch, s, a, weights)
    regression = np.exp(z - z.max()) - (z + 1) * np.exp(-z.max())
    assert watch.loss == pytest.approx((regression - weights * likelihood).mean() + errors, rel=1e-4)
    for name in ("first.0.weight", "second.0.bias"):
        moved = 0.995 * before[f"target_critics.{name}"] + 0.005 * watch.after[f"critics.{name}"]
        assert watch.after[f"target_critics.{name}"] == pytest.approx(moved, abs=1e-6)


def test_dilo(task_data: Any, make_trainer: Any, seeded: None) -> None:
    module = DILO(
        1, [-1], [1], balance=0.7, expert_share=0.4, orthogonal=0.6, sharpness=2.0, discount=0.9, hidden=(),
        learning_rate=0.05, head=Regression(std=0.5**0.5),  # so that the head's loss is the squared error itself
    )  # fmt: skip
    put(module.utilities.first, [4.0, -2.0], 1.0)
    put(module.utilities.second, [4.0, 1.0], 0.5)
    put(module.target_utilities.first, [2.0, -3.0], 1.0)
    put(module.target_utilities.second, [-1.0, 3.0], 1.3)
    rng = np.random.default_rng(0)
    ta, ts = (
        Trajectories.of(Recording(states.astype(np.float32), np.array([0, 6]), actions=actions.astype(np.float32)))
        for states, actions in ((rng.normal(size=(12, 1)), rng.uniform(-1, 1, (12, 1))) for _ in range(2))
    )
    data, watch = task_data(ts, ta, batches="triples", batch_size=32), Watch()
    make_trainer(max_steps=2, limit_val_batches=0, callbacks=[watch]).fit(module, datamodule=data)
    before, both = watch.before, ("first", "second")
    states, experts = (
        [standardised(watch, part) for part in kind] for kind in (watch.batch.states, watch.batch.expert)
    )
    # Of TA and of TS: the pair (s, s'), and the one after it.
    pairs, nexts = ([np.hstack(kind[first : first + 2]) for kind in (states, experts)] for first in (0, 1))

    def copied(pair: Numbers) -> Numbers:
        return np.minimum(*(linear(before, f"target_utilities.{one}", pair) for one in both))

    def through(slopes: list[Numbers], inputs: list[Numbers]) -> Numbers:
        """Gradient of mean(slope * V) over the rows of TA and of TS and over both utilities."""
        return sum(np.append(*gradient(slope / 2, rows)) for slope, rows in zip(slopes, inputs, strict=True))

    def mixture(ys: list[Numbers], factor: float) -> list[Numbers]:
        """Derivative of l*(b*f*(y_TS) + (1-b)*(f*(y_TA) - y_TA)) for TA's rows and for TS's, y moving by the factor."""
        ta_y, ts_y = (np.maximum(y / 2 + 1, 0) for y in ys)
        return [0.7 * 0.6 * (ta_y - 1) * factor, 0.7 * 0.4 * ts_y * factor]

    linears, forwards, backwards = [], [], []
    for one in both:
        values, next_values = ([linear(before, f"utilities.{one}", pair) for pair in kind] for kind in (pairs, nexts))
        forward_y = [0.9 * copied(after) - value for after, value in zip(nexts, values, strict=True)]
        backward_y = [0.9 * after - copied(pair) for after, pair in zip(next_values, pairs, strict=True)]
        for y in (*forward_y, *backward_y):
            assert y.min() < -2 < y.max()
        linears.append(through([np.full(32, 0.3)], pairs[:1]))
        forwards.append(through(mixture(forward_y, -1), pairs))
        backwards.append(through(mixture(backward_y, 0.9), nexts))
    forward, backward = np.concatenate(forwards), np.concatenate(backwards)
    across = backward - (forward @ backward) / (forward @ forward) * forward
    assert np.abs(across - backward).max() > 0.1
    found = [watch.gradients[f"utilities.{one}.0.{part}"].ravel() for one in both for part in ("weight", "bias")]
    assert np.concatenate(found) == pytest.approx(np.concatenate(linears) + forward + 0.6 * across, abs=1e-5)

    utilities = np.minimum(*(linear(before, f"utilities.{one}", pairs[0]) for one in both))
    weights = np.minimum(np.exp(2 * utilities), 100)
    assert weights.min() < 1 and weights.max() == 100
    action = np.tanh(linear(before, "actor.network", states[0]))
    slopes = 2 * weights * (action - watch.batch.actions.double().numpy()[:, 0]) * (1 - action**2)
    assert_gradient(watch, "actor.network", slopes, states[0])
    for name in ("first.0.weight", "second.0.bias"):
        moved = 0.995 * before[f"target_utilities.{name}"] + 0.005 * watch.after[f"utilities.{name}"]
        assert watch.after[f"target_utilities.{name}"] == pytest.approx(moved, abs=1e-6)


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
