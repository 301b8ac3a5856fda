"""TaskData: the LightningDataModule. Raw data on the training device, statistics of TA, and the stage's loader."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from jsonargparse.typing import Path_fr
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.loaders import OneBatch, StepLoader
from tailo_pl.data.draws import StepGenerator, rank_share
from tailo_pl.data.settings import Setting, Task, load_task
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError, require_range


class TaskData(lightning.LightningDataModule):
    """The data of one stage: task, statistics and placement. A batch is an index gather on tensors that already sit on
    the training device; which rows it holds is up to its kind.

    Args:
        source: where the recordings come from.
        setting: how TS and TA are cut from them.
        batches: the kind of batches.
        stage: name of the stage; with `seed` and the step it decides every batch.
        seed: of the batches.
        inputs: files that the batches read beside the task, by name.
        std_floor: added to the standard deviations.
    """

    def __init__(
        self,
        source: Source,
        setting: Setting,
        batches: Batches,
        stage: str,
        seed: int,
        inputs: dict[str, Path_fr] | None = None,
        std_floor: float = 1e-4,
    ) -> None:
        super().__init__()
        require_range("std_floor", std_floor, 0)
        self._source, self._setting = source, setting
        self._inputs = inputs or {}
        require_read(self._inputs, batches)
        self._std_floor = std_floor
        self._placed: dict[int, Tensor] = {}  # arrays of the task by identity: it keeps them alive
        self.stage = stage
        self._seed = seed
        self.generator = StepGenerator(seed, stage)
        self.batches = batches
        batches.data = self

    @cached_property
    def task(self) -> Task:
        """TS and TA. May be assigned by whoever has loaded them already."""
        return load_task(self._source, self._setting)

    @cached_property
    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean of TA's states, and their standard deviation with the floor added."""
        mean, std = state_statistics(self.task.ta)
        return torch.from_numpy(mean).float(), torch.from_numpy(std + self._std_floor).float()

    def train_dataloader(self) -> StepLoader[Any]:
        trainer = self._trainer
        return StepLoader(self.batches.maker(), lambda: trainer.global_step)

    def val_dataloader(self) -> OneBatch | list[OneBatch]:
        """What is held out, as one batch; no loader where nothing is."""
        batch = self.batches.validation()
        return [] if batch is None else OneBatch(batch)

    def has_input(self, name: str) -> bool:
        """Whether the stage has this input."""
        return name in self._inputs

    def input(self, name: str, expected: int) -> NDArray[Any] | None:
        """What an input holds, as many numbers as expected; None where the stage has no such input."""
        array = self.whole_input(name)
        if array is not None and array.shape != (expected,):
            raise UserError(f"{self._inputs[name]}: shape {array.shape} found, expected ({expected},) as in TA")
        return array

    def whole_input(self, name: str) -> NDArray[Any] | None:
        """What an input holds, whatever that is; None where the stage has no such input."""
        return np.asarray(np.load(self._inputs[name], allow_pickle=False)) if name in self._inputs else None

    def input_files(self) -> dict[str, Path]:
        """The files of the inputs, by name."""
        return {name: Path(path.absolute) for name, path in self._inputs.items()}

    def generator_of(self, purpose: str) -> StepGenerator:
        """Random numbers for something beside the batches; `at` counts whatever that is counted in."""
        return StepGenerator(self._seed, f"{self.stage}/{purpose}")

    def share(self, rows: Tensor) -> Tensor:
        """This process's share of a global batch."""
        return rank_share(rows, *self._rank)

    @property
    def members(self) -> int:
        """How many networks side by side the module in training has, each of which takes rows of its own."""
        return getattr(self._trainer.lightning_module, "members", 1)

    def place(self, array: NDArray[Any] | None) -> Tensor:
        """The array as a tensor on the training device, or left on the host when it would crowd the device."""
        if array is None:
            raise UserError("TA: no actions recorded, expected state-action trajectories")
        if id(array) in self._placed:
            return self._placed[id(array)]
        tensor = torch.from_numpy(np.asarray(array, dtype=np.float32))
        device = self._device
        crowded = device.type == "cuda" and tensor.nbytes > torch.cuda.mem_get_info(device)[0] // 2
        self._placed[id(array)] = tensor if crowded else tensor.to(device)
        return self._placed[id(array)]

    def gather(self, table: Tensor, rows: Tensor) -> Tensor:
        """Rows of a placed table."""
        gathered = table.index_select(0, rows.to(table.device))
        if self._device.type == "cuda" and table.device.type == "cpu":
            return gathered.pin_memory()  # Lightning's transfer then overlaps with computing
        return gathered

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Nothing to do where the data lie on the device already, which Lightning would find out tensor by tensor."""
        if all(table.device == device for table in self._placed.values()):
            return batch
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    @property
    def _trainer(self) -> lightning.Trainer:
        assert self.trainer is not None
        return self.trainer

    @cached_property
    def _device(self) -> torch.device:
        return self._trainer.strategy.root_device

    @cached_property
    def _rank(self) -> tuple[int, int]:
        """This process's number, and how many there are."""
        return self._trainer.global_rank, self._trainer.world_size


def require_read(inputs: Mapping[str, Any], batches: Batches) -> None:
    """Raise `UserError` for an input that the batches would not look at."""
    for name in inputs:
        if name not in batches.reads:
            there = ", ".join(batches.reads) or "none"
            raise UserError(f"inputs: {name!r} given, but {type(batches).__name__} reads {there}")


def state_statistics(trajectories: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the kept states, in float64, a chunk of rows at a time."""
    states, steps = trajectories.recording.observations, trajectories.steps
    mean = sum(chunk.sum(0, dtype=np.float64) for chunk in trajectories.chunks(states)) / steps
    # Two passes: the one-pass formula loses all digits when a dimension is nearly constant.
    variance = sum(((chunk - mean) ** 2).sum(0) for chunk in trajectories.chunks(states)) / steps
    return mean, np.sqrt(variance)
