"""TaskData: the LightningDataModule. Raw data on the training device, statistics of TA, and the stage's loader."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import lightning
import numpy as np
import torch
from jsonargparse.typing import Path_fr
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches import (
    OneBatch,
    PairBatch,
    ProportionalRows,
    StepGenerator,
    StepLoader,
    WeightedBatch,
    rank_share,
    uniform_rows,
)
from tailo_pl.data.rows import Rows
from tailo_pl.data.settings import Setting, Task, load_task
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range


class TaskData(lightning.LightningDataModule):
    """The data of one stage. A batch is an index gather on tensors that already sit on the training device.

    Args:
        source: where the recordings come from.
        setting: how TS and TA are cut from them.
        stage: name of the stage; with `seed` and the step it decides every batch.
        seed: of the batches.
        batches: `pairs` (TS against TA or its safe negatives) for discriminators, `weighted` (states, actions,
            weights of TA) for policies.
        batch_size: rows per batch (from each side for `pairs`, at most the number of TS states).
        sampling: for `weighted`: `uniform` draws all steps alike and hands on their weights; `proportional` draws
            in proportion to the weights, which then are 1.
        negatives: file with one mark per TA trajectory: the safe negatives. None: all of TA.
        weights: file with one weight per TA step. None: 1 for all.
        holdout: for `weighted`: trajectories kept out of training for validation, drawn in proportion to their weight.
        std_floor: added to the standard deviations.
    """

    def __init__(
        self,
        source: Source,
        setting: Setting,
        stage: str,
        seed: int,
        batches: Literal["pairs", "weighted"],
        batch_size: int = 512,
        sampling: Literal["uniform", "proportional"] = "uniform",
        negatives: Path_fr | None = None,
        weights: Path_fr | None = None,
        std_floor: float = 1e-4,
        holdout: int = 0,
    ) -> None:
        super().__init__()
        require_range("batch_size", batch_size, 1, closed="[)")
        require_range("std_floor", std_floor, 0)
        require_range("holdout", holdout, 0, closed="[)")
        self._source, self._setting = source, setting
        self._batches = batches
        self._batch_size = batch_size
        self._sampling = sampling
        self._negatives, self._weights = negatives, weights
        self._std_floor = std_floor
        self._holdout = holdout
        self._generator = StepGenerator(seed, stage)
        self._placed: dict[int, Tensor] = {}  # arrays of the task by identity: it keeps them alive

    @cached_property
    def task(self) -> Task:
        """TS and TA. May be assigned by whoever has loaded them already."""
        return load_task(self._source, self._setting)

    @cached_property
    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean of TA's states, and their standard deviation with the floor added."""
        mean, std = state_statistics(self.task.ta)
        return torch.from_numpy(mean).float(), torch.from_numpy(std + self._std_floor).float()

    @cached_property
    def step_weights(self) -> NDArray[np.float32]:
        """The weight of every TA step: what the file says, or 1."""
        if self._weights is None:
            return np.ones(self.task.ta.steps, dtype=np.float32)
        return self._read(self._weights, self.task.ta.steps).astype(np.float32)

    @cached_property
    def held_out(self) -> NDArray[np.bool_]:
        """Marks the TA steps kept out of training: whole trajectories, those that matter most likely among them."""
        ta = self.task.ta
        if not self._holdout:
            return np.zeros(ta.steps, dtype=bool)
        shares = np.add.reduceat(self.step_weights, ta.offsets[:-1], dtype=np.float64)
        if (shares > 0).sum() <= self._holdout:
            raise UserError(
                f"holdout: {self._holdout} trajectories asked for, but only {(shares > 0).sum()} carry any weight, "
                "expected some left to train on"
            )
        # Drawn without replacement in proportion to the shares: the largest of u^(1/share), on logarithms.
        uniform = torch.rand(len(shares), generator=self._generator.at(-1), dtype=torch.float64).numpy()
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(uniform) / shares)[::-1]
        chosen = np.zeros(len(shares), dtype=bool)
        chosen[order[: self._holdout]] = True
        return np.asarray(np.repeat(chosen, ta.lengths))

    @property
    def loss_scale(self) -> float:
        """Factor from the sampled loss to that of uniform rows with weights: mean(W) when drawn by W, else 1."""
        if self._sampling == "proportional":
            trained = ~self.held_out
            return float(self.step_weights.sum(where=trained, dtype=np.float64) / trained.sum())
        return 1.0

    def train_dataloader(self) -> StepLoader[Any]:
        make = self._pair_batches() if self._batches == "pairs" else self._weighted_batches()
        assert self.trainer is not None
        trainer = self.trainer
        return StepLoader(make, lambda: trainer.global_step)

    def val_dataloader(self) -> OneBatch | list[OneBatch]:
        """All held-out steps as one batch; no loader without a hold-out."""
        if not self.held_out.any():
            return []
        ta, held = self.task.ta, self.held_out
        observations, actions = self._place(ta.recording.observations), self._place(ta.recording.actions)
        positions = np.flatnonzero(held)
        rows, weights = torch.from_numpy(ta.rows.at(positions)), torch.from_numpy(self.step_weights[positions])
        weights = weights.to(observations.device)
        return OneBatch(
            WeightedBatch(self._gather(observations, rows), self._gather(actions, rows), weights, len(rows))
        )

    def _pair_batches(self) -> Any:
        task = self.task
        unlabelled = task.ta
        if self._negatives is not None:
            unlabelled = unlabelled.take(self._read(self._negatives, len(unlabelled)).astype(bool))
        ts, u = self._place(task.ts.recording.observations), self._place(unlabelled.recording.observations)
        ts_rows, u_rows = task.ts.rows, unlabelled.rows
        size = min(self._batch_size, len(ts_rows))

        def batch_at(step: int) -> PairBatch:
            generator = self._generator.at(step)
            rows_ts, rows_u = uniform_rows(len(ts_rows), size, generator), uniform_rows(len(u_rows), size, generator)
            mix = self._share(torch.rand(size, generator=generator)).to(ts.device)
            return PairBatch(
                self._gather(ts, _rows_at(ts_rows, self._share(rows_ts))),
                self._gather(u, _rows_at(u_rows, self._share(rows_u))),
                mix,
                size,
            )

        return batch_at

    def _weighted_batches(self) -> Any:
        ta = self.task.ta
        observations, actions = self._place(ta.recording.observations), self._place(ta.recording.actions)
        weights = torch.from_numpy(self.step_weights)
        proportional = None
        if self._sampling == "proportional" and self._weights is not None:
            proportional = ProportionalRows(weights.masked_fill(torch.from_numpy(self.held_out), 0.0))
        trained = _Left(self.held_out)
        size = self._batch_size

        def batch_at(step: int) -> WeightedBatch:
            generator = self._generator.at(step)
            drawn = proportional(size, generator) if proportional else trained(size, generator)
            share = self._share(drawn)
            chosen = _rows_at(ta.rows, share)
            drawn_weights = torch.ones(len(share)) if proportional else weights[share]
            return WeightedBatch(
                self._gather(observations, chosen),
                self._gather(actions, chosen),
                drawn_weights.to(observations.device),
                size,
            )

        return batch_at

    def _share(self, rows: Tensor) -> Tensor:
        assert self.trainer is not None
        return rank_share(rows, self.trainer.global_rank, self.trainer.world_size)

    def _place(self, array: NDArray[Any] | None) -> Tensor:
        """The array as a tensor on the training device, or left on the host when it would crowd the device."""
        if array is None:
            raise UserError("TA: no actions recorded, expected state-action trajectories")
        if id(array) in self._placed:
            return self._placed[id(array)]
        tensor = torch.from_numpy(np.asarray(array, dtype=np.float32))
        assert self.trainer is not None
        device = self.trainer.strategy.root_device
        crowded = device.type == "cuda" and tensor.nbytes > torch.cuda.mem_get_info(device)[0] // 2
        self._placed[id(array)] = tensor if crowded else tensor.to(device)
        return self._placed[id(array)]

    def _gather(self, table: Tensor, rows: Tensor) -> Tensor:
        gathered = table.index_select(0, rows.to(table.device))
        assert self.trainer is not None
        if self.trainer.strategy.root_device.type == "cuda" and table.device.type == "cpu":
            return gathered.pin_memory()  # Lightning's transfer then overlaps with computing
        return gathered

    @staticmethod
    def _read(path: Path_fr, expected: int) -> NDArray[Any]:
        array = np.load(path, allow_pickle=False)
        if array.shape != (expected,):
            raise UserError(f"{path}: shape {array.shape} found, expected ({expected},) as in TA")
        return np.asarray(array)


class _Left:
    """Draws uniformly among the positions that are not marked, which are most of them."""

    def __init__(self, marks: NDArray[np.bool_]) -> None:
        changes = np.flatnonzero(np.diff(marks, prepend=False, append=False))
        begins, ends = changes[::2], changes[1::2]
        gaps = torch.from_numpy(np.cumsum(ends - begins))
        self._count = len(marks) - int(gaps[-1] if len(gaps) else 0)
        # A position counted without the marked ones moves up by the gaps that begin at or before it.
        self._moves = torch.cat([torch.zeros(1, dtype=torch.int64), gaps])
        self._limits = torch.from_numpy(begins) - self._moves[:-1]

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        drawn = uniform_rows(self._count, size, generator)
        return drawn + self._moves[torch.searchsorted(self._limits, drawn, right=True)]


def _rows_at(rows: Rows, positions: Tensor) -> Tensor:
    return torch.from_numpy(rows.at(positions.numpy()))


def state_statistics(trajectories: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the kept states, in float64, a chunk of rows at a time."""
    states, steps = trajectories.recording.observations, trajectories.steps
    mean = sum(chunk.sum(0, dtype=np.float64) for chunk in trajectories.chunks(states)) / steps
    # Two passes: the one-pass formula loses all digits when a dimension is nearly constant.
    variance = sum(((chunk - mean) ** 2).sum(0) for chunk in trajectories.chunks(states)) / steps
    return mean, np.sqrt(variance)
