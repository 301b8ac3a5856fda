"""Many episodes of one MuJoCo model side by side.

Every row's state is one line of an array; a few threads, each with a MuJoCo data structure of its own, take
rows off a common pile, load, advance and store them. `mj_step` releases the interpreter lock, so the threads
run at the same time. `mujoco.rollout` would need less Python, but it does not give back the constraint
solver's warm start, without which episodes drift away from gymnasium's.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError

Floats = NDArray[np.float64]

_STATE = mujoco.mjtState
# What the next step depends on. Applied forces, mocap bodies and plugins are not used by these models.
_ROW_STATE = int(_STATE.mjSTATE_FULLPHYSICS | _STATE.mjSTATE_WARMSTART | _STATE.mjSTATE_CTRL)


class StateRows:
    """Rows that begin and advance; what a task makes of them (observations, rewards, ends) is its subclass.

    Args:
        model: what is simulated.
        rows: number of episodes side by side.
        frame_skip: physics steps per control step.
        threads: number of threads that step rows; None: the cores this process may use, at most two.
    """

    def __init__(self, model: mujoco.MjModel, rows: int, frame_skip: int, threads: int | None = None) -> None:
        if threads is None:
            threads = min(2, available_cores())
        for name, count in (("rows", rows), ("threads", threads)):
            if count < 1:
                raise UserError(f"{name}: {count} given, expected at least 1")
        self._model, self._frame_skip = model, frame_skip
        self.rows = rows
        self.action_dim = model.nu
        self.action_low, self.action_high = model.actuator_ctrlrange.T.copy()

        # Per row: physics state, control steps so far.
        self._states = np.zeros((rows, mujoco.mj_stateSize(model, _ROW_STATE)))
        self._state_of_row = list(self._states)  # one view each, made once
        self._elapsed = np.zeros(rows, dtype=np.int64)
        # Order within a state: time, positions, velocities, warm start, controls.
        nq, nv = model.nq, model.nv
        self._qpos, self._qvel = slice(1, 1 + nq), slice(1 + nq, 1 + nq + nv)
        self._ctrl = slice(1 + nq + 2 * nv, None)

        self._workers = [mujoco.MjData(model) for _ in range(threads)]
        # The calling thread works too.
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    @property
    def model(self) -> mujoco.MjModel:
        return self._model

    @property
    def step_seconds(self) -> float:
        return float(self._model.opt.timestep * self._frame_skip)

    def pose(self, row: int) -> Floats:
        return self._states[row, self._qpos].copy()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _begin(self, row: int, qpos: Floats, qvel: Floats) -> None:
        """Start an episode in this row from these positions and velocities."""
        data = self._workers[0]
        mujoco.mj_resetData(self._model, data)
        data.qpos[:], data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self._model, data)
        self._store(row, data)
        self._elapsed[row] = 0

    def _advance(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Floats:
        """Let all threads work until every one of `rows` has been advanced by one control step; their states."""
        if actions.shape != (len(rows), self.action_dim):
            raise ValueError(f"actions: shape {actions.shape} given, expected {(len(rows), self.action_dim)}")
        self._states[rows, self._ctrl] = actions
        pile = deque(rows.tolist())
        others = [self._pool.submit(self._work, data, pile) for data in self._workers[1:]] if self._pool else []
        self._work(self._workers[0], pile)
        for other in others:
            other.result()
        self._elapsed[rows] += 1
        return self._states[rows]

    def _work(self, data: mujoco.MjData, pile: deque[int]) -> None:
        """Advance rows until the pile is empty. Taking off a deque is atomic, so threads need no lock."""
        while True:
            try:
                row = pile.pop()
            except IndexError:
                return
            mujoco.mj_setState(self._model, data, self._state_of_row[row], _ROW_STATE)
            mujoco.mj_step(self._model, data, self._frame_skip)
            self._store(row, data)

    def _store(self, row: int, data: mujoco.MjData) -> None:
        mujoco.mj_getState(self._model, data, self._state_of_row[row], _ROW_STATE)


def available_cores() -> int:
    """Cores this process may use; not every system can tell them from the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
