"""CPU seconds of policy training to a score: preset fast against preset paper's policy stage.

    python benchmarks/time_to_score.py

Hopper, setting standard, bundled data. Both policies are cloned with the same weights, those of preset fast's
discriminators. Every so often training pauses, its clock stopped, for ten episodes; the time that counts is that at
which the mean of three such scores in a row reaches 90 % of what the expert data scores. The paper's stage gets ten
times what the fast one took. Can be stopped and started again: it goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback
from rows import Row, keep, show

from tailo_pl.callbacks import StageCheckpoint
from tailo_pl.commands.making import making_data
from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.envs.evaluation import episode_seeds, run_episodes, summarise
from tailo_pl.inputs.weights import TrajectoryWeights, trajectory_weights
from tailo_pl.models.acting import actor
from tailo_pl.runs.describe import describe_data, versions
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare, run_folder
from tailo_pl.training.building import build_stage, stage_config

SHARE, IN_A_ROW, EPISODES, TIMES = 0.9, 3, 10, 10
EVERY = {"fast": 250, "paper": 50}


class ScoreClock(Callback):
    """Plays episodes every so many steps with its clock stopped, and ends training at the score or out of time."""

    def __init__(self, experiment: Experiment, every: int, wanted: float, budget: float) -> None:
        self._environment = experiment.environment
        self._every, self._wanted, self._budget = every, wanted, budget
        self.history: list[list[float]] = []  # seconds, step, score
        self._spent = 0.0
        self._began = time.process_time()

    @property
    def reached(self) -> bool:
        last = [score for _, _, score in self.history[-IN_A_ROW:]]
        return len(last) == IN_A_ROW and float(np.mean(last)) >= self._wanted

    @property
    def spent(self) -> float:
        return self._spent + time.process_time() - self._began

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._began = time.process_time()
        trainer.should_stop |= self.reached

    def on_train_batch_end(self, trainer: Any, module: Any, *given: Any) -> None:
        if trainer.global_step % self._every:
            return
        self._spent = self.spent
        assert self._environment is not None
        simulator = self._environment.simulator(EPISODES)
        played = run_episodes(simulator, actor(module), episode_seeds(0, "time to score", EPISODES))
        simulator.close()
        score = summarise(played, self._environment, trainer.global_step).score
        self.history.append([round(self._spent, 1), trainer.global_step, round(score, 1)])
        print(f"  {self._spent:7.1f} s  step {trainer.global_step:6}  score {score:5.1f}", flush=True)
        trainer.should_stop |= self.reached or self._spent > self._budget
        self._began = time.process_time()

    def state_dict(self) -> dict[str, Any]:
        return {"history": self.history, "spent": self.spent}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history, self._spent = state_dict["history"], state_dict["spent"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="runs", help="where the discriminators and both policies go")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("time_to_score.json"))
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    first = experiment_of(["method.stages.policy=null", "name=time-to-score", f"runs={options.runs}"])
    folder = run_folder(first)
    if not (folder / "summary.json").exists():
        with making_data():
            prepare(first)
        execute(folder, first)
    origins = describe_data(first)["ta"]["origins"]
    assert first.environment is not None
    expert = float(first.environment.reference.normalise(np.array(origins["expert"]["mean_return"])))
    fast = time_to(experiment_of([]), folder, SHARE * expert, np.inf)
    paper = time_to(experiment_of(["preset=paper", "threads=1"]), folder, SHARE * expert, TIMES * fast[0])
    more = not paper[1]
    rows = [
        Row("expert data", expert, "score"),
        Row("CPU s to 90 % of it, preset fast", fast[0], "s", note=f"{fast[2][-1][1]:.0f} steps"),
        Row("CPU s to 90 % of it, preset paper", paper[0], "s",
            note=f"{paper[2][-1][1]:.0f} steps" + (f", NOT reached: score {paper[2][-1][2]:.1f}" if more else "")),
        Row("time to score, fast vs paper", paper[0] / fast[0], target=10, note="more than this" if more else ""),
    ]  # fmt: skip
    show(rows, "policy training on hopper, setting standard")
    keep(rows, options.out, {"history": {"fast": fast[2], "paper": paper[2]}, **versions()})


def experiment_of(overrides: list[str]) -> Experiment:
    return composed(["env=hopper", "setting=standard", "trainer=cpu", *overrides])


def time_to(
    experiment: Experiment, scored: Path, wanted: float, budget: float
) -> tuple[float, bool, list[list[float]]]:
    """Train a policy with the weights of `scored` until it is good enough: seconds, whether it is, and how it went."""
    preset = experiment.names["preset"]
    folder = scored / f"policy-{preset}"
    done = folder / "history.json"
    if done.exists():
        kept = json.loads(done.read_text())
        return kept["seconds"], kept["reached"], kept["history"]
    print(f"preset {preset}: to score {wanted:.1f}", flush=True)
    folder.mkdir(exist_ok=True)
    weights = experiment.stages["policy"].inputs["weights"]
    assert isinstance(weights, TrajectoryWeights)
    scores = np.load(scored / "formal/scores.npy")
    made = trajectory_weights(scores, experiment.task.ta.offsets, alpha=weights.alpha, gamma=weights.gamma)
    np.save(folder / "weights.npy", made)
    width = experiment.task.ta.recording.observations.shape[1]
    limit, given = experiment.max_steps("policy"), {"weights": "weights.npy"}
    config = stage_config(experiment, "policy", width, experiment.action_bounds, limit, inputs=given)
    keep_out = ("RolloutScore", "StageProgress")
    callbacks = config["trainer"]["callbacks"]
    config["trainer"]["callbacks"] = [one for one in callbacks if not one["class_path"].endswith(keep_out)]
    config["trainer"]["logger"]["init_args"]["name"] = folder.name
    built = build_stage(config, folder, experiment.task)
    clock = ScoreClock(experiment, EVERY[preset], wanted, budget)
    built.trainer.callbacks.insert(0, clock)  # type: ignore[attr-defined]
    checkpoint = StageCheckpoint.path(built.trainer)
    built.trainer.fit(built.model, datamodule=built.data, ckpt_path=checkpoint if checkpoint.exists() else None)
    seconds = clock.history[-1][0]
    done.write_text(json.dumps({"seconds": seconds, "reached": clock.reached, "history": clock.history}))
    return seconds, clock.reached, clock.history


if __name__ == "__main__":
    main()
