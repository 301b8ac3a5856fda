"""Locomotion data: the package's policies rolled out with a share of their exploration noise, and random actions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tailo_pl.data.recorder import record
from tailo_pl.data.sources.recipe import Part, Recipe, version_of
from tailo_pl.data.sources.rollouts import reporter, seeds
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.bodies import LEGS, STOCK, crippled
from tailo_pl.envs.evaluation import Actor, episode_seeds
from tailo_pl.errors import UserError, require_range
from tailo_pl.experts import SQUASHED, expert_checksum, expert_facts, expert_names, load_expert

TASKS = ("hopper", "halfcheetah", "walker2d", "ant")
EXPERT_EPISODES = 200
MEDIUM_STEPS = 300_000
REPLAY_EPISODES = 50  # of each of the policies that are mixed
RANDOM_STEPS = 1_000_000
ROWS = 64


@dataclass(frozen=True)
class Rollouts:
    """One batch of episodes: which policy (None: random actions), how much of its noise, how many.

    Args:
        policy: name of a policy of the package.
        noise_share: how much of its exploration noise is added.
        episodes: how many episodes; or
        steps: how many steps.
        origin: label of the trajectories.
        body: which body they are walked in.
    """

    policy: str | None
    noise_share: float
    origin: str
    episodes: int | None = None
    steps: int | None = None
    body: str = STOCK

    def identity(self) -> dict[str, object]:
        """What decides these episodes besides seed and simulator."""
        checksum = None if self.policy is None else expert_checksum(self.policy)
        return {**vars(self), "sha256": checksum}


@dataclass(frozen=True)
class SmoothRollouts(Rollouts):
    """Episodes of a policy whose noise is added before its tanh: stochastic, and no action is ever clipped."""

    before_tanh: bool = True


class LocomotionRecipe(Recipe):
    """Parts `expert`, `medium`, `medium-expert`, `medium-replay`, `random`, and `mismatch` where there is one.

    Args:
        task: hopper, halfcheetah, walker2d or ant.
        pad_contact_forces: ant only: its 27 numbers followed by 84 zeros, as D4RL recorded it.
        smooth: share of the expert's exploration noise that is added before its tanh, instead of what it is given
            behind it and then clipped: data as a squashed Gaussian policy makes it. 0: as it is. For halfcheetah only,
            whose expert has a tanh.
        leg: ant only: which leg of the expert in part `mismatch` has no power.
    """

    def __init__(self, task: str, pad_contact_forces: bool = False, smooth: float = 0.0, leg: int = 4) -> None:
        if task not in TASKS:
            raise UserError(f"env.data: task {task!r} given, expected one of {', '.join(TASKS)}")
        require_range("env.data.smooth", smooth, 0, closed="[)")
        if smooth and load_expert(task).kind != SQUASHED:
            raise UserError(f"env.data.smooth: {smooth:g} given, but the expert of {task} has no tanh, expected 0")
        if leg not in LEGS:
            raise UserError(f"env.data.leg: {leg} given, expected one of {', '.join(map(str, LEGS))}")
        if task == "ant" and f"ant-{crippled(leg)}" not in expert_names():
            there = [str(one) for one in LEGS if f"ant-{crippled(one)}" in expert_names()]
            raise UserError(
                f"env.data.leg: {leg} given, but no expert with such a body is bundled, expected {' or '.join(there)} "
                f"(tools/train_expert.py ant --body {crippled(leg)} trains one)"
            )
        self._task, self._padded, self._smooth, self._leg = task, pad_contact_forces, smooth, leg

    @property
    def parts(self) -> dict[str, Part]:
        return {
            name: Part(identity(part, self._padded), partial(make, self._task, name, part, self._padded))
            for name, part in parts(self._task, self._smooth, self._leg).items()
        }


def parts(task: str, smooth: float = 0.0, leg: int = 4) -> dict[str, list[Rollouts]]:
    """What each part of a task's bundled data is made of; `smooth` and `leg` as `LocomotionRecipe` has them."""
    expert, medium = task, f"{task}-medium"

    def share(policy: str) -> float:
        return float(expert_facts(policy)["noise_share"])

    experts = (
        SmoothRollouts(expert, smooth, "expert", episodes=EXPERT_EPISODES)
        if smooth
        else Rollouts(expert, share(expert), "expert", episodes=EXPERT_EPISODES)
    )
    mediums = Rollouts(medium, share(medium), "medium", steps=MEDIUM_STEPS)
    made = {
        "expert": [experts],
        "medium": [mediums],
        "medium-expert": [mediums, experts],
        # Learning seen from outside: from random actions over the medium policy to the expert, all of them noisy.
        "medium-replay": [
            Rollouts(None, 1.0, "random", episodes=REPLAY_EPISODES),
            Rollouts(medium, 1.0, "medium, noisy", episodes=REPLAY_EPISODES),
            Rollouts(medium, share(medium), "medium", episodes=REPLAY_EPISODES),
            Rollouts(expert, 1.0, "expert, noisy", episodes=REPLAY_EPISODES),
        ],
        "random": [Rollouts(None, 1.0, "random", steps=RANDOM_STEPS)],
    }
    other_body = {"halfcheetah": "half-torso", "ant": crippled(leg)}.get(task)
    if other_body and f"{task}-{other_body}" in expert_names():
        made["mismatch"] = [Rollouts(f"{task}-{other_body}", 0.0, other_body, episodes=1, body=other_body)]
    return made


def identity(part: list[Rollouts], padded: bool) -> dict[str, object]:
    """What decides a part besides its seed."""
    rollouts = [one.identity() for one in part]
    return {
        "maker": 2,
        "rows": ROWS,
        "rollouts": rollouts,
        "padded": padded,
        "mujoco": version_of("mujoco"),
        "gymnasium": version_of("gymnasium"),  # its models are the bodies
    }


def make(task: str, name: str, part: list[Rollouts], padded: bool, seed: int) -> Trajectories:
    """Roll out a part, all cores at work; `padded` is the ant's form with 84 zeros.

    Matrix products run on one thread: their last digits depend on the number of threads, and in these systems the
    last digit decides everything a few hundred steps later. The simulator's threads do not share sums.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        made = [_roll_out(task, rollouts, padded, seed, label) for label, rollouts in _labelled(task, name, part)]
    return Trajectories.stack(made)


def _labelled(task: str, name: str, part: list[Rollouts]) -> list[tuple[str, Rollouts]]:
    """Each batch of episodes with what its progress bar says."""
    if len(part) == 1:
        return [(f"{task} {name}", part[0])]
    return [(f"{task} {name} {number}/{len(part)}", rollouts) for number, rollouts in enumerate(part, start=1)]


def _roll_out(task: str, rollouts: Rollouts, padded: bool, seed: int, label: str) -> Trajectories:
    from tailo_pl.envs.locomotion import HORIZON, Locomotion  # here: to list data needs no simulator

    environment = Locomotion(task, rollouts.body, padded)
    simulator = environment.simulator(min(ROWS, rollouts.episodes or ROWS))
    # Each kind of episodes has a stream of its own, whatever else the part holds.
    stream = f"data/{rollouts.policy}/{rollouts.noise_share}/{rollouts.body}"
    if isinstance(rollouts, SmoothRollouts):
        stream += "/before tanh"
    rng = np.random.default_rng(int(episode_seeds(seed, stream, 1)[0]))
    total = rollouts.steps or (rollouts.episodes or 0) * HORIZON
    try:
        recording = record(
            simulator,
            _actor(rollouts, simulator.action_dim, rng),
            seeds(seed, stream, rollouts.episodes),
            steps=rollouts.steps,
            progress=reporter(label, total),
        )
    finally:
        simulator.close()
    return Trajectories.of(recording, rollouts.origin)


def _actor(rollouts: Rollouts, action_dim: int, rng: np.random.Generator) -> Actor:
    if rollouts.policy is None:
        return lambda observations: rng.uniform(-1.0, 1.0, (len(observations), action_dim)).astype(np.float32)
    policy = load_expert(rollouts.policy)
    before_tanh = isinstance(rollouts, SmoothRollouts)

    def act(observations: NDArray[np.float64]) -> NDArray[np.float32]:
        return policy.act(observations, rollouts.noise_share, rng, before_tanh=before_tanh)

    return act
