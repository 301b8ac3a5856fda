"""A discriminator that has learnt what it will stops, judged without labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Trainer

from tailo_pl.callbacks import Settled, StageCheckpoint
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import PUDiscriminator

MakeData = Callable[..., TaskData]
MakeTrainer = Callable[..., Trainer]
pytestmark = pytest.mark.usefixtures("seeded")


@pytest.fixture
def parts(trajectories_of: Callable[..., Trajectories]) -> tuple[Trajectories, Trajectories]:
    """TS around 3, and TA of 40 trajectories of which a quarter goes there."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.where(np.arange(40) % 4 == 0, 3.0, -1.0), 20)
    ta = rng.normal(size=(800, 2)) * 0.3 + centres[:, None]
    ts = rng.normal(size=(60, 2)) * 0.3 + 3.0
    return trajectories_of(ts, [60]), trajectories_of(ta, [20] * 40)


def test_held_out_states_of_ts_are_never_trained_on(
    task_data: MakeData, make_trainer: MakeTrainer, parts: tuple[Trajectories, Trajectories]
) -> None:
    data = task_data(*parts, batches="pairs", batch_size=64, held_out=10)
    data.trainer = make_trainer(max_steps=1)
    held = {tuple(row) for row in parts[0].observations[data.batches.held_out_ts].tolist()}
    loader = iter(data.train_dataloader())
    trained = {tuple(row) for _ in range(20) for row in next(loader).ts.tolist()}
    assert len(held) == 10 and len(trained) == 50 and not held & trained


def fit(
    task_data: MakeData, trainer: Trainer, parts: tuple[Trajectories, Trajectories], **more: Any
) -> PUDiscriminator:
    torch.manual_seed(0)
    model = PUDiscriminator(2, hidden=(16, 16), learning_rate=1e-2)
    trainer.fit(model, datamodule=task_data(*parts, batches="pairs", batch_size=64, held_out=10), **more)
    return model


def test_stops_when_nothing_changes_any_more_and_not_before(
    task_data: MakeData, make_trainer: MakeTrainer, parts: tuple[Trajectories, Trajectories]
) -> None:
    loose, strict = Settled(10, correlation=0.5, tolerance=0.5), Settled(10, correlation=1.0, tolerance=0.0)
    for callback, expected in ((loose, True), (strict, False)):
        trainer = make_trainer(max_steps=200, callbacks=[callback])
        fit(task_data, trainer, parts)
        assert callback.settled == expected
        assert (trainer.global_step < 200) == expected
    assert loose._separation > 0


def test_stays_stopped_after_a_kill(
    task_data: MakeData, make_trainer: MakeTrainer, parts: tuple[Trajectories, Trajectories]
) -> None:
    callbacks = [Settled(10, correlation=0.5, tolerance=0.5), StageCheckpoint()]
    trainer = make_trainer(max_steps=200, callbacks=callbacks, enable_checkpointing=True)
    whole = fit(task_data, trainer, parts)
    again = make_trainer(max_steps=200, callbacks=[Settled(10, correlation=0.5, tolerance=0.5)])
    resumed = fit(task_data, again, parts, ckpt_path=str(StageCheckpoint.path(trainer)))
    assert again.global_step == trainer.global_step < 200
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_of_a_small_ts_at_most_a_quarter_is_kept_out(
    task_data: MakeData, make_trainer: MakeTrainer, parts: tuple[Trajectories, Trajectories]
) -> None:
    ts, ta = parts
    assert len(task_data(ts, ta, batches="pairs", held_out=60).batches.held_out_ts) == 15
    three = ts.drop(np.arange(ts.steps) >= 3)
    data = task_data(three, ta, batches="pairs", batch_size=64, held_out=50)
    trainer = make_trainer(max_steps=200, callbacks=[Settled(every_n_steps=20, patience=2)])
    trainer.fit(PUDiscriminator(2), datamodule=data)
    assert not len(data.batches.held_out_ts) and trainer.global_step < 200  # all three states are looked at


def test_a_negative_patience_is_refused() -> None:
    with pytest.raises(UserError, match=r"settled\.patience"):
        Settled(patience=-1)
