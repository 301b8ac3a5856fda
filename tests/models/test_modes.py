"""Logs that act in two ways in the same place are told from noise and from controllers that switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tailo_pl.data.likeness import Sample
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.models.modes import two_ways

LOGS, STEPS = 40, 50
Numbers = NDArray[Any]
ACTIONS: dict[str, Callable[[Numbers, Numbers, Numbers], Numbers]] = {  # of states, each log's way, and noise
    "the state tells": lambda states, way, noise: np.tanh(states[..., :2]),
    "noise around it": lambda states, way, noise: np.tanh(states[..., :2]) + 0.3 * noise,
    "nothing but noise": lambda states, way, noise: noise,
    "a switch": lambda states, way, noise: np.where(states[..., :1] > 0, 1.0, -1.0) + 0.05 * noise,
    "two ways": lambda states, way, noise: way + 0.2 * noise,
    "two ways beside the state": lambda states, way, noise: np.tanh(states[..., :2]) + way + 0.1 * noise,
}


def logs_of(kind: str, trajectories_of: Callable[..., Trajectories], count: int = LOGS) -> Trajectories:
    rng = np.random.default_rng(0)
    states = rng.normal(0, 0.3, (count, 1, 3)) + rng.normal(0, 0.1, (count, STEPS, 3)).cumsum(1)
    way, noise = rng.choice([-1.0, 1.0], (count, 1, 1)), rng.normal(size=(count, STEPS, 2))
    actions = ACTIONS[kind](states, way, noise)
    return trajectories_of(states.reshape(-1, 3), [STEPS] * count, actions=actions.reshape(-1, 2))


@pytest.mark.parametrize("kind", ACTIONS)
def test_two_ways_are_told_from_all_else(kind: str, trajectories_of: Callable[..., Trajectories]) -> None:
    ta = logs_of(kind, trajectories_of)
    share = two_ways(ta, Sample.of(ta))
    assert share is not None and (share > 0.5 if kind.startswith("two ways") else share < 0.1)


def test_few_logs_tell_nothing(trajectories_of: Callable[..., Trajectories]) -> None:
    ta = logs_of("two ways", trajectories_of, 5)
    assert two_ways(ta, Sample.of(ta)) is None


@pytest.mark.filterwarnings("error")
def test_what_never_changes_is_no_trouble(trajectories_of: Callable[..., Trajectories]) -> None:
    varying, constant = np.random.default_rng(0).normal(size=(600, 3)), np.ones((600, 3))
    still = trajectories_of(varying, [30] * 20, actions=constant)
    assert two_ways(still, Sample.of(still)) == 0
    in_place = trajectories_of(constant, [30] * 20, actions=varying)
    assert two_ways(in_place, Sample.of(in_place)) == pytest.approx(0, abs=0.1)
