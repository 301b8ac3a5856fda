"""SEABO's rewards: how near a step of TA is to its nearest neighbour in TS (Lyu et al. 2024)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.cache import cached_array
from tailo_pl.data.frames import require_whole_states
from tailo_pl.data.progress import listener
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import Refusal, require_range
from tailo_pl.inputs.stage_input import Origin, StageInput

if TYPE_CHECKING:  # imported where it is used: to check a configuration takes no torch
    from torch import Tensor

GROUP_NUMBERS = 1 << 22  # distances worked on together


@dataclass(frozen=True)
class NeighbourRewards(StageInput):
    """A reward for every step of TA: r = exp(-scale * d / dim(a)) + offset, d the distance to the nearest of TS.

    Distances are Euclidean, between raw pairs (s, s'). A step without a recorded next state stands as (s, s).

    Args:
        scale: how fast rewards fall with the distance.
        offset: added to every reward.
        pairs: compare pairs (s, s'); otherwise states alone.
    """

    scale: float = 0.5
    offset: float = 0.0
    pairs: bool = True

    def __post_init__(self) -> None:
        require_range("neighbours.scale", self.scale, 0)
        require_range("neighbours.offset", self.offset)

    def check(self, task: Task, setting: Setting) -> None:
        from tailo_pl.data.transitions import consecutive

        require_whole_states(task.told)
        if self.pairs and not (setting.ordered and len(consecutive(task.ts))):
            raise Refusal("TS: no two consecutive states found, expected some (or inputs.rewards.pairs=false)")

    def make(self, origin: Origin) -> NDArray[np.float32]:
        # The same for every seed.
        identity = {"task": origin.fingerprint, **asdict(self), "maker": self.version}
        return cached_array("neighbours", identity, lambda: neighbour_rewards(origin.task, self))


def neighbour_rewards(task: Task, neighbours: NeighbourRewards) -> NDArray[np.float32]:
    """The reward of every step of TA."""
    from tailo_pl.data.transitions import has_next

    assert task.ta.recording.actions is not None
    rate = neighbours.scale / task.ta.recording.actions.shape[1]
    known = _expert_points(task.ts, neighbours.pairs)
    follows = has_next(task.ta) if neighbours.pairs else None
    rewards = np.empty(task.ta.steps, dtype=np.float32)
    tell = listener.get()
    group = max(1, GROUP_NUMBERS // len(known))
    for begin in range(0, task.ta.steps, group):
        positions = np.arange(begin, min(begin + group, task.ta.steps))
        points = _points(task.ta, positions, follows)
        distances = nearest_distances(points, known)
        rewards[positions] = np.exp(-rate * distances) + neighbours.offset
        tell("neighbour rewards", int(positions[-1]) + 1, task.ta.steps)
    return rewards


def nearest_distances(points: Tensor, known: Tensor) -> NDArray[np.float64]:
    """Distance of each point to the nearest of the known ones, both (count, dim) in float64.

    One product of matrices finds the nearest: in the twenty and more dimensions of such pairs a tree looks at nearly
    all known points anyway, one by one. The distance itself is then taken from the difference, which is 0 for a
    point that is among the known ones.
    """
    centre = known.mean(0)
    centred, others = points - centre, known - centre
    nearest = (others.square().sum(1) - 2 * centred @ others.T).argmin(1)
    return np.asarray((centred - others[nearest]).norm(dim=1).numpy())


def _expert_points(ts: Trajectories, pairs: bool) -> Tensor:
    import torch

    from tailo_pl.data.transitions import consecutive

    states = torch.from_numpy(np.asarray(ts.observations, dtype=np.float64))
    if not pairs:
        return states
    firsts = torch.from_numpy(consecutive(ts))
    return torch.cat([states[firsts], states[firsts + 1]], 1)


def _points(ta: Trajectories, positions: NDArray[np.int64], follows: NDArray[np.bool_] | None) -> Tensor:
    """What is compared of these steps: their states, or pairs where `follows` says which have a known next state."""
    import torch

    rows, recording = ta.rows.at(positions), ta.recording
    states = np.asarray(recording.observations[rows], dtype=np.float64)
    if follows is None:
        return torch.from_numpy(states)
    nexts, known = states.copy(), follows[positions]
    if recording.next_observations is None:
        nexts[known] = recording.observations[rows[known] + 1]
    else:
        nexts[known] = recording.next_observations[rows[known]]
    return torch.from_numpy(np.hstack([states, nexts]))
