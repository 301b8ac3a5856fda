"""The grid: which runs, in which order, each made once and written down in a line."""

from __future__ import annotations

import csv
import json
import logging
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, get_args

from tailo_pl.config.choices import use_folder
from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.config.trusted import allow
from tailo_pl.runs.comparison import trained
from tailo_pl.runs.summary import read_summary, stated_numbers

from .changed import Right, Wrong

RESULTS = Path(__file__).parents[2] / "results"
ENVS = ("pointmaze", "hopper", "walker2d", "halfcheetah", "ant")
RIGHT: tuple[str, ...] = get_args(Right)
WRONG: tuple[str, ...] = get_args(Wrong)
DEFAULT, BC, CHECKPOINTS = "default", "method=bc", "checkpoints"
KNOBS: dict[str, tuple[str, ...]] = {  # what is chosen, by name: one value each that differs from the default
    DEFAULT: (),
    "alpha=0.25": ("method.alpha=0.25",),
    "alpha=0.5": ("method.alpha=0.5",),
    "alpha=2": ("method.alpha=2",),
    "alpha=4": ("method.alpha=4",),
    "gamma=0": ("method.gamma=0",),
    "gamma=0.9": ("method.gamma=0.9",),
    "gamma=0.999": ("method.gamma=0.999",),
    "beta_1=0.3": ("method.beta_1=0.3",),
    "beta_1=0.95": ("method.beta_1=0.95",),
    "head=gaussian": ("head=gaussian",),
    "head=mixture": ("head=mixture",),
    BC: ("method=bc",),
    CHECKPOINTS: ("preset.rollout.every_n_steps=400", "preset.policy_steps=2000"),  # not a choice, but several to make
}
FIRST = (DEFAULT, "alpha=4", "gamma=0", BC, "head=gaussian", "alpha=0.5")
LONGER = {  # which learns nothing in less; fewer runs for it
    "halfcheetah": ("preset.policy_steps=5000", "preset.policy_batch=128", "preset.policy_learning_rate=2e-3"),
}
BUDGET = (  # small, and the same whatever the presets come to be
    "preset=fast",
    "preset.pretrain_steps=200",
    "preset.formal_steps=400",
    "preset.discriminator_batch=64",
    "preset.settled.patience=0",
    "preset.settled.held_out=0",
    "preset.policy_steps=800",
    "preset.policy_batch=256",
    "preset.policy_learning_rate=3e-3",
    "preset.schedule=constant",
    "preset.averaging=0.99",
    "preset.weight_decay=1e-5",
    "preset.sampling=proportional",
    "preset.network.members=1",
    "preset.network.hidden=[128,128]",
    "preset.network.norm=none",
    "preset.held_out.trajectories=3",
    "preset.held_out.every_n_steps=200",
    "preset.held_out.monitor=error",
    "preset.held_out.patience=0",
    "preset.rollout.every_n_steps=0",
    "preset.rollout.episodes=10",
    "threads=1",
    "checkpoint_every=100000",
    "trainer=cpu",
    "trainer.precision=32-true",
    "logger=csv",
    "callbacks.progress=null",
    "source.trust=true",
)
log = logging.getLogger(__name__)


class Run(NamedTuple):
    """A run of the grid: where, on what data, with what chosen, and with which seed."""

    env: str
    data: str
    knob: str
    seed: int


def grid() -> Iterator[Run]:
    """Every run, those of environments in turn; what tells most and takes least first."""
    for seed, first in ((0, True), (2, False), (0, False), (1, True), (1, False)):
        for envs in ([env for env in ENVS if env not in LONGER], LONGER):
            yield from (
                run for of_each in zip_longest(*(_of(env, seed, first) for env in envs)) for run in of_each if run
            )


def _of(env: str, seed: int, first: bool) -> list[Run]:
    """The runs of an environment with a seed: the first ones, or what they leave over; less of the third seed."""
    right = [Run(env, data, DEFAULT, seed) for data in RIGHT[1:]]
    wrong = [Run(env, data, DEFAULT, seed) for data in WRONG]
    knobs = [Run(env, "whole", knob, seed) for knob in FIRST]
    if seed == 2:
        return [] if first else [*knobs[:4], *wrong]
    if first:
        return knobs + wrong + right
    if env in LONGER:
        return []
    rest = [Run(env, "whole", knob, seed) for knob in KNOBS if knob not in FIRST]
    return rest + [Run(env, data, knob, seed) for data in RIGHT[1:] for knob in ("alpha=4", BC)]


def experiment_of(run: Run, root: Path) -> Experiment:
    """What `tailo train` would be told."""
    allow(["tools"])
    use_folder(Path(__file__).parent / "conf")
    setting = "few_examples" if run.env == "pointmaze" else "few_logs"
    knob = (*LONGER.get(run.env, ()), *KNOBS[run.knob])
    changed = {one.partition("=")[0] for one in knob}
    budget = [one for one in BUDGET if one.partition("=")[0] not in changed]
    head = [] if "head" in changed else ["head=regression"]
    name = "-".join(map(str, run[1:])).replace("=", "_")
    return composed(
        [
            *(f"env={run.env}", f"setting={setting}", f"setting.change={run.data}", *budget, *head, *knob),
            # Policies of two seeds share their discriminators; a third has its own.
            *(f"seed={run.seed}", f"discriminator_seed={run.seed // 2}", f"name={name}", f"runs={root}"),
        ]
    )


def make(root: Path, seconds: float) -> None:
    """Make what is missing of the grid, as far as it can be begun in so many seconds; a line for each run."""
    path = RESULTS / "evidence.jsonl"
    known = {Run(line["env"], line["data"], line["knob"], line["seed"]) for line in lines(path)}
    deadline = time.monotonic() + seconds
    for run in grid():
        if run in known:
            continue
        if time.monotonic() > deadline:
            break
        begun = time.process_time()
        line = {**run._asdict(), **outcome(trained(experiment_of(run, root)))}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        log.info("%s: score %.1f, %.0f s", " ".join(map(str, run)), line["score"], time.process_time() - begun)


def outcome(run_dir: Path) -> dict[str, Any]:
    """What a run came to, and what it said of itself."""
    summary = read_summary(run_dir)
    numbers = {name: _short(value) for name, value in stated_numbers(summary["stages"]).items()}
    found = {"score": _short(summary["score"] or 0.0), "episodes": summary["episodes"]}
    found |= {"verdict": summary["verdict"]["level"], "numbers": numbers}
    if len(summary["evaluations"]) > 1:
        errors = held_out_errors(next(run_dir.glob("policy/**/metrics.csv")))
        found["checkpoints"] = [
            [one["step"], errors[one["step"]], _short(one["score"])]
            for one in summary["evaluations"][:-1]  # the last is of the chosen checkpoint, not of that step
        ]
        found["chosen"] = summary["stages"][-1]["chosen_step"]
    return found


def held_out_errors(path: Path) -> dict[int, float]:
    """Held-out error by the number of steps done; the log counts them from 0."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("held_out/error")]
    return {int(row["step"]) + 1: _short(float(row["held_out/error"])) for row in rows}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def lines(path: Path) -> list[dict[str, Any]]:
    """What a file of lines holds; nothing where there is none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
