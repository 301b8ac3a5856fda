"""What happens to the arm besides what it is told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.kitchen_tasks import ARM, ROBOT


@dataclass(frozen=True)
class Disturbances:
    """What happens to the arm besides what it is told; the demonstrator sees it in the next state and corrects it.

    All are in units of an action, and act on the actuators: what is recorded is what the demonstrator told the arm.

    Args:
        tremble: deviation of a noise that is there at every step, half of it lasting.
        push: how far each joint may be driven off at each step of a push.
        push_every: steps between pushes, on average.
        push_steps: how long one lasts, from and to.
        slip_every: steps between slips of the fingers, on average: they do the opposite of what they are told.
        slip_steps: how long one lasts, from and to.
    """

    tremble: float = 0.1
    push: float = 0.8
    push_every: float = 50.0
    push_steps: tuple[int, int] = (3, 7)
    slip_every: float = 80.0
    slip_steps: tuple[int, int] = (3, 6)


CALM = Disturbances(tremble=0.05, push_every=np.inf, slip_every=np.inf)
"""An expert that is left alone."""


class Trouble:
    """Disturbances of one episode, step by step."""

    def __init__(self, kinds: Disturbances, rng: np.random.Generator) -> None:
        self._kinds, self._rng = kinds, rng
        self._lasting = np.zeros(ARM)
        self._push, self._push_left = np.zeros(ARM), 0
        self._slip_left = 0

    def disturb(self, action: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the actuators get in place of an action."""
        kinds, rng = self._kinds, self._rng
        noise, begins = rng.normal(size=(2, ARM)), rng.random(2)
        self._lasting = 0.7 * self._lasting + 0.714 * noise[0]
        if begins[0] * kinds.push_every < 1:
            self._push = rng.uniform(0.2, 1.0) * kinds.push * rng.uniform(-1, 1, ARM)
            self._push_left = int(rng.integers(*kinds.push_steps, endpoint=True))
        if begins[1] * kinds.slip_every < 1:
            self._slip_left = int(rng.integers(*kinds.slip_steps, endpoint=True))
        disturbed = action.copy()
        disturbed[:ARM] += kinds.tremble * (noise[1] + self._lasting) + self._push * (self._push_left > 0)
        if self._slip_left > 0:
            disturbed[ARM:ROBOT] *= -1
        self._push_left -= 1
        self._slip_left -= 1
        return np.clip(disturbed, -1.0, 1.0)
