"""Hopper, halfcheetah, walker2d and ant: many episodes side by side, equal to gymnasium's `-v4` environments.

Every row's state is one line of an array; a few threads, each with a MuJoCo data structure of its own, take
rows off a common pile, load, advance and store them. `mj_step` releases the interpreter lock, so the threads
run at the same time. `mujoco.rollout` would need less Python, but it does not give back the constraint
solver's warm start, without which episodes drift away from gymnasium's.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.bodies import STOCK, load_model
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.reference_scores import reference
from tailo_pl.envs.simulator import Step
from tailo_pl.errors import UserError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HORIZON = 1000
# D4RL's ant has 84 more numbers for contact forces, all of them recorded as zero.
ANT_CONTACT_FORCES = 84

_STATE = mujoco.mjtState
# What the next step depends on. Applied forces, mocap bodies and plugins are not used by these models.
_ROW_STATE = int(_STATE.mjSTATE_FULLPHYSICS | _STATE.mjSTATE_WARMSTART | _STATE.mjSTATE_CTRL)


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


class LocomotionRows:
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
        if threads is None:
            threads = min(2, available_cores())
        for name, count in (("rows", rows), ("threads", threads)):
            if count < 1:
                raise UserError(f"{name}: {count} given, expected at least 1")
        self._model = load_model(task, body)
        self._task = _TASKS[task]

        nq, nv, nu = self._model.nq, self._model.nv, self._model.nu
        self._padding = ANT_CONTACT_FORCES if pad_contact_forces else 0
        self.observation_dim = nq - self._task.unseen_positions + nv + self._padding
        self.action_dim = nu
        self.action_low, self.action_high = self._model.actuator_ctrlrange.T.copy()
        self.horizon = HORIZON
        self.rows = rows

        # Per row: physics state, position along the track as the reward sees it, control steps so far.
        self._states = np.zeros((rows, mujoco.mj_stateSize(self._model, _ROW_STATE)))
        self._state_of_row = list(self._states)  # one view each, made once
        self._progress = np.zeros(rows)
        self._elapsed = np.zeros(rows, dtype=np.int64)
        # Order within a state: time, positions, velocities, warm start, controls.
        self._qpos, self._qvel = slice(1, 1 + nq), slice(1 + nq, 1 + nq + nv)
        self._ctrl = slice(1 + nq + 2 * nv, None)

        self._workers = [mujoco.MjData(self._model) for _ in range(threads)]
        # The calling thread works too.
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> Floats:
        """Start a new episode in each of `rows`, from the state that gymnasium's `reset(seed=...)` would draw."""
        rows = np.asarray(rows)
        task, model, data = self._task, self._model, self._workers[0]
        noise = task.reset_noise
        for row, seed in zip(rows.tolist(), np.asarray(seeds).tolist(), strict=True):
            rng = np.random.default_rng(seed)
            mujoco.mj_resetData(model, data)
            data.qpos[:] = model.qpos0 + rng.uniform(-noise, noise, model.nq)
            if task.gaussian_velocity:
                data.qvel[:] = noise * rng.standard_normal(model.nv)
            else:
                data.qvel[:] = rng.uniform(-noise, noise, model.nv)
            mujoco.mj_forward(model, data)
            self._store(row, data)
        self._elapsed[rows] = 0
        return self._observations(self._states[rows])

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        """Advance each of `rows` by one control step; no row may be named twice.

        The control cost is computed in the precision of `actions`, as in gymnasium.
        """
        rows, actions = np.asarray(rows), np.asarray(actions)
        if actions.shape != (len(rows), self.action_dim):
            raise ValueError(f"actions: shape {actions.shape} given, expected {(len(rows), self.action_dim)}")
        task = self._task
        before = self._progress[rows]
        self._states[rows, self._ctrl] = actions
        self._advance(rows)
        self._elapsed[rows] += 1

        states = self._states[rows]
        velocity = (self._progress[rows] - before) / (self._model.opt.timestep * task.frame_skip)
        control_cost = task.control_cost * np.square(actions).sum(axis=1)
        return Step(
            observations=self._observations(states),
            rewards=velocity + task.healthy_reward - control_cost,
            terminated=~task.healthy(states[:, self._qpos], states[:, self._qvel]),
            truncated=self._elapsed[rows] >= self.horizon,
            success=np.zeros(len(rows), dtype=np.bool_),  # there is no end to walking
        )

    @property
    def model(self) -> mujoco.MjModel:
        return self._model

    @property
    def step_seconds(self) -> float:
        return float(self._model.opt.timestep * self._task.frame_skip)

    def pose(self, row: int) -> Floats:
        return self._states[row, self._qpos].copy()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, rows: NDArray[np.int64]) -> None:
        """Let all threads work until every one of `rows` has been advanced by one control step."""
        pile = deque(rows.tolist())
        others = [self._pool.submit(self._work, data, pile) for data in self._workers[1:]] if self._pool else []
        self._work(self._workers[0], pile)
        for other in others:
            other.result()

    def _work(self, data: mujoco.MjData, pile: deque[int]) -> None:
        """Advance rows until the pile is empty. Taking off a deque is atomic, so threads need no lock."""
        while True:
            try:
                row = pile.pop()
            except IndexError:
                return
            mujoco.mj_setState(self._model, data, self._state_of_row[row], _ROW_STATE)
            mujoco.mj_step(self._model, data, self._task.frame_skip)
            self._store(row, data)

    def _store(self, row: int, data: mujoco.MjData) -> None:
        mujoco.mj_getState(self._model, data, self._state_of_row[row], _ROW_STATE)
        self._progress[row] = data.xpos[1, 0] if self._task.progress_of_body else data.qpos[0]

    def _observations(self, states: Floats) -> Floats:
        limit = self._task.velocity_limit
        position = states[:, self._qpos][:, self._task.unseen_positions :]
        velocity = np.clip(states[:, self._qvel], -limit, limit)
        return np.concatenate([position, velocity, np.zeros((len(states), self._padding))], axis=1)


def available_cores() -> int:
    """Cores this process may use; not every system can tell them from the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Locomotion(Environment):
    """One of the four locomotion tasks, scored with D4RL's reference returns.

    Args:
        task: hopper, halfcheetah, walker2d or ant.
        body: `stock`, or one of the changed bodies of `tailo_pl.envs.bodies`.
        pad_contact_forces: ant only: 111 numbers as D4RL recorded it instead of 27.
    """

    horizon = HORIZON

    def __init__(self, task: str, body: str = STOCK, pad_contact_forces: bool = False) -> None:
        self._task, self._body, self._padded = task, body, pad_contact_forces
        spaces = LocomotionRows(task, 1, body=body, pad_contact_forces=pad_contact_forces, threads=1)
        self.observation_dim = spaces.observation_dim
        self.action_low = tuple(spaces.action_low.tolist())
        self.action_high = tuple(spaces.action_high.tolist())
        self.reference = reference(f"{task}-expert-v2")

    def simulator(self, rows: int) -> LocomotionRows:
        return LocomotionRows(self._task, rows, body=self._body, pad_contact_forces=self._padded)
