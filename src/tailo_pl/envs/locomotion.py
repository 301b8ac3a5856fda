"""Hopper, halfcheetah, walker2d and ant: many episodes side by side, equal to gymnasium's `-v4` environments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.bodies import STOCK, load_model
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.reference_scores import reference
from tailo_pl.envs.simulator import Step
from tailo_pl.envs.state_rows import Floats, StateRows
from tailo_pl.errors import UserError

Bools = NDArray[np.bool_]

HORIZON = 1000
# D4RL's ant has 84 more numbers for contact forces, all of them recorded as zero.
ANT_CONTACT_FORCES = 84


def _always_healthy(qpos: Floats, qvel: Floats) -> Bools:
    return np.ones(len(qpos), dtype=np.bool_)


def _hopper_healthy(qpos: Floats, qvel: Floats) -> Bools:
    in_range = (np.abs(qpos[:, 2:]) < 100).all(axis=1) & (np.abs(qvel) < 100).all(axis=1)
    return in_range & (qpos[:, 1] > 0.7) & (qpos[:, 1] < np.inf) & (np.abs(qpos[:, 2]) < 0.2)


def _walker2d_healthy(qpos: Floats, qvel: Floats) -> Bools:
    return (qpos[:, 1] > 0.8) & (qpos[:, 1] < 2.0) & (np.abs(qpos[:, 2]) < 1.0)


def _ant_healthy(qpos: Floats, qvel: Floats) -> Bools:
    finite = np.isfinite(qpos).all(axis=1) & np.isfinite(qvel).all(axis=1)
    return finite & (qpos[:, 2] >= 0.2) & (qpos[:, 2] <= 1.0)


@dataclass(frozen=True)
class _Rules:
    """What gymnasium's environment of a task adds to its model.

    Attributes:
        frame_skip: physics steps per control step.
        control_cost: weight of the squared action in the reward.
        healthy_reward: reward of every step for not having fallen.
        healthy: which rows have not fallen; the others end.
        reset_noise: extent of the noise on the initial state.
        gaussian_velocity: whether initial velocities are normal rather than uniform.
        unseen_positions: how many leading positions the observation leaves out.
        velocity_limit: observed velocities are clipped to this.
        progress_of_body: measure progress by the torso's computed position instead of by its coordinate. The two
            differ, because MuJoCo computes positions at the beginning of a physics step.
    """

    frame_skip: int
    control_cost: float
    healthy_reward: float
    healthy: Callable[[Floats, Floats], Bools]
    reset_noise: float
    gaussian_velocity: bool = False
    unseen_positions: int = 1
    velocity_limit: float = np.inf
    progress_of_body: bool = False


_TASKS = {
    "ant": _Rules(5, 0.5, 1.0, _ant_healthy, 0.1, gaussian_velocity=True, unseen_positions=2, progress_of_body=True),
    "halfcheetah": _Rules(5, 0.1, 0.0, _always_healthy, 0.1, gaussian_velocity=True),
    "hopper": _Rules(4, 1e-3, 1.0, _hopper_healthy, 5e-3, velocity_limit=10.0),
    "walker2d": _Rules(4, 1e-3, 1.0, _walker2d_healthy, 5e-3, velocity_limit=10.0),
}


class LocomotionRows(StateRows):
    """A `Simulator` of one locomotion task.

    A row that has ended may be stepped on: like gymnasium's environment, it then just goes on.

    Args:
        task: hopper, halfcheetah, walker2d or ant.
        rows: number of episodes side by side.
        body: `stock`, or one of the changed bodies of `tailo_pl.envs.bodies`.
        pad_contact_forces: ant only: append the 84 zeros with which D4RL recorded it (111 numbers instead of 27).
        threads: number of threads that step rows; default: the cores this process may use, at most two.
    """

    def __init__(
        self,
        task: str,
        rows: int,
        *,
        body: str = STOCK,
        pad_contact_forces: bool = False,
        threads: int | None = None,
    ) -> None:
        if pad_contact_forces and task != "ant":
            raise UserError(f"pad_contact_forces: {task} has no contact forces, only ant has")
        if task not in _TASKS:
            raise UserError(f"task: {task!r} given, expected one of {', '.join(sorted(_TASKS))}")
        self._task = _TASKS[task]
        super().__init__(load_model(task, body), rows, self._task.frame_skip, threads)
        self._progress = np.zeros(rows)  # position along the track as the reward sees it
        self._padding = ANT_CONTACT_FORCES if pad_contact_forces else 0
        self.positions = self._model.nq - self._task.unseen_positions  # in an observation, before the velocities
        self.velocities = self._model.nv
        self.observation_dim = self.positions + self.velocities + self._padding
        self.horizon = HORIZON

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> Floats:
        """Start a new episode in each of `rows`, from the state that gymnasium's `reset(seed=...)` would draw."""
        rows = np.asarray(rows)
        task, model = self._task, self._model
        noise = task.reset_noise
        for row, seed in zip(rows.tolist(), np.asarray(seeds).tolist(), strict=True):
            rng = np.random.default_rng(seed)
            qpos = model.qpos0 + rng.uniform(-noise, noise, model.nq)
            if task.gaussian_velocity:
                qvel = noise * rng.standard_normal(model.nv)
            else:
                qvel = rng.uniform(-noise, noise, model.nv)
            self._begin(row, qpos, qvel)
        return self._observations(self._states[rows])

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        """Advance each of `rows` by one control step; no row may be named twice.

        The control cost is computed in the precision of `actions`, as in gymnasium.
        """
        rows, actions = np.asarray(rows), np.asarray(actions)
        task = self._task
        before = self._progress[rows]
        states = self._advance(rows, actions)
        velocity = (self._progress[rows] - before) / self.step_seconds
        control_cost = task.control_cost * np.square(actions).sum(axis=1)
        return Step(
            observations=self._observations(states),
            rewards=velocity + task.healthy_reward - control_cost,
            terminated=~task.healthy(states[:, self._qpos], states[:, self._qvel]),
            truncated=self._elapsed[rows] >= self.horizon,
            success=np.zeros(len(rows), dtype=np.bool_),  # there is no end to walking
        )

    def _store(self, row: int, data: mujoco.MjData) -> None:
        super()._store(row, data)
        self._progress[row] = data.xpos[1, 0] if self._task.progress_of_body else data.qpos[0]

    def _observations(self, states: Floats) -> Floats:
        limit = self._task.velocity_limit
        position = states[:, self._qpos][:, self._task.unseen_positions :]
        velocity = np.clip(states[:, self._qvel], -limit, limit)
        return np.concatenate([position, velocity, np.zeros((len(states), self._padding))], axis=1)


class Locomotion(Environment):
    """One of the four locomotion tasks, scored with D4RL's reference returns.

    Args:
        task: hopper, halfcheetah, walker2d or ant.
        body: `stock`, or one of the changed bodies of `tailo_pl.envs.bodies`.
        pad_contact_forces: ant only: 111 numbers as D4RL recorded it instead of 27.
    """

    horizon = HORIZON
    knows_endings = True

    def __init__(self, task: str, body: str = STOCK, pad_contact_forces: bool = False) -> None:
        self._task, self._body, self._padded = task, body, pad_contact_forces
        spaces = LocomotionRows(task, 1, body=body, pad_contact_forces=pad_contact_forces, threads=1)
        self.observation_dim = spaces.observation_dim
        self.action_low = tuple(spaces.action_low.tolist())
        self.action_high = tuple(spaces.action_high.tolist())
        self._positions, self._velocities = spaces.positions, spaces.velocities
        self.reference = reference(f"{task}-expert-v2")

    def simulator(self, rows: int) -> LocomotionRows:
        return LocomotionRows(self._task, rows, body=self._body, pad_contact_forces=self._padded)

    def ended(self, states: Floats) -> Bools:
        rules = _TASKS[self._task]
        unseen = np.zeros((len(states), rules.unseen_positions), dtype=states.dtype)  # no rule looks at them
        qpos = np.concatenate([unseen, states[:, : self._positions]], axis=1)
        return ~rules.healthy(qpos, states[:, self._positions : self._positions + self._velocities])
