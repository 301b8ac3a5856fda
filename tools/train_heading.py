"""Train the policy that walks the ant in any direction again: PPO, from the expert that runs along +x.

    python tools/train_heading.py heading

Three phases, about a million steps in all (some twenty minutes on one core): on the open plane with headings that
jump; there with headings that turn slowly, where standing still ends an episode; in the U-maze on the way to random
goals. The state is always turned so that the heading is +x (`tailo_pl.experts.heading`): the policy needs no input for
it.

The folder holds `heading.npz`, the policy so far, and `save.pt`. Started again with the same command, training goes on
from the last save with new episodes. The package's file was trained like this, but for one thing: legs were renumbered
only once the body was more than 55 degrees off, where now they always are as fits best.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tailo_pl.envs import umaze
from tailo_pl.envs.antmaze import FRAME_SKIP, ORIGIN, maze_model
from tailo_pl.envs.bodies import load_model
from tailo_pl.envs.state_rows import Floats, StateRows
from tailo_pl.experts import CLIPPED, NpzPolicy, load_expert
from tailo_pl.experts.heading import pursue, quarter_turns, turn_back, turned
from tailo_pl.files import whole_file

SPEED = 2.0  # metres a second that are worth most
EPISODE = 300
NOISE_RANGE = (0.1, 0.5)  # of the exploration noise; training begins with at least 0.2
START_NOISE = 0.2
DISCOUNT, TRACE = 0.99, 0.95
EPOCHS, MINIBATCH, CLIP, KL_LIMIT = 8, 1024, 0.2, 0.03
CRITIC_FIRST = 2  # iterations in which only the critic learns
ANGLES = (-np.pi, np.pi)


@dataclass(frozen=True)
class Phase:
    """A kind of headings, and for how many steps they are practised."""

    headings: Literal["jump", "turn", "maze"]
    steps: int


PHASES = (Phase("jump", 410_000), Phase("turn", 287_000), Phase("maze", 328_000))


class Drill(StateRows):
    """Rows of ants that are told where to head; whatever ends starts again somewhere else."""

    def __init__(self, headings: Literal["jump", "turn", "maze"], rows: int, rng: np.random.Generator) -> None:
        super().__init__(maze_model() if headings == "maze" else load_model("ant"), rows, FRAME_SKIP, threads=1)
        self._kind, self._rng = headings, rng
        self._all = np.arange(rows)
        self.headings, self._wanted, self._goals = np.zeros(rows), np.zeros(rows), np.zeros((rows, 2))
        self._change, self._speed = np.zeros(rows, dtype=np.int64), np.ones(rows)
        self._restart(self._all)
        self.command()

    @property
    def states(self) -> Floats:
        return np.concatenate([self._states[:, self._qpos], self._states[:, self._qvel]], axis=1)

    def seen(self) -> tuple[Floats, NDArray[np.int64]]:
        """What the policy sees of every row, and how its legs are numbered for that."""
        states = self.states
        turns = quarter_turns(states, self.headings)
        return turned(states, self.headings, turns), turns

    def command(self) -> None:
        """Tell every row where to head next."""
        if self._kind == "maze":
            places = self.states[:, :2] + ORIGIN
            self._new_goals(np.flatnonzero(np.linalg.norm(places - self._goals, axis=1) < umaze.REACHED))
            self.headings = pursue(places, self._goals)
            return
        due = np.flatnonzero(self._elapsed >= self._change)
        self._wanted[due] = self._rng.uniform(*ANGLES, len(due))
        self._change[due] = self._elapsed[due] + self._rng.integers(15, 60, len(due))
        most = 0.15 if self._kind == "turn" else np.pi
        off = (self._wanted - self.headings + np.pi) % (2 * np.pi) - np.pi
        self.headings = self.headings + np.clip(off, -most, most)

    def act(self, actions: NDArray[np.float32]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        """Rewards, which rows fell or stand still, and whose time is up; both of these await `restart`."""
        before = self.states[:, :2]
        self._advance(self._all, actions)
        states = self.states
        velocity = (states[:, :2] - before) / self.step_seconds
        ahead = velocity[:, 0] * np.cos(self.headings) + velocity[:, 1] * np.sin(self.headings)
        aside = velocity[:, 1] * np.cos(self.headings) - velocity[:, 0] * np.sin(self.headings)
        upright = 1 - 2 * (states[:, 4] ** 2 + states[:, 5] ** 2)
        self._speed = 0.95 * self._speed + 0.05 * np.linalg.norm(velocity, axis=1)
        stuck = (self._kind != "jump") & (self._speed < 0.35) & (self._elapsed > 40)
        fast = np.minimum(ahead, SPEED - 0.5 * (ahead - SPEED))  # faster than wanted costs half of what it gains
        rewards = fast - 0.3 * np.abs(aside) - 0.1 * np.square(actions).sum(1) + upright
        return rewards, (upright < 0) | stuck, self._elapsed >= EPISODE

    def restart(self, rows: NDArray[np.int64]) -> None:
        if len(rows):
            self._restart(rows)

    def _restart(self, rows: NDArray[np.int64]) -> None:
        rng, model = self._rng, self._model
        for row in rows.tolist():
            qpos, qvel = model.qpos0 + rng.uniform(-0.1, 0.1, model.nq), 0.1 * rng.standard_normal(model.nv)
            half = rng.uniform(*ANGLES) / 2
            mujoco.mju_mulQuat(qpos[3:7], np.array([np.cos(half), 0, 0, np.sin(half)]), qpos[3:7].copy())
            qpos[:2] = 0.0
            if self._kind == "maze":
                qpos[:2] = _place(rng, 0.8) - ORIGIN
            self._begin(row, qpos, qvel)
        self._speed[rows], self._change[rows] = 1.0, 0
        self.headings[rows] = rng.uniform(*ANGLES, len(rows))
        self._new_goals(rows)

    def _new_goals(self, rows: NDArray[np.int64]) -> None:
        for row in rows.tolist():
            here = umaze.project(self.states[row : row + 1, :2] + ORIGIN)
            goal = _place(self._rng, 0.3)
            while np.abs(umaze.project(goal[None]) - here)[0] < 4:
                goal = _place(self._rng, 0.3)
            self._goals[row] = goal


def _place(rng: np.random.Generator, off: float) -> Floats:
    """A random place in the corridor, so far off its centre line at most."""
    return np.asarray(umaze.along(rng.uniform(0, umaze.LENGTH, 1))[0] + rng.uniform(-off, off, 2))


class PPO(nn.Module):
    """Actor, critic and exploration noise; the actor begins as the given policy."""

    def __init__(self, start: NpzPolicy) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(start.obs_mean))
        self.register_buffer("std", torch.from_numpy(start.obs_std))
        width = [start.observation_dim, *(len(bias) for bias in start.biases[:-1])]
        self.actor, self.critic = _network([*width, start.action_dim]), _network([*width, 1])
        for layer, weight, bias in zip(self.actor[::2], start.weights, start.biases, strict=True):
            layer.weight.data.copy_(torch.from_numpy(weight.T))
            layer.bias.data.copy_(torch.from_numpy(bias))
        self.log_std = nn.Parameter(torch.from_numpy(start.noise_std).clamp(min=START_NOISE).log())

    def inputs(self, seen: NDArray[Any]) -> Tensor:
        standardised: Tensor = (torch.from_numpy(seen.astype(np.float32)) - self.mean) / self.std
        return standardised.clamp(-10, 10)

    def log_density(self, inputs: Tensor, actions: Tensor) -> Tensor:
        """Up to a constant."""
        return (-0.5 * ((actions - self.actor(inputs)) / self.log_std.exp()) ** 2 - self.log_std).sum(1)

    def policy(self) -> NpzPolicy:
        weights = tuple(layer.weight.detach().numpy().T.copy() for layer in self.actor[::2])
        biases = tuple(layer.bias.detach().numpy().copy() for layer in self.actor[::2])
        noise = self.log_std.detach().exp().numpy()
        return NpzPolicy(CLIPPED, weights, biases, self.mean.numpy(), self.std.numpy(), noise)


def _network(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


@dataclass
class Rollout:
    """What one iteration learns from, (steps, rows, ...)."""

    seen: NDArray[np.float32]
    actions: NDArray[np.float32]
    advantages: NDArray[np.float32]
    returns: NDArray[np.float32]
    reward: float


@torch.no_grad()
def roll_out(learner: PPO, drill: Drill, steps: int, rng: np.random.Generator) -> Rollout:
    """Act for so many steps in every row, and look back for advantages."""
    seen, actions, rewards, values, ended, beyond = [], [], [], [], [], []
    noise = learner.log_std.exp().numpy()
    for _ in range(steps):
        sight, turns = drill.seen()
        inputs = learner.inputs(sight)
        values.append(learner.critic(inputs)[:, 0].numpy())
        action = learner.actor(inputs).numpy()
        action = action + noise * rng.standard_normal(action.shape, dtype=np.float32)
        reward, failed, late = drill.act(turn_back(np.clip(action, -1, 1), turns))
        # An episode that only ran out of time is worth what would have come.
        rest = learner.critic(learner.inputs(drill.seen()[0]))[:, 0].numpy()
        beyond.append(np.where(late & ~failed, rest, 0.0))
        seen.append(sight.astype(np.float32))
        actions.append(action)
        rewards.append(reward)
        ended.append(failed | late)
        drill.restart(np.flatnonzero(failed | late))
        drill.command()
    values.append(learner.critic(learner.inputs(drill.seen()[0]))[:, 0].numpy())
    advantages, carried = np.zeros((steps, drill.rows), dtype=np.float32), np.zeros(drill.rows)
    for t in reversed(range(steps)):
        following = np.where(ended[t], beyond[t], values[t + 1])
        surprise = rewards[t] + DISCOUNT * following - values[t]
        carried = surprise + DISCOUNT * TRACE * np.where(ended[t], 0.0, carried)
        advantages[t] = carried
    returns = advantages + np.array(values[:-1])
    return Rollout(np.array(seen), np.array(actions), advantages, returns.astype(np.float32), float(np.mean(rewards)))


def update(learner: PPO, optimiser: torch.optim.Optimizer, rollout: Rollout, critic_only: bool) -> None:
    """Some passes over a rollout; the actor rests once it has moved far enough."""
    inputs = learner.inputs(rollout.seen.reshape(-1, rollout.seen.shape[-1]))
    actions = torch.from_numpy(rollout.actions.reshape(-1, rollout.actions.shape[-1]))
    returns = torch.from_numpy(rollout.returns.reshape(-1))
    advantages = torch.from_numpy(rollout.advantages.reshape(-1))
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
    with torch.no_grad():
        before = learner.log_density(inputs, actions)
    moved = 0.0
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(inputs)).split(MINIBATCH):
            loss = 0.5 * (learner.critic(inputs[rows])[:, 0] - returns[rows]).square().mean()
            if not critic_only and moved < KL_LIMIT:
                ratio = (learner.log_density(inputs[rows], actions[rows]) - before[rows]).exp()
                gain = advantages[rows]
                loss = loss - torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*learner.actor.parameters(), *learner.critic.parameters()], 1.0)
            optimiser.step()
            learner.log_std.data.clamp_(*(math.log(bound) for bound in NOISE_RANGE))
        with torch.no_grad():
            moved = float((before - learner.log_density(inputs, actions)).mean())


def train(folder: Path, phases: Sequence[Phase], rows: int, steps: int, seed: int) -> NpzPolicy:
    """Train through all phases, or go on where the folder says."""
    torch.set_num_threads(1)
    learner = PPO(load_expert("ant"))
    optimiser = torch.optim.Adam(
        [
            {"params": learner.actor.parameters(), "lr": 3e-4},
            {"params": [*learner.critic.parameters(), learner.log_std], "lr": 1e-3},
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    iteration = 0
    if (folder / "save.pt").exists():
        saved = torch.load(folder / "save.pt", weights_only=True)
        learner.load_state_dict(saved["learner"])
        optimiser.load_state_dict(saved["optimiser"])
        iteration = saved["iteration"]
    lengths = [math.ceil(phase.steps / (rows * steps)) for phase in phases]
    for number, phase in enumerate(phases):
        begin, end = sum(lengths[:number]), sum(lengths[: number + 1])
        if iteration >= end:
            continue
        rng = np.random.default_rng([seed, iteration])
        torch.manual_seed(seed + iteration)
        drill = Drill(phase.headings, rows, rng)
        while iteration < end:
            rollout = roll_out(learner, drill, steps, rng)
            update(learner, optimiser, rollout, critic_only=iteration - begin < CRITIC_FIRST)
            iteration += 1
            with whole_file(folder / "save.pt") as scratch:
                state = {"learner": learner.state_dict(), "optimiser": optimiser.state_dict(), "iteration": iteration}
                torch.save(state, scratch)
            print(f"{phase.headings} {iteration}/{sum(lengths)}: reward a step {rollout.reward:.3f}", flush=True)
        drill.close()
    policy = learner.policy()
    policy.save(folder / "heading.npz")
    return policy


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the policy and the save go")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of each phase")
    parser.add_argument("--rows", type=int, default=64, help="ants side by side")
    parser.add_argument("--steps", type=int, default=128, help="of each ant in an iteration")
    given = parser.parse_args(argv)
    phases = [Phase(phase.headings, round(given.share * phase.steps)) for phase in PHASES]
    train(given.folder, phases, given.rows, given.steps, given.seed)


if __name__ == "__main__":
    main()
