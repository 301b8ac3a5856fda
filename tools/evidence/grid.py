"""The grid: which runs, in which order, each made once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from tailo_pl.config.choices import use_folder
from tailo_pl.config.compose import composed
from tailo_pl.config.trusted import allow
from tailo_pl.errors import UserError
from tailo_pl.runs.comparison import trained
from tailo_pl.runs.folder import run_folder

ENVS = ("pointmaze", "hopper", "walker2d", "halfcheetah", "ant")
SPOILS = ("degrees", "flipped", "permuted", "elsewhere", "absent", "one_state")
DEFAULT = "default"
KNOBS: dict[str, tuple[str, ...]] = {  # what is chosen, by name: one value each that differs from the default
    DEFAULT: (),
    "alpha=0.25": ("method.alpha=0.25",),
    "alpha=0.5": ("method.alpha=0.5",),
    "alpha=2": ("method.alpha=2",),
    "alpha=4": ("method.alpha=4",),
    "gamma=0": ("method.gamma=0",),
    "gamma=0.9": ("method.gamma=0.9",),
    "gamma=0.95": ("method.gamma=0.95",),
    "gamma=0.999": ("method.gamma=0.999",),
    "beta_1=0.3": ("method.beta_1=0.3",),
    "beta_1=0.95": ("method.beta_1=0.95",),
    "head=gaussian": ("head=gaussian",),
    "head=mixture": ("head=mixture",),
    "method=bc": ("method=bc",),
}
FIRST = (DEFAULT, "alpha=4", "gamma=0", "alpha=0.5", "method=bc", "gamma=0.95", "head=gaussian", "beta_1=0.3")
BUDGET = (  # small, and the same whatever the presets come to be
    "preset=fast",
    "preset.pretrain_steps=300",
    "preset.formal_steps=600",
    "preset.policy_steps=1500",
    "preset.policy_batch=128",
    "preset.policy_learning_rate=2e-3",
    "preset.network.members=1",
    "preset.network.hidden=[128,128]",
    "preset.held_out.patience=0",
    "preset.rollout.every_n_steps=0",
    "preset.rollout.episodes=20",
    "trainer=cpu",
    "trainer.precision=32-true",
    "logger=csv",
    "callbacks.progress=null",
)
log = logging.getLogger(__name__)


def runs() -> Iterator[tuple[str, ...]]:
    """(env, what is wrong, knob, seed) of every run, those of all environments in turn; what tells most first."""
    for seed in ("0", "1", "2"):
        wanted = [
            [(env, "nothing", knob, seed) for knob in FIRST]
            + [(env, spoil, DEFAULT, seed) for spoil in SPOILS]
            + ([] if env == "pointmaze" else [(env, "two_experts", DEFAULT, seed)])
            + [(env, "absent", "method=bc", seed)]
            + [(env, "nothing", knob, seed) for knob in KNOBS if knob not in FIRST]
            for env in ENVS
        ]
        for round_of in zip_longest(*wanted):
            yield from (one for one in round_of if one is not None)


def overrides(env: str, spoil: str, knob: str, seed: str) -> list[str]:
    """How `tailo train` is told to make a run."""
    setting = "few_examples" if env == "pointmaze" else "few_logs"
    data = ["setting.experts=2"] if spoil == "two_experts" else [f"setting.spoil={spoil}"]
    return [f"env={env}", f"setting={setting}", *data, *BUDGET, *KNOBS[knob], f"seed={seed}"]


def name_of(run: tuple[str, ...]) -> str:
    return "-".join(run[1:]).replace("=", "_")


def make(root: Path, seconds: float) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Every run of the grid that is there or can be made in so many seconds, with its folder."""
    allow(["tools"])
    use_folder(Path(__file__).parent / "conf")
    deadline = time.monotonic() + seconds
    for run in runs():
        wanted = [*overrides(*run), f"name={name_of(run)}", f"runs={root}"]
        try:
            experiment = composed(wanted)
            folder = run_folder(experiment)
            if not (folder / "summary.json").exists():
                if time.monotonic() > deadline:
                    continue
                begun = time.monotonic()
                trained(experiment)
                log.info("%s: %.0f s", " ".join(run), time.monotonic() - begun)
            yield run, folder
        except UserError as error:
            log.warning("%s: %s", " ".join(run), error)
