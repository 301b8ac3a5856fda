"""Antmaze: the ant in a U-maze, from one end of the corridor to the other.

States are D4RL's 29 numbers in D4RL's frame: x, y, height, orientation, joints, then their velocities. The stock body
is that of gymnasium-robotics' AntMaze_UMaze-v4, D4RL's is weaker and slower; a policy has to be scored in the body that
its data were recorded in.
"""

from __future__ import annotations

from typing import Any, Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.bodies import STOCK, ant_in_walls
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.plan import Plan
from tailo_pl.envs.reference_scores import reference
from tailo_pl.envs.simulator import Step
from tailo_pl.envs.state_rows import Floats, StateRows
from tailo_pl.envs.umaze import CELL, GOAL, HORIZON, REACHED, START, WALL_HEIGHT, Goals, free_cells, wall_cells

RESET_NOISE = 0.1
STATE_DIM = 29
FRAME_SKIP = 5
# gymnasium-robotics puts the origin into the middle of the maze, D4RL under the start. The simulation uses the former:
# another origin is another rounding, and in this system the last digit decides everything some hundred steps later.
ORIGIN = np.array([4.0, 4.0])
_ERRAND = 3.0  # least distance from the start of an errand to its goal


class AntMazeRows(StateRows):
    """A `Simulator` of antmaze.

    An episode ends within `reached` of its goal, with reward 1; a fall does not end it.

    Args:
        rows: number of episodes side by side.
        body: `stock` or `d4rl`.
        goals: `fixed`: from (0, 0) to (0, 8); `d4rl`: likewise, but each episode draws its goal around (0.75, 8.75) as
            D4RL does; `errands`: from a random cell, facing anywhere, to another one.
        show_goal: append the goal's x and y to the state.
        reached: how near the goal counts.
        horizon: steps after which time is up.
        threads: see `StateRows`.
    """

    def __init__(
        self,
        rows: int,
        *,
        body: str = STOCK,
        goals: Goals = "fixed",
        show_goal: bool = False,
        reached: float = REACHED,
        horizon: int = HORIZON,
        threads: int | None = None,
    ) -> None:
        super().__init__(maze_model(body), rows, FRAME_SKIP, threads)
        self.observation_dim = STATE_DIM + 2 * show_goal
        self.horizon = horizon
        self._goals, self._show_goal, self._reached = goals, show_goal, reached
        self._goal = np.tile(GOAL, (rows, 1))

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> Floats:
        rows = np.asarray(rows)
        for row, seed in zip(rows.tolist(), np.asarray(seeds).tolist(), strict=True):
            rng = np.random.default_rng(seed)
            qpos = self._model.qpos0 + rng.uniform(-RESET_NOISE, RESET_NOISE, self._model.nq)
            qvel = RESET_NOISE * rng.standard_normal(self._model.nv)
            start, yaw, self._goal[row] = _errand(rng) if self._goals == "errands" else (START, 0.0, self._draw(rng))
            qpos[:2] += start - ORIGIN - self._model.qpos0[:2]
            mujoco.mju_mulQuat(qpos[3:7], np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]), qpos[3:7].copy())
            self._begin(row, qpos, qvel)
        self._model.site_pos[0, :2] = self._goal[rows[-1:]] - ORIGIN  # drawn, and of no effect on anything
        return self._observations(rows)

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        rows = np.asarray(rows)
        self._advance(rows, np.asarray(actions))
        observations = self._observations(rows)
        success = np.linalg.norm(observations[:, :2] - self._goal[rows], axis=1) <= self._reached
        return Step(
            observations=observations,
            rewards=success.astype(np.float64),
            terminated=success,
            truncated=self._elapsed[rows] >= self.horizon,
            success=success,
        )

    def _draw(self, rng: np.random.Generator) -> Floats:
        if self._goals == "fixed":
            return GOAL
        return np.asarray(GOAL + rng.uniform(0.0, CELL / 4, 2) + rng.uniform(0.0, CELL / 8, 2))

    def _observations(self, rows: NDArray[np.int64]) -> Floats:
        states = self._states[rows]
        position = states[:, self._qpos]
        shown = [self._goal[rows]] if self._show_goal else []
        return np.concatenate([position[:, :2] + ORIGIN, position[:, 2:], states[:, self._qvel], *shown], axis=1)


def _errand(rng: np.random.Generator) -> tuple[Floats, float, Floats]:
    """A start, the way the ant faces there, and a goal some way off."""
    cells = free_cells()
    start = cells[rng.integers(len(cells))] + rng.uniform(-0.5, 0.5, 2)
    far = cells[np.linalg.norm(cells - start, axis=1) > _ERRAND]
    goal = far[rng.integers(len(far))] + rng.uniform(-0.5, 0.5, 2)
    return start, float(rng.uniform(-np.pi, np.pi)), goal


def maze_model(body: str = STOCK) -> mujoco.MjModel:
    """The ant in the U-maze, whose middle is the origin."""
    walls = np.column_stack([wall_cells() - ORIGIN, np.full(len(wall_cells()), WALL_HEIGHT / 2)])
    return ant_in_walls(body, walls, np.array([CELL / 2, CELL / 2, WALL_HEIGHT / 2]), GOAL - ORIGIN)


class AntMaze(Environment):
    """The antmaze task on the U-maze; its score is 100 times the share of episodes that reach the goal.

    Args:
        body: `stock` (gymnasium's ant), or `d4rl` (the ant that D4RL's files were recorded with).
        goal: `fixed`, always (0, 8), or `d4rl`, drawn for each episode as D4RL does.
    """

    observation_dim = STATE_DIM
    horizon = HORIZON
    knows_success = True

    def __init__(self, body: str = STOCK, goal: Literal["fixed", "d4rl"] = "fixed") -> None:
        self.body = self._body = body
        self._goal = goal
        self.knows_endings = goal == "fixed"  # a goal that is drawn is not in the state
        spaces = AntMazeRows(1, body=body, threads=1)
        self.action_low = tuple(spaces.action_low.tolist())
        self.action_high = tuple(spaces.action_high.tolist())
        self.reference = reference("antmaze-umaze-v2")
        middle = GOAL if goal == "fixed" else GOAL + CELL * 3 / 16
        self.plan = Plan.of_cells(START, middle, REACHED, wall_cells(), CELL)

    def simulator(self, rows: int) -> AntMazeRows:
        return AntMazeRows(rows, body=self._body, goals=self._goal)

    def ended(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.linalg.norm(states[:, :2] - GOAL, axis=1) <= REACHED)
