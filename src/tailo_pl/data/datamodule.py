"""TaskData: the LightningDataModule. Raw data on the training device, statistics of TA, and the stage's loader."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Literal

import lightning
import numpy as np
import torch
from jsonargparse.typing import Path_fr
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches import (
    ExpertRows,
    OneBatch,
    PairBatch,
    ProportionalRows,
    StepGenerator,
    StepLoader,
    TransitionBatch,
    UnmarkedRows,
    WeightedBatch,
    rank_share,
    uniform_rows,
)
from tailo_pl.data.rows import Rows
from tailo_pl.data.settings import Setting, Task, load_task
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.data.transitions import Steps, Transitions, consecutive, ended, shared_steps
from tailo_pl.errors import UserError, require_range

Expert = Literal["none", "states", "pairs", "actions"]


class TaskData(lightning.LightningDataModule):
    """The data of one stage. A batch is an index gather on tensors that already sit on the training device.

    Args:
        source: where the recordings come from.
        setting: how TS and TA are cut from them.
        stage: name of the stage; with `seed` and the step it decides every batch.
        seed: of the batches.
        batches: `pairs` (TS against TA or its safe negatives) for discriminators, `weighted` (states, actions,
            weights of TA) for policies, `transitions` (s, a, s', done, reward of TA, initial states) for methods that
            look one step ahead.
        batch_size: rows per batch (from each side for `pairs`, at most the number of TS states).
        sampling: for `weighted`: `uniform` draws all steps alike and hands on their weights; `proportional` draws
            in proportion to the weights, which then are 1.
        negatives: file with one mark per TA trajectory: the safe negatives. None: all of TA.
        weights: file with one weight per TA step. None: 1 for all.
        rewards: for `transitions`: file with one reward per TA step, and one more for the absorbing state where it
            is drawn. None: 0 for all.
        steps: for `transitions`: which steps are drawn: those with a recorded next state (`next`), also those that
            ended their episode (`next_or_done`), or `all`.
        absorbing: for `pairs` and `transitions`: draw the absorbing state too, once per episode that ended.
        expert: for `transitions`: rows of TS beside them: their `states`, `pairs` of consecutive states, or states
            with `actions`; steps of TA that are also TS's are then not drawn.
        initial: for `transitions`: the method needs states at which episodes begin.
        holdout: for `weighted`: trajectories kept out of training for validation, drawn in proportion to their weight;
            for `pairs`: states of TS kept out of it.
        std_floor: added to the standard deviations.
    """

    def __init__(
        self,
        source: Source,
        setting: Setting,
        stage: str,
        seed: int,
        batches: Literal["pairs", "weighted", "transitions"],
        batch_size: int = 512,
        sampling: Literal["uniform", "proportional"] = "uniform",
        negatives: Path_fr | None = None,
        weights: Path_fr | None = None,
        rewards: Path_fr | None = None,
        steps: Steps = "next_or_done",
        absorbing: bool = False,
        expert: Expert = "none",
        initial: bool = False,
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
        self._negatives, self._weights, self._rewards = negatives, weights, rewards
        self._steps, self._absorbing, self._expert, self._initial = steps, absorbing, expert, initial
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
        if not self._holdout or self._batches == "pairs":
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

    @cached_property
    def held_out_ts(self) -> NDArray[np.int64]:
        """For `pairs`: positions of the states of TS kept out of training."""
        states = self.task.ts.steps
        if self._holdout >= states:
            raise UserError(
                f"settle.ts_states: {self._holdout} of TS's {states} states given, expected some left to train on"
            )
        return torch.randperm(states, generator=self._generator.at(-1))[: self._holdout].numpy()

    @property
    def loss_scale(self) -> float:
        """Factor from the sampled loss to that of uniform rows with weights: mean(W) when drawn by W, else 1."""
        if self._sampling == "proportional":
            trained = ~self.held_out
            return float(self.step_weights.sum(where=trained, dtype=np.float64) / trained.sum())
        return 1.0

    def train_dataloader(self) -> StepLoader[Any]:
        makers = {
            "pairs": self._pair_batches,
            "weighted": self._weighted_batches,
            "transitions": self._transition_batches,
        }
        make = makers[self._batches]()
        trainer = self._trainer
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
        # Numbers beyond the steps stand for the absorbing state.
        ts_count, u_count = (
            part.steps + (int(ended(part).sum()) if self._absorbing else 0) for part in (task.ts, unlabelled)
        )

        draw_ts: Callable[[int, torch.Generator], Tensor] = partial(uniform_rows, ts_count)
        if self._holdout:
            marks = np.zeros(ts_count, dtype=bool)
            marks[self.held_out_ts] = True
            draw_ts = UnmarkedRows(marks)

        def batch_at(step: int) -> PairBatch:
            generator = self._generator.at(step)
            rows_ts, rows_u = draw_ts(size, generator), uniform_rows(u_count, size, generator)
            rows_ts, rows_u = self._share(rows_ts), self._share(rows_u)
            mix = self._share(torch.rand(size, generator=generator)).to(ts.device)
            absorbing: list[Tensor | None] = [None, None]
            if self._absorbing:
                absorbing = [
                    (rows >= len(known)).float().to(ts.device) for rows, known in ((rows_ts, ts_rows), (rows_u, u_rows))
                ]
            return PairBatch(
                self._gather(ts, _rows_at(ts_rows, rows_ts.clamp(max=len(ts_rows) - 1))),
                self._gather(u, _rows_at(u_rows, rows_u.clamp(max=len(u_rows) - 1))),
                mix,
                size,
                *absorbing,
            )

        return batch_at

    def _weighted_batches(self) -> Any:
        ta = self.task.ta
        observations, actions = self._place(ta.recording.observations), self._place(ta.recording.actions)
        weights = torch.from_numpy(self.step_weights)
        proportional = None
        if self._sampling == "proportional" and self._weights is not None:
            proportional = ProportionalRows(weights.masked_fill(torch.from_numpy(self.held_out), 0.0))
        trained = UnmarkedRows(self.held_out)
        size = self._batch_size

        def batch_at(step: int) -> WeightedBatch:
            generator = self._generator.at(step)
            drawn = proportional(size, generator) if proportional else trained(size, generator)
            share = self._share(drawn)
            chosen = _rows_at(ta.rows, share)
            drawn_weights = torch.ones(len(share)) if proportional else weights.index_select(0, share)
            return WeightedBatch(
                self._gather(observations, chosen),
                self._gather(actions, chosen),
                drawn_weights.to(observations.device),
                size,
            )

        return batch_at

    def _transition_batches(self) -> Any:
        ta, size = self.task.ta, self._batch_size
        view = transition_view(self.task, self._steps, self._absorbing, self._expert, self._initial)
        recording = ta.recording
        observations, actions = self._place(recording.observations), self._place(recording.actions)
        # Without recorded next states the next row is the next state, and a last row stands for itself.
        nexts = observations if recording.next_observations is None else self._place(recording.next_observations)
        ahead = torch.from_numpy((recording.next_observations is None) & ~recording.is_last)
        terminals = None if recording.terminals is None else torch.from_numpy(np.asarray(recording.terminals, bool))
        rewards = torch.from_numpy(self._step_rewards)
        initial = torch.from_numpy(view.initial_rows)
        expert_at = self._expert_rows()

        def states_and_next(positions: Tensor) -> tuple[Tensor, Tensor]:
            rows = _rows_at(ta.rows, positions)
            return self._gather(observations, rows), self._gather(nexts, rows + ahead[rows])

        def batch_at(step: int) -> TransitionBatch:
            generator = self._generator.at(step)
            drawn, absorbing = view.draw(size, generator)
            positions, absorbing = self._share(drawn), self._share(absorbing)
            first = self._share(uniform_rows(len(initial), size, generator)) if len(initial) else initial
            noise = self._share(torch.randn(size, actions.shape[1], generator=generator))
            rows = _rows_at(ta.rows, positions)
            done = torch.zeros(len(rows)) if terminals is None else terminals[rows].float()
            device = observations.device
            states, next_states = states_and_next(positions)
            expert = expert_at(generator) if expert_at else None
            if expert is not None and expert.next_observations is not None:
                # Rows are independent draws, so the row before is as good as another draw.
                others, next_others = states_and_next(self._share(drawn.roll(1)))
                expert = expert._replace(others=others, next_others=next_others)
            return TransitionBatch(
                observations=states,
                actions=self._gather(actions, rows),
                next_observations=next_states,
                done=done.to(device),
                rewards=rewards[torch.where(absorbing, ta.steps, positions)].to(device),
                initial=self._gather(observations, initial[first]),
                absorbing=absorbing.float().to(device),
                noise=noise.to(device),
                expert=expert,
                size=size,
            )

        return batch_at

    @property
    def _step_rewards(self) -> NDArray[np.float32]:
        expected = self.task.ta.steps + self._absorbing
        if self._rewards is None:
            return np.zeros(expected, dtype=np.float32)
        return self._read(self._rewards, expected).astype(np.float32)

    def _expert_rows(self) -> Callable[[torch.Generator], ExpertRows] | None:
        """Draws rows of TS, as many as of TA."""
        if self._expert == "none":
            return None
        ts, size = self.task.ts, self._batch_size
        observations = self._place(ts.recording.observations)
        actions = self._place(ts.recording.actions) if self._expert == "actions" else None
        pairs = self._expert == "pairs"
        starts = torch.from_numpy(consecutive(ts)) if pairs else torch.arange(ts.steps)

        def draw(generator: torch.Generator) -> ExpertRows:
            chosen = self._share(uniform_rows(len(starts), size, generator))
            rows = _rows_at(ts.rows, starts[chosen])
            mix = self._share(torch.rand(size, 2, generator=generator)).to(observations.device)
            return ExpertRows(
                self._gather(observations, rows),
                self._gather(observations, rows + 1) if pairs else None,
                None if actions is None else self._gather(actions, rows),
                mix,
            )

        return draw

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

    def _share(self, rows: Tensor) -> Tensor:
        return rank_share(rows, *self._rank)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Nothing to do where the data lie on the device already, which Lightning would find out tensor by tensor."""
        if all(table.device == device for table in self._placed.values()):
            return batch
        return super().transfer_batch_to_device(batch, device, dataloader_idx)

    def _place(self, array: NDArray[Any] | None) -> Tensor:
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

    def _gather(self, table: Tensor, rows: Tensor) -> Tensor:
        gathered = table.index_select(0, rows.to(table.device))
        if self._device.type == "cuda" and table.device.type == "cpu":
            return gathered.pin_memory()  # Lightning's transfer then overlaps with computing
        return gathered

    @staticmethod
    def _read(path: Path_fr, expected: int) -> NDArray[Any]:
        array = np.load(path, allow_pickle=False)
        if array.shape != (expected,):
            raise UserError(f"{path}: shape {array.shape} found, expected ({expected},) as in TA")
        return np.asarray(array)


def transition_view(
    task: Task,
    steps: Steps = "next_or_done",
    absorbing: bool = False,
    expert: Expert = "none",
    initial: bool = False,
) -> Transitions:
    """The transitions of TA, after checking that the task has what they need.

    Args:
        task: what there is.
        steps: as of `TaskData`, like the rest.
        absorbing: whether the absorbing state is drawn.
        expert: what is drawn of TS beside them.
        initial: whether states at which episodes begin are needed.
    """
    ts = task.ts
    if expert == "pairs" and not len(consecutive(ts)):
        raise UserError("TS: no two consecutive states found, expected some: this method needs pairs s, s'")
    if expert == "actions" and ts.recording.actions is None:
        raise UserError("TS: states only found, expected their actions too: this method clones what the expert does")
    view = Transitions(task.ta, steps, absorbing, shared_steps(task.ta, ts) if expert == "actions" else None)
    if initial and not len(view.initial_rows):
        raise UserError("TA: no trajectory has kept its first step, expected some initial states")
    return view


def _rows_at(rows: Rows, positions: Tensor) -> Tensor:
    if len(rows.starts) == 1 and rows.starts[0] == 0:
        return positions  # everything is kept
    return torch.from_numpy(rows.at(positions.numpy()))


def state_statistics(trajectories: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of the kept states, in float64, a chunk of rows at a time."""
    states, steps = trajectories.recording.observations, trajectories.steps
    mean = sum(chunk.sum(0, dtype=np.float64) for chunk in trajectories.chunks(states)) / steps
    # Two passes: the one-pass formula loses all digits when a dimension is nearly constant.
    variance = sum(((chunk - mean) ** 2).sum(0) for chunk in trajectories.chunks(states)) / steps
    return mean, np.sqrt(variance)
