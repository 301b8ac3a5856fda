"""StepLoop does what Lightning's own loop does, bit for bit, and leaves to it what it does not do itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Callback, Trainer

from tailo_pl.callbacks import HeldOutChoice, StageCheckpoint
from tailo_pl.models import IQL, PUDiscriminator, WeightedBCPolicy
from tailo_pl.training.metrics_log import MetricsLog
from tailo_pl.training.step_loop import is_plain, use_step_loop

STEPS = 23


class Watch(Callback):
    """Notes every step it is called at, and logs a number itself."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, float]] = []
        self.plain: bool | None = None

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self.plain = is_plain(trainer)
        self.seen.append(("start", trainer.global_step, batch_idx))

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.seen.append(("end", trainer.global_step, float(outputs["loss"])))
        module.log("of_a_callback", float(trainer.global_step))

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self.seen.append(("validation", trainer.global_step, float(trainer.callback_metrics["held_out/error"])))


class Gradients(Watch):
    """Has a hook that StepLoop does not call."""

    def on_after_backward(self, trainer: Any, module: Any) -> None:
        self.seen.append(("gradient", trainer.global_step, float(next(module.actor.parameters()).grad.norm())))


def policy() -> Any:
    return WeightedBCPolicy(3, [-1.0] * 2, [1.0] * 2, averaging=0.9, schedule="cosine", hidden=(8,), members=2)


KINDS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "policy": (policy, {"batches": "weighted", "batch_size": 16, "held_out": 2}),
    "discriminator": (lambda: PUDiscriminator(3, hidden=(8,)), {"batches": "pairs", "batch_size": 16}),
    "iql": (
        lambda: IQL(3, [-1.0] * 2, [1.0] * 2, hidden=(8,)),
        {"batches": "transitions", "batch_size": 16, "rewards": np.linspace(0, 1, 80)},
    ),
}


@pytest.fixture
def trained(task_data: Any, make_trainer: Any, trajectories_of: Any, tmp_path: Path) -> Callable[..., Any]:
    """Trains a kind of module for some steps; what it ended as, by names."""

    def train(kind: str, name: str, watch: Watch, *, lean: bool, stop: int = 0, **options: Any) -> dict[str, Any]:
        make, batches = KINDS[kind]
        states = np.random.default_rng(0).normal(size=(80, 3))
        data = task_data(trajectories_of(states[:10] + 1, [10]), trajectories_of(states, [16] * 5), **batches)
        torch.manual_seed(0)
        module = make()
        log, checkpoint = MetricsLog(str(tmp_path), name, ""), StageCheckpoint(every_n_steps=stop)
        validation = {"val_check_interval": 5, "check_val_every_n_epoch": None, "num_sanity_val_steps": 0}
        options |= validation if kind == "policy" else {"limit_val_batches": 0}
        callbacks = [*([HeldOutChoice()] if kind == "policy" else []), watch, checkpoint]
        trainer: Trainer = make_trainer(
            max_steps=options.pop("max_steps", STEPS), logger=log, callbacks=callbacks, log_every_n_steps=4,
            enable_checkpointing=True, **options,
        )  # fmt: skip
        if lean:
            use_step_loop(trainer)
        before = StageCheckpoint.path(trainer)
        trainer.fit(module, datamodule=data, ckpt_path=before if before.exists() else None, weights_only=True)
        saved = torch.load(StageCheckpoint.path(trainer), weights_only=True)
        return {
            "weights": module.state_dict(),
            "rows": log.rows,
            "loops": saved["loops"],
            "adam": saved["optimizer_states"],
        }

    return train


def same(one: Any, other: Any) -> bool:
    """Equal, number by number."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_steps_as_lightnings_own_loop(trained: Callable[..., Any], kind: str) -> None:
    own, lean = Watch(), Watch()
    expected = trained(kind, "own", own, lean=False)
    found = trained(kind, "lean", lean, lean=True)
    assert lean.plain
    assert len(lean.seen) >= 2 * STEPS
    assert lean.seen == own.seen
    for part in expected:  # also the counters that a resumed run goes on with, and metrics.csv
        assert same(found[part], expected[part]), part


def test_a_hook_it_does_not_call_is_called_by_lightnings_own_loop(trained: Callable[..., Any]) -> None:
    own, lean = Gradients(), Gradients()
    trained("policy", "own", own, lean=False)
    trained("policy", "lean", lean, lean=True)
    assert lean.plain is False
    assert sum(kind == "gradient" for kind, *_ in lean.seen) == STEPS
    assert lean.seen == own.seen


@pytest.mark.parametrize("option", [{"gradient_clip_val": 0.1}, {"accumulate_grad_batches": 2}])
def test_an_update_that_takes_more_is_lightnings_own(trained: Callable[..., Any], option: dict[str, Any]) -> None:
    watch = Watch()
    expected = trained("discriminator", "own", Watch(), lean=False, **option)
    found = trained("discriminator", "lean", watch, lean=True, **option)
    assert watch.plain is False
    assert same(found["weights"], expected["weights"])


def test_a_stage_taken_further_ends_as_one_that_never_stopped(trained: Callable[..., Any]) -> None:
    whole = trained("discriminator", "whole", Watch(), lean=True)
    trained("discriminator", "parts", Watch(), lean=True, max_steps=10)
    found = trained("discriminator", "parts", Watch(), lean=True)
    assert same(found["weights"], whole["weights"])
    assert same(found["adam"], whole["adam"])
