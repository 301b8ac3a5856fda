"""A step of every method: trained by Lightning through the project, and in a plain loop of the same work.

    python benchmarks/method_steps.py [ROUNDS]

Both train the last stage of a method on pointmaze, preset fast, without rollouts, checkpoints or logs. The plain loop
draws the same batches, takes the same losses and steps the same optimiser. CPU time: a busy machine counts little.
MOPO is measured by the epoch: 50,000 rollouts of 5 steps in the model, then 1,000 updates.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rows import Row, in_turns, ratio, show

from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.models import Ensemble
from tailo_pl.training.building import Built, build_stage, stage_config

METHODS = ("tailo", "smodice", "lobsdice", "oril", "rce", "dwbc", "marwil", "otr", "seabo", "recoil", "dilo")
TRAJECTORY = ("setting=given", "setting.ts=directions", "setting.ta=directions", "setting.ts_trajectories=1")
WARM_UP, STEPS = 10, 80
EPOCH, EPOCHS = 1_000, 2


def main() -> None:
    torch.set_num_threads(1)
    show(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 5), "a step of every method")


def experiment_of(method: str) -> Experiment:
    """The method on pointmaze, nothing held out."""
    trajectory = TRAJECTORY if method in ("lobsdice", "seabo", "dilo") else ()
    return composed([f"method={method}", *trajectory, "preset.held_out.trajectories=0", "preset.baselines.actor=own"])


def rows(rounds: int) -> list[Row]:
    """How fast a method's last stage trains, as a share of a plain loop's speed."""
    found = []
    for method in METHODS:
        experiment = experiment_of(method)
        with tempfile.TemporaryDirectory() as folder:
            sides = {fit.__name__: partial(measure, experiment, Path(folder), fit) for fit in (fitted, looped)}
            taken = in_turns(sides, rounds)
        through, plain = (statistics.median(taken[side]) for side in ("fitted", "looped"))
        note = f"{through:.1f} against {plain:.1f} CPU ms"
        value = ratio(taken, "looped", "fitted")
        found.append(Row(f"step of {method} vs a plain loop", value, target=1.0, note=note))
    return [*found, epoch_row()]


def epoch_row() -> Row:
    """How fast an epoch of MOPO is, as a share of a plain loop's speed."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {fit.__name__: partial(epoch, Path(folder), fit) for fit in (fitted, looped)}
        sides["looped"]()  # the first is slower, whichever it is: its memory is new
        taken = in_turns(sides, EPOCHS)
    through, plain = (statistics.median(taken[side]) for side in ("fitted", "looped"))
    note = f"{through:.1f} against {plain:.1f} CPU s"
    return Row("epoch of mopo vs a plain loop", ratio(taken, "looped", "fitted"), target=0.95, note=note)


def epoch(folder: Path, fit: Any) -> float:
    """CPU seconds of one epoch, rollouts in the model included, start-up taken away."""
    times = []
    for rollouts, steps in ((1, 1), (50_000, EPOCH)):
        experiment = composed(["method=mopo", "preset=paper", f"preset.model_based.rollouts={rollouts}"])
        built = stage(experiment, folder, steps)
        began = time.process_time()
        fit(built, steps)
        times.append(time.process_time() - began)
    return times[1] - times[0]


def measure(experiment: Experiment, folder: Path, fit: Any) -> float:
    """Milliseconds per step, start-up taken away."""
    times = []
    for count in (WARM_UP, WARM_UP + STEPS):
        built = stage(experiment, folder, count)
        began = time.process_time()
        fit(built, count)
        times.append(time.process_time() - began)
    return 1000 * (times[1] - times[0]) / STEPS


def stage(experiment: Experiment, folder: Path, steps: int) -> Built:
    """The last stage, with inputs that are made up: a number for every step, models that have learnt nothing."""
    name, task = list(experiment.stages)[-1], experiment.task
    width = task.ta.recording.observations.shape[1]
    inputs = {}
    for use in experiment.stages[name].inputs:
        array = np.random.default_rng(0).random(task.ta.steps, dtype=np.float32)
        if use == "dynamics":
            torch.manual_seed(0)
            ensemble = Ensemble()
            ensemble.prepare(width, len(experiment.action_bounds[0]))
            array = ensemble.pack().numpy()
        np.save(folder / f"{use}.npy", array)
        inputs[use] = f"{use}.npy"
    config = stage_config(experiment, name, width, experiment.action_bounds, steps, inputs=inputs)
    config["trainer"] |= {
        "callbacks": [],
        "log_every_n_steps": 10**9,
        "enable_checkpointing": False,
        "accelerator": "cpu",
    }
    return build_stage(config, folder, task)


def fitted(built: Built, steps: int) -> None:
    built.trainer.fit(built.model, datamodule=built.data)


def looped(built: Built, steps: int) -> None:
    """What Lightning does for one device, written out."""
    model, data, trainer = built.model, built.data, built.trainer
    model.trainer, data.trainer, trainer.datamodule = trainer, trainer, data  # type: ignore[attr-defined]
    trainer.strategy.connect(model)
    model.setup("fit")
    optimizers = model.configure_optimizers()
    trainer.fit_loop.epoch_loop.max_steps = steps + 1  # at its last step a stage logs, which only a trainer can take
    optimizer = optimizers["optimizer"] if isinstance(optimizers, dict) else optimizers
    schedule = optimizers["lr_scheduler"]["scheduler"] if isinstance(optimizers, dict) else None
    batches = iter(data.train_dataloader())
    counted = trainer.fit_loop.epoch_loop.automatic_optimization.optim_progress.optimizer.step.total

    def closure() -> torch.Tensor:
        loss = model.training_step(next(batches), 0)
        optimizer.zero_grad()
        model.backward(loss)
        return loss

    for step in range(steps):
        model.optimizer_step(0, step, optimizer, closure)  # the optimiser's step, and what the method does behind it
        counted.completed += 1
        if schedule is not None:
            schedule.step()


if __name__ == "__main__":
    main()
