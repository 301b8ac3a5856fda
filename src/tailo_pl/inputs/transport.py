"""OTR's rewards: how cheaply a trajectory's states can be moved onto the expert's (entropic optimal transport)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.cache import cached_array
from tailo_pl.data.frames import require_whole_states
from tailo_pl.data.progress import listener
from tailo_pl.data.rows import Index
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import require_range
from tailo_pl.inputs.stage_input import Origin, StageInput

MASS = 1 / 1000  # of every step of TA, whatever its trajectory's length
GROUP_NUMBERS = 1 << 17  # entries of the kernels worked on together: what a core's cache holds


@dataclass(frozen=True)
class TransportRewards(StageInput):
    """A reward for every step of TA from optimal transport between its trajectory and the expert's.

    Args:
        epsilon: strength of the entropy term. The arithmetic is safe from 0.01 up, see `transport_costs`.
        iterations: of Sinkhorn's algorithm.
        scale: largest reward of a step before rescaling.
        temperature: how fast rewards fall with the cost of a step; it is divided by the numbers in a state.
        spread: difference between the largest and the smallest return after rescaling.
        offset: added to every reward then.
    """

    epsilon: float = 0.01
    iterations: int = 100
    scale: float = 5.0
    temperature: float = 5000.0
    spread: float = 1000.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        require_range("transport.epsilon", self.epsilon, 0.01, closed="[)")
        require_range("transport.iterations", self.iterations, 1, closed="[)")
        for name in ("scale", "temperature", "spread"):
            require_range(f"transport.{name}", getattr(self, name), 0)
        require_range("transport.offset", self.offset)

    def check(self, task: Task, setting: Setting) -> None:
        require_whole_states(task.told)

    def make(self, origin: Origin) -> NDArray[np.float32]:
        # Minutes on a large TA, and the same for every seed.
        ordered = origin.setting.ordered
        identity = {"task": origin.fingerprint, **asdict(self), "ordered": ordered, "maker": self.version}
        return cached_array("transport", identity, lambda: transport_rewards(origin.task, self, ordered=ordered))


def transport_rewards(task: Task, transport: TransportRewards, *, ordered: bool) -> NDArray[np.float32]:
    """A reward for every step of TA: r_i = scale * exp(-temperature/dim * c_i), times spread/(largest - least return).

    Then the offset is added.

    Args:
        task: TS and TA.
        transport: the constants.
        ordered: whether TS holds trajectories, each an expert of its own; otherwise all its states are one expert.
            Of several experts a trajectory is rewarded by the one that gives it the highest return.
    """
    ta, ts = task.ta, task.ts
    states = np.asarray(ts.observations, dtype=np.float64)
    experts = np.split(states, ts.offsets[1:-1]) if ordered else [states]
    rate = transport.temperature / states.shape[1]
    rewards = np.zeros(ta.steps, dtype=np.float32)
    tell, done = listener.get(), 0
    for numbers, padded, lengths in groups_of_like_length(ta, max(len(expert) for expert in experts)):
        steps = np.arange(padded.shape[1])
        known = steps < lengths[:, None]
        best: NDArray[np.float64] | None = None
        for expert in experts:
            costs = transport_costs(padded, lengths, expert, transport.epsilon, transport.iterations)
            found = transport.scale * np.exp(-rate * costs) * known
            best = found if best is None else np.where((found.sum(1) > best.sum(1))[:, None], found, best)
        assert best is not None
        rewards[(ta.offsets[numbers][:, None] + steps)[known]] = best[known]
        done += int(lengths.sum())
        tell("transport rewards", done, ta.steps)
    returns = np.add.reduceat(rewards, ta.offsets[:-1], dtype=np.float64)
    difference = returns.max() - returns.min()
    factor = np.float32(transport.spread / difference if difference > 0 else 1.0)
    return rewards * factor + np.float32(transport.offset)


def groups_of_like_length(ta: Trajectories, width: int) -> Iterator[tuple[Index, NDArray[np.float64], Index]]:
    """Trajectories of similar length side by side, few enough for the cache.

    Args:
        ta: the trajectories.
        width: entries of the kernel per step.

    Yields:
        Numbers of the trajectories, their raw states (count, longest, dim) padded with their last, and their lengths.
    """
    order = np.argsort(ta.lengths, kind="stable")
    lengths = ta.lengths[order]
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and (end + 1 - begin) * lengths[end] * width <= GROUP_NUMBERS:
            end += 1
        numbers, counts = order[begin:end], lengths[begin:end]
        steps = np.minimum(np.arange(counts[-1]), counts[:, None] - 1)
        rows = ta.rows.at(ta.offsets[numbers][:, None] + steps)
        yield numbers, np.asarray(ta.recording.observations[rows], dtype=np.float64), counts
        begin = end


def transport_costs(
    states: NDArray[np.float64], lengths: Index, expert: NDArray[np.float64], epsilon: float, iterations: int
) -> NDArray[np.float64]:
    """c_i = sum_j P_ij C_ij of every step, P the entropic transport plan from a trajectory to the expert's states.

    Sinkhorn's iterations v = b / (K' u), u = a / (K v) with K = exp(-C / epsilon), ending on u, so that every step has
    given away exactly its mass. The plan does not depend on how much mass the expert's states have together, only on
    all having the same, so the two sides need not balance. Because the cosine cost lies in [0, 2], entries of K are
    above exp(-2 / epsilon), and those of u and v stay within that factor of each other: from epsilon = 0.01 up
    float64 holds all of them without logarithms, which would take many times as long.

    Args:
        states: (trajectories, steps, dim), padded.
        lengths: of the trajectories, which are at most `steps`.
        expert: (states, dim).
        epsilon: strength of the entropy term.
        iterations: of v and u.

    Returns:
        (trajectories, steps); 0 for padding.
    """
    cost = np.clip(1 - _unit(states) @ _unit(expert).T, 0, 2)
    kernel = np.exp(cost / -epsilon)
    transposed = kernel.transpose(0, 2, 1)
    known = np.arange(cost.shape[1]) < lengths[:, None]
    mass = np.where(known, MASS, 0.0)[:, :, None]
    # As much in all as the trajectory has: without balance v would grow by a factor in every iteration.
    expert_mass = (lengths * (MASS / len(expert)))[:, None, None]
    u = known.astype(np.float64)[:, :, None]
    for _ in range(iterations):  # numpy's products of many small matrices with vectors are far ahead of torch's here
        v = expert_mass / np.matmul(transposed, u)
        u = mass / np.matmul(kernel, v)
    kernel *= cost
    costs: NDArray[np.float64] = (u * np.matmul(kernel, v))[:, :, 0]
    return costs


def _unit(states: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(states, axis=-1, keepdims=True)
    return np.asarray(states / np.maximum(norms, 1e-12))
