"""PUDiscriminator: its penalty against finite differences, its scores, and that every objective learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import torch
from lightning import Trainer
from numpy.typing import NDArray

from tailo_pl.data.batches import PairBatch
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.losses.discriminator import Objective
from tailo_pl.models import PUDiscriminator
from tailo_pl.models.networks import mlp, network_gradients

pytestmark = pytest.mark.usefixtures("seeded")

MEAN, STD = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([3.0, 0.5, 1.0])


@pytest.mark.parametrize("hidden", [(8,), (8, 6), (5, 6, 7)])
@pytest.mark.parametrize("activation", [torch.nn.Tanh, torch.nn.ReLU])
def test_gradients_without_a_second_graph_equal_autograds(
    hidden: tuple[int, ...], activation: type[torch.nn.Module]
) -> None:
    """And so does what training makes of them: the gradient of the penalty in the weights."""
    network = mlp(3, hidden, 1, activation).double()
    points = torch.randn(20, 3, dtype=torch.float64)
    inputs = points.clone().requires_grad_()
    (by_autograd,) = torch.autograd.grad(network(inputs).sum(), inputs, create_graph=True)
    by_hand = network_gradients(network, points)
    torch.testing.assert_close(by_hand, by_autograd, rtol=1e-10, atol=1e-12)
    slopes = [
        torch.autograd.grad(
            (each.norm(dim=-1) - 1).square().mean(),
            list(network.parameters()),
            allow_unused=True,
            materialize_grads=True,
        )
        for each in (by_hand, by_autograd)
    ]  # biases that do not matter: the last, and behind ReLU all
    for one, two in zip(*slopes, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


def small(**arguments) -> PUDiscriminator:
    model = PUDiscriminator(3, **{"hidden": (8, 6), **arguments})
    model.standardise.set(MEAN, STD)
    return model


def pair_batch(rows: int = 16) -> PairBatch:
    generator = torch.Generator().manual_seed(1)
    ts = MEAN + STD * (1 + torch.randn(rows, 3, generator=generator))
    u = MEAN + STD * (torch.randn(rows, 3, generator=generator) - 1)
    return PairBatch(ts, u, torch.rand(rows, generator=generator), rows)


def loss_of(model: PUDiscriminator, batch: PairBatch, make_trainer: Callable[..., Trainer]) -> torch.Tensor:
    model.trainer = make_trainer(max_steps=1000)
    return model.training_step(batch, 0)


def numpy_logits(parameters: list[NDArray[np.float64]], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """D(x) at standardised points, in float64."""
    w1, b1, w2, b2, w3, b3 = parameters
    return (np.tanh(np.tanh(x @ w1.T + b1) @ w2.T + b2) @ w3.T + b3)[:, 0]


def numpy_penalty(parameters: list[NDArray[np.float64]], x: NDArray[np.float64], h: float = 1e-5) -> float:
    """mean (||grad D|| - 1)^2, the gradient by central differences."""
    gradients = [
        (numpy_logits(parameters, x + h * axis) - numpy_logits(parameters, x - h * axis)) / (2 * h)
        for axis in np.eye(3)
    ]
    return float(((np.linalg.norm(gradients, axis=0) - 1) ** 2).mean())


def in_numpy(model: PUDiscriminator) -> list[NDArray[np.float64]]:
    return [parameter.detach().double().numpy().copy() for parameter in model.network.parameters()]


def between(batch: PairBatch) -> NDArray[np.float64]:
    """The points between the two sides, after standardisation."""
    ts, u = (((side - MEAN) / STD).double().numpy() for side in (batch.ts, batch.u))
    mix = batch.mix.double().numpy()[:, None]
    return mix * ts + (1 - mix) * u


class TestPenalty:
    def test_equal_to_finite_differences(self, make_trainer: Callable[..., Trainer]) -> None:
        with_penalty, batch = small(lipschitz=10.0), pair_batch()
        without = small(lipschitz=0.0)
        without.load_state_dict(with_penalty.state_dict())
        penalty = numpy_penalty(in_numpy(with_penalty), between(batch))
        assert penalty > 0.1
        difference = loss_of(with_penalty, batch, make_trainer) - loss_of(without, batch, make_trainer)
        assert difference.item() == pytest.approx(10 * penalty, rel=1e-4)

    def test_its_gradient_is_equal_to_finite_differences(self, make_trainer: Callable[..., Trainer]) -> None:
        """The penalty trains the network: through its parameters, not only as a number in the loss."""
        model, batch = small(lipschitz=10.0), pair_batch()
        parameters, points, h = in_numpy(model), between(batch), 1e-4
        loss_of(model, batch, make_trainer).backward()
        with_penalty = [parameter.grad.clone() for parameter in model.network.parameters()]
        model.zero_grad()
        model.lipschitz = 0.0
        loss_of(model, batch, make_trainer).backward()
        of_penalty = [
            (one - parameter.grad).numpy()
            for one, parameter in zip(with_penalty, model.network.parameters(), strict=True)
        ]
        for number, array in enumerate(parameters):
            numeric = np.zeros_like(array)
            for place in np.ndindex(array.shape):
                for sign in (1, -1):
                    moved = [other.copy() for other in parameters]
                    moved[number][place] += sign * h
                    numeric[place] += sign * 10 * numpy_penalty(moved, points) / (2 * h)
            np.testing.assert_allclose(of_penalty[number], numeric, rtol=2e-3, atol=2e-4)

    def test_zero_switches_it_off(self, make_trainer: Callable[..., Trainer]) -> None:
        model, batch = small(lipschitz=0.0, objective="cross_entropy"), pair_batch()
        ts, u = (model(side).detach().double() for side in (batch.ts, batch.u))
        plain = (1 + torch.exp(-ts)).log().mean() + (1 + torch.exp(u)).log().mean()
        assert loss_of(model, batch, make_trainer).item() == pytest.approx(plain.item(), rel=1e-5)
        elsewhere = batch._replace(mix=torch.zeros(len(batch.mix)))
        assert loss_of(model, batch, make_trainer) == loss_of(model, elsewhere, make_trainer)

    def test_loss_is_that_of_the_global_batch(self, make_trainer: Callable[..., Trainer]) -> None:
        # Cross entropy and penalty are linear: two halves of a batch of 16 rows add up to the whole.
        model, batch = small(objective="cross_entropy"), pair_batch(16)
        halves = [PairBatch(batch.ts[half], batch.u[half], batch.mix[half], 16) for half in (slice(8), slice(8, 16))]
        total = sum(loss_of(model, half, make_trainer).item() for half in halves)
        assert total == pytest.approx(loss_of(model, batch, make_trainer).item(), rel=1e-5)


class TestRawStates:
    def test_forward_standardises(self) -> None:
        model, states = small(), pair_batch().ts
        expected = numpy_logits(in_numpy(model), ((states - MEAN) / STD).double().numpy())
        np.testing.assert_allclose(model(states).detach(), expected, rtol=1e-4, atol=1e-6)

    def test_statistics_of_ta_travel_with_the_weights(
        self, task_data, make_trainer: Callable[..., Trainer], trajectories_of: Callable[..., Trajectories]
    ) -> None:
        rng = np.random.default_rng(0)
        ta = trajectories_of(rng.normal([100, -5, 0], [20, 0.1, 1], (90, 3)), [40, 50])
        ts = trajectories_of(rng.normal([140, -5, 0], [1, 0.1, 1], (10, 3)), [10])
        model = PUDiscriminator(3, hidden=(8,))
        make_trainer(max_steps=2).fit(model, datamodule=task_data(ts, ta, batches="pairs"))
        state = model.state_dict()
        np.testing.assert_allclose(state["standardise.mean"], ta.observations.astype(np.float64).mean(0), rtol=1e-5)
        np.testing.assert_allclose(
            state["standardise.std"], ta.observations.astype(np.float64).std(0) + 1e-4, rtol=1e-5
        )
        fresh = PUDiscriminator(3, hidden=(8,))
        fresh.load_state_dict(state)
        raw = torch.from_numpy(ta.observations)
        assert torch.equal(fresh(raw), model(raw))

    @pytest.mark.parametrize("batch", [1, 7, 1 << 16])
    def test_scores_are_the_logits_of_the_kept_steps(
        self, trajectories_of: Callable[..., Trajectories], batch: int
    ) -> None:
        model = small()
        states = np.random.default_rng(0).normal(0, 4, (30, 3)).astype(np.float32)
        lost = np.arange(30) % 4 == 1
        kept = trajectories_of(states, [10, 20]).drop(lost)
        scores = model.scores(kept, batch=batch)
        assert scores.dtype == np.float32
        with torch.no_grad():
            np.testing.assert_allclose(scores, model(torch.from_numpy(states[~lost])), rtol=1e-5, atol=1e-6)

    def test_hands_on_the_scores_of_ta(self, trajectories_of: Callable[..., Trajectories]) -> None:
        model = small()
        one, two = trajectories_of(np.zeros((2, 3)), [2]), trajectories_of(np.arange(12).reshape(4, 3), [1, 3])
        handed = model.hand_on(Task(ts=one, ta=two))
        assert list(handed) == ["scores"]
        np.testing.assert_array_equal(handed["scores"], model.scores(two))


class TestTraining:
    """TS lies around (2, 2). A quarter of TA's trajectories do as well, the others lie around (-2, -2)."""

    @pytest.fixture
    def data(self, task_data, trajectories_of: Callable[..., Trajectories]) -> Callable[..., TaskData]:
        rng = np.random.default_rng(0)
        ts = trajectories_of(2 + 0.5 * rng.standard_normal((60, 2)), [60])
        centres = np.repeat([2, -2, -2, -2], 100)[:, None]
        ta = trajectories_of(centres + 0.5 * rng.standard_normal((400, 2)), [100] * 4, ["good", "bad", "bad", "bad"])
        return lambda **arguments: task_data(ts, ta, batches="pairs", **arguments)

    @pytest.mark.parametrize("objective", get_args(Objective))
    def test_every_objective_separates(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer], objective: Objective
    ) -> None:
        model = PUDiscriminator(2, objective=objective, beta_2=0.5, hidden=(16, 16), learning_rate=1e-2)
        task = data()
        make_trainer(max_steps=120).fit(model, datamodule=task)
        means = task.task.ta.mean(model.scores(task.task.ta))
        assert means[0] > means[1:].max() + 1
        # And with the sign the method gives it: a state of the bad trajectories is less likely the expert's than not.
        assert means[1:].max() < 0

    def test_debiased_forgives_expert_states_among_the_unlabelled(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        """What PU learning is for: TA's good states keep a higher score than when they count as negatives."""
        scores = {}
        for objective, weight in (("debiased", 0.45), ("cross_entropy", 0.45)):
            with torch.random.fork_rng():
                torch.manual_seed(0)
                model = PUDiscriminator(2, objective=objective, eta_p=weight, hidden=(16, 16), learning_rate=1e-2)
            task = data()
            make_trainer(max_steps=120).fit(model, datamodule=task)
            probabilities = 1 / (1 + np.exp(-model.scores(task.task.ta)[:100]))
            scores[objective] = probabilities.mean()
        assert scores["debiased"] > scores["cross_entropy"] + 0.05

    def test_lipschitz_bounds_the_slope(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        ranges = {}
        for lipschitz in (0.0, 10.0):
            with torch.random.fork_rng():
                torch.manual_seed(0)
                model = PUDiscriminator(
                    2, objective="cross_entropy", lipschitz=lipschitz, hidden=(16, 16), learning_rate=1e-2
                )
            task = data(negatives=np.array([False, True, True, True]))
            make_trainer(max_steps=250).fit(model, datamodule=task)
            ranges[lipschitz] = np.ptp(model.scores(task.task.ta))
        # The two sides are about 2.8 apart after standardisation: at slope 1 scores range over a little more.
        assert ranges[10.0] < 5 < ranges[0.0]

    def test_same_seed_same_weights(self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]) -> None:
        states = []
        for seed in (0, 0, 1):
            torch.manual_seed(7)
            model = PUDiscriminator(2, hidden=(8,))
            make_trainer(max_steps=5).fit(model, datamodule=data(seed=seed))
            states.append(model.state_dict())
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
        assert any(not torch.equal(states[0][name], states[2][name]) for name in states[0])

    def test_logs_its_loss_without_the_penalty(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        trainer = make_trainer(max_steps=3)
        trainer.fit(PUDiscriminator(2, hidden=(8,)), datamodule=data())
        assert {"loss", "penalty", "logit_ts", "logit_u"} <= trainer.callback_metrics.keys()
        trainer = make_trainer(max_steps=3)
        trainer.fit(PUDiscriminator(2, hidden=(8,), lipschitz=0.0), datamodule=data())
        assert "penalty" not in trainer.callback_metrics


def test_the_papers_network() -> None:
    model = PUDiscriminator(4)
    shapes = [tuple(parameter.shape) for parameter in model.network.parameters()]
    assert shapes == [(256, 4), (256,), (256, 256), (256,), (1, 256), (1,)]
    assert [type(layer).__name__ for layer in model.network] == ["Linear", "Tanh", "Linear", "Tanh", "Linear"]
    group = model.configure_optimizers().param_groups[0]
    assert (group["lr"], group["weight_decay"]) == (3e-4, 0)
    assert (model.eta_p, model.lipschitz) == (0.2, 10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta_p", 0.0),
        ("eta_p", 1.0),
        ("beta_2", -0.1),
        ("beta_2", 1.1),
        ("lipschitz", -1.0),
        ("learning_rate", 0.0),
        ("observation_dim", 0),
        ("eta_p", float("nan")),
    ],
)
def test_numbers_out_of_range(name: str, value: float) -> None:
    with pytest.raises(UserError, match=name):
        PUDiscriminator(**{"observation_dim": 3, name: value})


def test_it_looks_at_the_chosen_dimensions_alone() -> None:
    whole = PUDiscriminator(4, dimensions=[2, 0])
    states = torch.randn(50, 4)
    changed = states.clone()
    changed[:, [1, 3]] += 5
    assert torch.equal(whole(states), whole(changed))
    changed[:, 0] += 1
    assert not torch.equal(whole(states), whole(changed))
    assert whole.network[0].in_features == 2


@pytest.mark.parametrize("dimensions", [[], [0, 0], [0, 4], [-1]])
def test_dimensions_that_are_not_there(dimensions: list[int]) -> None:
    with pytest.raises(UserError, match=r"dimensions: .* expected different numbers from 0 to 3"):
        PUDiscriminator(4, dimensions=dimensions)
