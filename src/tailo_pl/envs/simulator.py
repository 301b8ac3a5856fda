"""What a simulator offers: many episodes side by side, each a pure function of its seed and its actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # what only reads configurations and data starts without it
    import mujoco


class Step(NamedTuple):
    """What one control step gave, one entry per row that was stepped.

    Attributes:
        observations: the states after it.
        rewards: of this step.
        terminated: whether the task ended the episode.
        truncated: whether time ended it.
        success: whether the step accomplished the task; an episode succeeds with any such step. False throughout
            where the task knows no success (`Environment.knows_success`).
    """

    observations: NDArray[np.float64]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    success: NDArray[np.bool_]


class Simulator(Protocol):
    """A fixed number of episodes ("rows"), stepped in any subset.

    Rows are independent: which others are stepped along with a row cannot change what it returns. So data
    making restarts finished rows one by one, and an evaluation simply stops stepping them.
    """

    observation_dim: int
    action_dim: int
    action_low: NDArray[np.float64]
    action_high: NDArray[np.float64]
    horizon: int
    rows: int

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Start a new episode in each of `rows`, its initial state drawn from its own seed; return observations."""
        ...

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        """Advance each of `rows` by one control step. Truncated means that time is up."""
        ...

    def close(self) -> None:
        """Free threads and models."""
        ...


@runtime_checkable
class Drawn(Simulator, Protocol):
    """A simulator whose rows can be drawn."""

    @property
    def model(self) -> mujoco.MjModel:
        """What is simulated, as it stands since the last reset."""
        ...

    @property
    def step_seconds(self) -> float:
        """Simulated time of a control step."""
        ...

    def pose(self, row: int) -> NDArray[np.float64]:
        """Positions of all joints of a row, now."""
        ...
