"""One training step: ours under Lightning with all callbacks on, against plain loops and the bare matrix product."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback
from plain import discriminator_steps, matrix_products, policy_steps
from rows import Row, clock, in_turns, ratio

from tailo_pl.config.compose import composed
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.training.building import build_stage, stage_config

STATES, ACTIONS = 11, 3  # hopper
TRAJECTORIES, LENGTH = 45_000, 23
LOOP = "what is left of Lightning's loop takes 0.1 to 0.2 ms of a step"


def rows(rounds: int, bf16: bool) -> list[Row]:
    """Measure policy and discriminator. `bf16`: the machine multiplies bfloat16 in hardware."""
    task = made_up_task()
    return [*_policy(task, 8192, rounds, bf16), *_policy(task, 512, rounds, bf16), *_discriminator(task, rounds, bf16)]


def made_up_task() -> Task:
    """A million steps of hopper's sizes, random numbers, and a thousand expert states."""
    rng = np.random.default_rng(0)
    count = TRAJECTORIES * LENGTH
    states = rng.standard_normal((count, STATES), dtype=np.float32)
    actions = np.tanh(rng.standard_normal((count, ACTIONS), dtype=np.float32))
    starts = np.arange(0, count, LENGTH)
    ta = Trajectories.of(Recording(states, starts, actions=actions), ["random"] * TRAJECTORIES)
    ts = Trajectories.of(Recording(states[:1000] + 1, np.array([0])), ["expert"])
    return Task(ts, ta)


class _Clock(Callback):
    """Times the steps between the first few and the last."""

    def __init__(self, warm: int) -> None:
        self._warm = warm
        self.began = self.ended = 0.0

    def on_train_batch_end(self, trainer: Any, *given: Any) -> None:
        if trainer.global_step == self._warm:
            self.began = clock()
        self.ended = clock()


def ours(
    task: Task, stage: str, batch: int, steps: int, precision: str, *overrides: str, warm: int = 2
) -> Callable[[], float]:
    """Seconds per step of a stage of preset paper as a run trains it, but for rollouts.

    Args:
        task: what it is trained on.
        stage: which one of TAILO's.
        batch: its rows.
        steps: that are timed.
        precision: as Lightning's Trainer names it.
        overrides: of the configuration.
        warm: steps before the clock starts.
    """
    size = f"preset.{'policy' if stage == 'policy' else 'discriminator'}_batch={batch}"
    fixed = ("env=hopper", "preset=paper", size, f"trainer.precision={precision}", "trainer.accelerator=cpu")
    # The bar would be drawn to the screen that the results go to.
    without = ("callbacks.rollout=null", "callbacks.progress=null", f"threads={torch.get_num_threads()}")
    experiment = composed([*fixed, *without, *overrides])

    def run() -> float:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / stage
            folder.mkdir()
            np.save(folder / "negatives.npy", np.arange(TRAJECTORIES) % 5 > 0)
            np.save(folder / "weights.npy", np.linspace(0.01, 1, task.ta.steps, dtype=np.float32))
            given = "weights" if stage == "policy" else "negatives"
            bounds = ((-1.0,) * ACTIONS, (1.0,) * ACTIONS)
            made = stage_config(experiment, stage, STATES, bounds, warm + steps, inputs={given: f"{given}.npy"})
            built = build_stage(made, folder, task)
            clock = _Clock(warm)
            built.trainer.callbacks.append(clock)  # type: ignore[attr-defined]
            built.trainer.fit(built.model, datamodule=built.data)
            return (clock.ended - clock.began) / steps

    return run


def _policy(task: Task, batch: int, rounds: int, bf16: bool) -> list[Row]:
    steps = 10 if batch > 1024 else 100
    states, actions = (torch.from_numpy(np.asarray(part)) for part in (task.ta.observations, task.ta.actions))
    weights = torch.linspace(0.01, 1, len(states))
    doubles = (states.double(), actions.double(), weights.double())
    sides = {
        "ours": ours(task, "policy", batch, steps, "32-true"),
        "plain": policy_steps(states, actions, weights, batch, steps),
        "plain64": policy_steps(*doubles, batch, max(2, steps // 2)),
        "product": matrix_products(batch, torch.float32, steps),
        "bf16": ours(task, "policy", batch, steps if bf16 else 2, "bf16-mixed", warm=1),
    }
    taken = in_turns(sides, rounds)
    large = batch > 1024
    work = 2 * batch * (3 * (256 * 256 + 256 * 2 * ACTIONS) + 2 * STATES * 256)  # no gradient of the states
    peak = 2 * batch * 256 * 256 / statistics.median(taken["product"])
    share = 100 * work / statistics.median(taken["ours"]) / peak
    name, no_bf16 = f"policy step, batch {batch}", "" if bf16 else "this CPU has no bfloat16 in hardware"
    return [
        Row(f"{name}: 32-true", 1e3 * statistics.median(taken["ours"]), "ms"),
        Row(f"{name}: 32-true vs plain float32", ratio(taken, "plain", "ours"), target=0.95,
            note="" if large else LOOP),
        Row(f"{name}: 32-true vs plain float64", ratio(taken, "plain64", "ours")),
        Row(f"{name}: bf16-mixed vs plain float32", ratio(taken, "plain", "bf16"), target=2 if large and bf16 else None,
            note=no_bf16),
        Row(f"{name}: bf16-mixed vs plain float64", ratio(taken, "plain64", "bf16"), target=5 if large else None,
            note=no_bf16),
        Row(f"{name}: share of GEMM peak", share, "%", target=60 if large else None),
        Row(f"{name}: Lightning and callbacks",
            1e3 * (statistics.median(taken["ours"]) - statistics.median(taken["plain"])), "ms"),
    ]  # fmt: skip


def _discriminator(task: Task, rounds: int, bf16: bool) -> list[Row]:
    ts, ta = (torch.from_numpy(np.asarray(part.observations)) for part in (task.ts, task.ta))
    steps, batch = 30, 512
    sides = {
        "ours": ours(task, "formal", batch, steps, "32-true"),
        "plain": discriminator_steps(ts, ta, batch, steps),
        "plain64": discriminator_steps(ts.double(), ta.double(), batch, steps // 2),
        "product": matrix_products(batch, torch.float32, 100),
        "bf16": ours(task, "formal", batch, steps if bf16 else 5, "bf16-mixed", warm=1),
    }
    taken = in_turns(sides, rounds)
    # Twelve products of batch x 256 x 256: three forward, one for the penalty's gradient, eight backward.
    peak = 2 * batch * 256 * 256 / statistics.median(taken["product"])
    share = 100 * 12 * 2 * batch * 256 * 256 / statistics.median(taken["ours"]) / peak
    name, no_bf16 = f"discriminator step, batch {batch}", "" if bf16 else "this CPU has no bfloat16 in hardware"
    limit = "bound by the products, of which float64 takes twice as long, not four times"
    return [
        Row(f"{name}: 32-true", 1e3 * statistics.median(taken["ours"]), "ms"),
        Row(f"{name}: 32-true vs plain float32", ratio(taken, "plain", "ours")),
        Row(f"{name}: 32-true vs plain float64", ratio(taken, "plain64", "ours"), target=4, note=limit),
        Row(f"{name}: bf16-mixed vs plain float64", ratio(taken, "plain64", "bf16"), note=no_bf16),
        Row(f"{name}: share of GEMM peak", share, "%"),
    ]
