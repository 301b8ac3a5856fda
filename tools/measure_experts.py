"""Measure the policies of the package and write what was found into their manifest.

    python tools/measure_experts.py                 all of them
    python tools/measure_experts.py ant walker2d    these only; the other entries stay as they are

Each policy plays 100 episodes without noise, then with less and less of its exploration noise, until the mean return
with noise is above 90 % of that without. Data is made with this share: as varied as it can be while still good.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tailo_pl.experts
from tailo_pl.envs.antmaze import STATE_DIM, AntMazeRows
from tailo_pl.envs.bodies import STOCK
from tailo_pl.envs.evaluation import episode_seeds, run_episodes
from tailo_pl.envs.locomotion import LocomotionRows
from tailo_pl.envs.reference_scores import normalised_score
from tailo_pl.envs.simulator import Simulator
from tailo_pl.experts import NpzPolicy, load_expert
from tailo_pl.experts.heading import pursue, walk

FOLDER = Path(tailo_pl.experts.__file__).parent
EPISODES = 100
SHARES = tuple(round(0.1 * tenths, 1) for tenths in range(10, 0, -1))
KEPT_RETURN = 0.9


class Origin(NamedTuple):
    """Where a policy comes from: this task, body and algorithm, after so many steps.

    `tools/train_expert.py` trains them, and `tools/train_heading.py` the one for antmaze.
    """

    task: str
    body: str
    algorithm: str
    steps: int


ORIGINS = {
    "ant": Origin("ant", STOCK, "TRPO", 1_500_000),
    "ant-heading": Origin("antmaze", STOCK, "PPO", 1_025_000),
    "ant-crippled-leg": Origin("ant", "crippled-leg", "TRPO", 921_600),
    "ant-medium": Origin("ant", STOCK, "TRPO", 700_000),
    "halfcheetah": Origin("halfcheetah", STOCK, "TD3", 475_000),
    "halfcheetah-half-torso": Origin("halfcheetah", "half-torso", "TD3", 2_125_000),
    "halfcheetah-medium": Origin("halfcheetah", STOCK, "TD3", 75_000),
    "hopper": Origin("hopper", STOCK, "TRPO", 300_000),
    "hopper-medium": Origin("hopper", STOCK, "TRPO", 100_000),
    "walker2d": Origin("walker2d", STOCK, "TRPO", 1_300_000),
    "walker2d-medium": Origin("walker2d", STOCK, "TRPO", 200_000),
}


def describe(task: str, returns: NDArray[np.float64]) -> dict[str, float]:
    """Mean and deviation of returns, and the normalised score of their mean."""
    return {
        "return_mean": round(float(returns.mean()), 2),
        "return_std": round(float(returns.std()), 2),
        "normalised_score": round(float(normalised_score(_dataset(task), returns.mean())), 1),
    }


def _dataset(task: str) -> str:
    """A dataset of D4RL whose reference returns are the task's."""
    return "antmaze-umaze-v2" if task == "antmaze" else f"{task}-expert-v2"


def _walk_to_goal(
    policy: NpzPolicy,
    observations: NDArray[np.float64],
    noise_share: float = 0.0,
    rng: np.random.Generator | None = None,
) -> NDArray[np.float32]:
    """The heading policy on its way through the maze."""
    states, goals = observations[:, :STATE_DIM], observations[:, STATE_DIM:]
    return walk(policy, states, pursue(states[:, :2], goals), noise_share, rng)


def measure(name: str, policy: NpzPolicy) -> dict[str, Any]:
    """One entry of the manifest."""
    origin = ORIGINS[name]
    simulator: Simulator
    if origin.task == "antmaze":
        simulator, act = AntMazeRows(EPISODES, show_goal=True), partial(_walk_to_goal, policy)
    else:
        simulator, act = LocomotionRows(origin.task, EPISODES, body=origin.body), policy.act
    seeds = episode_seeds(0, "experts", EPISODES)
    noiseless = run_episodes(simulator, act, seeds).returns
    for share in SHARES:
        noisy_actor = partial(act, noise_share=share, rng=np.random.default_rng(0))
        noisy = run_episodes(simulator, noisy_actor, seeds).returns
        if noisy.mean() > KEPT_RETURN * noiseless.mean():
            break
    else:
        raise ValueError(f"{name}: even {SHARES[-1]} of its noise costs more than allowed")
    simulator.close()
    return {
        "environment": origin.task,
        "body": origin.body,
        "algorithm": origin.algorithm,
        "steps": origin.steps,
        "episodes": EPISODES,
        "noiseless": describe(origin.task, noiseless),
        "noise_share": share,
        "noisy": describe(origin.task, noisy),
        "sha256": hashlib.sha256((FOLDER / f"{name}.npz").read_bytes()).hexdigest(),
        "versions": {package: version(package) for package in ("gymnasium", "mujoco", "numpy")},
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(ORIGINS))
    names: list[str] = parser.parse_args(argv).names or list(ORIGINS)
    if unknown := set(names) - ORIGINS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected of {', '.join(ORIGINS)}")
    manifest = FOLDER / "manifest.json"
    entries = json.loads(manifest.read_text(encoding="utf-8"))["policies"] if manifest.exists() else {}
    for name in names:
        entries[name] = measure(name, load_expert(name))
        manifest.write_text(json.dumps({"policies": dict(sorted(entries.items()))}, indent=2) + "\n", encoding="utf-8")
        print(name, json.dumps(entries[name]), flush=True)


if __name__ == "__main__":
    main()
