"""Choosing weights without a simulator: what is held out, what is measured on it, and which weights are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Trainer

from tailo_pl.callbacks import HeldOutChoice
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import WeightedBCPolicy

MakeData = Callable[..., TaskData]
MakeTrainer = Callable[..., Trainer]


@pytest.fixture
def ta(trajectories_of: Callable[..., Trajectories]) -> Trajectories:
    states = np.random.default_rng(0).normal(size=(300, 3))
    actions = np.tanh(states[:, :2])
    return trajectories_of(states, [30] * 10, actions=actions)


def held_trajectories(data: TaskData) -> list[int]:
    marks = data.batches.held_out_steps.reshape(10, 30)
    assert (marks.all(1) | ~marks.any(1)).all()  # whole trajectories
    return np.flatnonzero(marks.any(1)).tolist()


def test_whole_trajectories_are_held_out_and_never_trained_on(
    task_data: MakeData, make_trainer: MakeTrainer, ta: Trajectories
) -> None:
    data = task_data(ta, ta, batches="weighted", batch_size=256, held_out=3)
    assert len(held_trajectories(data)) == 3
    data.trainer = make_trainer(max_steps=1)
    held = {tuple(row) for row in ta.observations[data.batches.held_out_steps].tolist()}
    loader = iter(data.train_dataloader())
    trained = {tuple(row) for _ in range(20) for row in next(loader).observations.tolist()}
    assert len(held) == 90 and len(trained) == 210 and not held & trained
    (batch,) = data.val_dataloader()
    assert {tuple(row) for row in batch.observations.tolist()} == held


def test_trajectories_are_held_out_in_proportion_to_their_weight(task_data: MakeData, ta: Trajectories) -> None:
    weights = np.repeat([0.0] * 5 + [1e-6, 1e-6, 1.0, 1.0, 1.0], 30).astype(np.float32)
    for seed in range(20):
        data = task_data(ta, ta, batches="weighted", weights=weights, held_out=2, seed=seed)
        assert set(held_trajectories(data)) <= {7, 8, 9}


def test_the_choice_of_trajectories_follows_the_seed(task_data: MakeData, ta: Trajectories) -> None:
    chosen = [held_trajectories(task_data(ta, ta, batches="weighted", held_out=3, seed=seed)) for seed in (0, 0, 1, 2)]
    assert chosen[0] == chosen[1]
    assert len({tuple(one) for one in chosen}) > 1


def test_holding_out_everything_is_refused(task_data: MakeData, ta: Trajectories) -> None:
    weights = np.repeat([1.0] * 3 + [0.0] * 7, 30).astype(np.float32)
    with pytest.raises(UserError, match="held_out: 3 trajectories asked for, but only 3 carry any weight"):
        _ = task_data(ta, ta, batches="weighted", weights=weights, held_out=3).batches.held_out_steps


def test_loss_scale_is_that_of_the_trained_steps(task_data: MakeData, ta: Trajectories) -> None:
    weights = np.random.default_rng(1).uniform(size=300).astype(np.float32)
    data = task_data(ta, ta, batches="weighted", weights=weights, sampling="proportional", held_out=2)
    assert data.batches.loss_scale == pytest.approx(weights[~data.batches.held_out_steps].mean(), rel=1e-6)


def policy(**arguments: Any) -> WeightedBCPolicy:
    return WeightedBCPolicy(3, [-1.0, -1.0], [1.0, 1.0], hidden=(16,), **{"learning_rate": 1e-2, **arguments})


VALIDATED = {"val_check_interval": 5, "check_val_every_n_epoch": None, "num_sanity_val_steps": 0}


def test_held_out_numbers_are_weighted_means(
    task_data: MakeData, make_trainer: MakeTrainer, ta: Trajectories, seeded: None
) -> None:
    weights = np.random.default_rng(1).uniform(0.1, 1, size=300).astype(np.float32)
    data, module = task_data(ta, ta, batches="weighted", weights=weights, held_out=3), policy()
    trainer = make_trainer(max_steps=5, **VALIDATED)
    trainer.fit(module, datamodule=data)
    states, actions = ta.observations[data.batches.held_out_steps], ta.actions[data.batches.held_out_steps]
    with torch.no_grad():
        errors = ((module(torch.from_numpy(states)).numpy() - actions) ** 2).mean(1)
    share = weights[data.batches.held_out_steps] / weights[data.batches.held_out_steps].sum()
    assert float(trainer.callback_metrics["held_out/error"]) == pytest.approx((share * errors).sum(), rel=1e-4)


def test_the_best_weights_are_restored_and_training_stops(
    task_data: MakeData, make_trainer: MakeTrainer, ta: Trajectories, seeded: None
) -> None:
    seen: dict[int, tuple[float, dict[str, torch.Tensor]]] = {}

    class Watch(HeldOutChoice):
        def on_validation_end(self, trainer: Trainer, pl_module: Any) -> None:
            super().on_validation_end(trainer, pl_module)
            state = {name: value.clone() for name, value in pl_module.state_dict().items()}
            seen[trainer.global_step] = (float(trainer.callback_metrics["held_out/error"]), state)

    # A step size far too large: the error jumps about, so the best validation is not the last one.
    module, choice = policy(learning_rate=0.5), Watch(patience=4)
    trainer = make_trainer(max_steps=1000, callbacks=[choice], **VALIDATED)
    trainer.fit(module, datamodule=task_data(ta, ta, batches="weighted", batch_size=32, held_out=3))
    best = min(seen, key=lambda step: seen[step][0])
    assert choice.best_step == best and best < max(seen)
    assert trainer.global_step == best + 4 * 5  # four validations without improvement
    assert all(torch.equal(value, seen[best][1][name]) for name, value in module.state_dict().items())


def test_averaged_weights_are_the_exponential_average(
    task_data: MakeData, make_trainer: MakeTrainer, ta: Trajectories, seeded: None
) -> None:
    module = policy(averaging=0.9)
    assert module.average is not None
    expected = [p.detach().clone() for p in module.actor.parameters()]

    class Follow(HeldOutChoice):
        def on_train_batch_end(self, trainer: Trainer, pl_module: Any, *rest: Any) -> None:
            for average, parameter in zip(expected, pl_module.actor.parameters(), strict=True):
                rate = max(0.1, 3 / (3 + trainer.global_step))
                average.mul_(1 - rate).add_(parameter.detach(), alpha=rate)

    make_trainer(max_steps=7, callbacks=[Follow()]).fit(module, datamodule=task_data(ta, ta, batches="weighted"))
    for average, ours in zip(expected, module.average.parameters(), strict=True):
        assert torch.allclose(average, ours, atol=1e-6)
    states = torch.from_numpy(ta.observations)
    played = module.average(module.standardise(states))
    assert torch.allclose(module(states), played, atol=1e-6)


def test_cosine_schedule_ends_at_zero(
    task_data: MakeData, make_trainer: MakeTrainer, ta: Trajectories, seeded: None
) -> None:
    module = policy(schedule="cosine")
    trainer = make_trainer(max_steps=10)
    trainer.fit(module, datamodule=task_data(ta, ta, batches="weighted"))
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0, abs=1e-9)
