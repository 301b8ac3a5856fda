"""WeightedBatches: states, actions and weights of TA, for policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.draws import ProportionalRows, UnmarkedRows, rows_at
from tailo_pl.data.settings import Setting, Task
from tailo_pl.errors import UserError, require_range


class WeightedBatch(NamedTuple):
    """Rows for a policy."""

    observations: Tensor
    actions: Tensor
    weights: Tensor
    size: int
    """rows of the global batch"""


class WeightedBatches(Batches):
    """Steps of TA with the input `weights`; 1 for every step without it.

    Args:
        batch_size: rows per batch, of each member of the policy: row i is for member i % members.
        sampling: `uniform` draws all steps alike and hands on their weights; `proportional` draws in proportion to
            the weights, which then are 1.
        held_out: trajectories kept out of training for validation, drawn in proportion to their weight.
    """

    reads = ("weights",)

    def __init__(
        self,
        batch_size: int = 512,
        sampling: Literal["uniform", "proportional"] = "uniform",
        held_out: int = 0,
    ) -> None:
        super().__init__(batch_size)
        require_range("held_out", held_out, 0, closed="[)")
        self.sampling = sampling
        self.held_out = held_out

    def check(self, task: Task, setting: Setting) -> None:
        if self.held_out >= len(task.ta):
            raise UserError(
                f"held_out: {self.held_out} of TA's {len(task.ta)} trajectories given, expected some left to train on "
                "(preset.held_out.trajectories=...)"
            )

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """The weight of every step of TA."""
        steps = self.data.task.ta.steps
        given = self.data.input("weights", steps)
        return np.ones(steps, dtype=np.float32) if given is None else given.astype(np.float32)

    @cached_property
    def held_out_steps(self) -> NDArray[np.bool_]:
        """Marks the steps kept out of training: whole trajectories, those that matter most likely among them."""
        ta = self.data.task.ta
        if not self.held_out:
            return np.zeros(ta.steps, dtype=bool)
        shares = np.add.reduceat(self.weights, ta.offsets[:-1], dtype=np.float64)
        if (shares > 0).sum() <= self.held_out:
            raise UserError(
                f"held_out: {self.held_out} trajectories asked for, but only {(shares > 0).sum()} carry any weight, "
                "expected some left to train on"
            )
        # Drawn without replacement in proportion to the shares: the largest of u^(1/share), on logarithms.
        uniform = torch.rand(len(shares), generator=self.data.generator.at(-1), dtype=torch.float64).numpy()
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(uniform) / shares)[::-1]
        chosen = np.zeros(len(shares), dtype=bool)
        chosen[order[: self.held_out]] = True
        return np.asarray(np.repeat(chosen, ta.lengths))

    @property
    def validates(self) -> bool:
        return self.held_out > 0

    @property
    def loss_scale(self) -> float:
        """mean(W) of the trained steps when drawn by W, else 1."""
        if self.sampling == "proportional":
            trained = ~self.held_out_steps
            return float(self.weights.sum(where=trained, dtype=np.float64) / trained.sum())
        return 1.0

    def validation(self) -> WeightedBatch | None:
        """All held-out steps."""
        positions = np.flatnonzero(self.held_out_steps)
        if not len(positions):
            return None
        data, ta = self.data, self.data.task.ta
        observations, actions = data.place(ta.recording.observations), data.place(ta.recording.actions)
        rows, weights = torch.from_numpy(ta.rows.at(positions)), torch.from_numpy(self.weights[positions])
        gathered = data.gather(observations, rows), data.gather(actions, rows)
        return WeightedBatch(*gathered, weights.to(observations.device), len(rows))

    def maker(self) -> Callable[[int], WeightedBatch]:
        data, ta = self.data, self.data.task.ta
        observations, actions = data.place(ta.recording.observations), data.place(ta.recording.actions)
        weights = torch.from_numpy(self.weights)
        proportional = None
        if self.sampling == "proportional" and data.has_input("weights"):
            proportional = ProportionalRows(weights.masked_fill(torch.from_numpy(self.held_out_steps), 0.0))
        trained = UnmarkedRows(self.held_out_steps)
        members = data.members
        size = self.batch_size * members

        def batch_at(step: int) -> WeightedBatch:
            generator = data.generator.at(step)
            drawn = proportional(size, generator) if proportional else trained(size, generator)
            share = data.share(drawn.view(-1, members)).flatten()  # of every process the same share of each member
            chosen = rows_at(ta.rows, share)
            drawn_weights = torch.ones(len(share)) if proportional else weights.index_select(0, share)
            return WeightedBatch(
                data.gather(observations, chosen),
                data.gather(actions, chosen),
                drawn_weights.to(observations.device),
                size,
            )

        return batch_at
