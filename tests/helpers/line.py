"""A point on a line: its steps, and the rule that ends its episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs.environment import Environment


class Line(Environment):
    """States beyond 2 end an episode."""

    knows_endings = True

    def simulator(self, rows: int) -> Any:
        raise NotImplementedError

    def ended(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(states[:, 0] > 2)


def line_steps() -> Trajectories:
    """s' = s + a/2, r = s; the last step of every second trajectory ended it, and its next state is not known."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (600, 1)).astype(np.float32)
    states = np.empty((600, 1), dtype=np.float32)
    for row in range(600):
        states[row] = rng.normal() if row % 20 == 0 else states[row - 1] + actions[row - 1] / 2
    last = np.arange(600) % 40 == 39
    timeouts = np.arange(600) % 40 == 19
    recording = Recording(
        states, np.arange(0, 600, 20), actions=actions, rewards=states[:, 0].copy(), terminals=last, timeouts=timeouts
    )
    return Trajectories.of(recording)
