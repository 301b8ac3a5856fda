"""TransitionBatches: (s, a, s', done, reward) of TA, for methods that look one step ahead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.step_tables import StepTables
from tailo_pl.data.draws import rows_at, uniform_rows
from tailo_pl.data.frames import require_whole_states
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.transitions import Steps, Transitions, consecutive, shared_steps
from tailo_pl.errors import Refusal, UserError

Expert = Literal["none", "states", "pairs", "actions"]


class ExpertRows(NamedTuple):
    """Rows of TS beside a batch of transitions; which of them are there the stage's data say."""

    observations: Tensor
    next_observations: Tensor | None
    actions: Tensor | None
    mix: Tensor
    """two interpolation numbers per row"""
    others: Tensor | None = None
    """with `next_others`: a second pair (s, s') of TA for every row, another row of the global batch"""
    next_others: Tensor | None = None


class TransitionBatch(NamedTuple):
    """Rows of TA for methods that look one step ahead."""

    observations: Tensor
    actions: Tensor
    next_observations: Tensor
    """where the step has no recorded next state, its own; what uses it must look at `done` first"""
    done: Tensor
    """1 where the step ended its episode by the task's own rule"""
    rewards: Tensor
    initial: Tensor
    """states at which episodes begin, drawn independently of the other rows; none where TA has kept none"""
    absorbing: Tensor
    """1 where the row is the absorbing state, which leads to itself; its state and action then mean nothing"""
    noise: Tensor
    """a standard normal number per action dimension, for whatever the method randomises"""
    expert: ExpertRows | None
    size: int
    """rows of the global batch"""


class TransitionBatches(Batches):
    """Transitions of TA with the input `rewards` (0 without it), perhaps with rows of TS beside them.

    Args:
        batch_size: rows per batch.
        steps: which steps are drawn: those with a recorded next state (`next`), also those that ended their episode
            (`next_or_done`), or `all`.
        absorbing: draw the absorbing state too, once per episode that ended; `rewards` then has one number more.
        expert: rows of TS beside them: their `states`, `pairs` of consecutive states, or states with `actions`,
            when steps of TA that are also TS's are not drawn.
        initial: the method needs states at which episodes begin.
    """

    reads = ("rewards",)

    def __init__(
        self,
        batch_size: int = 256,
        steps: Steps = "next_or_done",
        absorbing: bool = False,
        expert: Expert = "none",
        initial: bool = False,
    ) -> None:
        super().__init__(batch_size)
        self.steps = steps
        self.absorbing = absorbing
        self.expert = expert
        self.initial = initial

    def check(self, task: Task, setting: Setting) -> None:
        if self.expert != "none":
            require_whole_states(task.told)
        if self.expert == "pairs" and not setting.ordered:
            raise Refusal("TS: states in no order found, expected consecutive states of the expert")
        try:
            self.view(task)
        except UserError as error:
            raise Refusal(str(error)) from error

    def view(self, task: Task) -> Transitions:
        """The transitions of TA that are drawn; an error where the task lacks something these batches need."""
        ts = task.ts
        if self.expert == "pairs" and not len(consecutive(ts)):
            raise UserError("TS: no two consecutive states found, expected some: this method needs pairs s, s'")
        if self.expert == "actions" and ts.recording.actions is None:
            raise UserError(
                "TS: states only found, expected their actions too: this method clones what the expert does"
            )
        left_out = shared_steps(task.ta, ts) if self.expert == "actions" else None
        view = Transitions(task.ta, self.steps, self.absorbing, left_out)
        if self.initial and not len(view.initial_rows):
            raise UserError("TA: no trajectory has kept its first step, expected some initial states")
        return view

    def maker(self) -> Callable[[int], TransitionBatch]:
        data, ta, size = self.data, self.data.task.ta, self.batch_size
        view = self.view(data.task)
        tables = StepTables(data)
        rewards = torch.from_numpy(self._rewards())
        initial = torch.from_numpy(view.initial_rows)
        expert_at = self._expert_rows()

        def states_and_next(positions: Tensor) -> tuple[Tensor, Tensor]:
            rows = rows_at(ta.rows, positions)
            return tables.states(rows), tables.next_states(rows)

        def batch_at(step: int) -> TransitionBatch:
            generator = data.generator.at(step)
            drawn, absorbing = view.draw(size, generator)
            positions, absorbing = data.share(drawn), data.share(absorbing)
            first = data.share(uniform_rows(len(initial), size, generator)) if len(initial) else initial
            noise = data.share(torch.randn(size, tables.action_dim, generator=generator))
            rows = rows_at(ta.rows, positions)
            device = tables.device
            states, next_states = states_and_next(positions)
            expert = expert_at(generator) if expert_at else None
            if expert is not None and expert.next_observations is not None:
                # Rows are independent draws, so the row before is as good as another draw.
                others, next_others = states_and_next(data.share(drawn.roll(1)))
                expert = expert._replace(others=others, next_others=next_others)
            return TransitionBatch(
                observations=states,
                actions=tables.actions(rows),
                next_observations=next_states,
                done=tables.done(rows),
                rewards=rewards[torch.where(absorbing, ta.steps, positions)].to(device),
                initial=tables.states(initial[first]),
                absorbing=absorbing.float().to(device),
                noise=noise.to(device),
                expert=expert,
                size=size,
            )

        return batch_at

    def _rewards(self) -> NDArray[np.float32]:
        expected = self.data.task.ta.steps + self.absorbing
        given = self.data.input("rewards", expected)
        return np.zeros(expected, dtype=np.float32) if given is None else given.astype(np.float32)

    def _expert_rows(self) -> Callable[[torch.Generator], ExpertRows] | None:
        """Draws rows of TS, as many as of TA."""
        if self.expert == "none":
            return None
        data, ts, size = self.data, self.data.task.ts, self.batch_size
        observations = data.place(ts.recording.observations)
        actions = data.place(ts.recording.actions) if self.expert == "actions" else None
        pairs = self.expert == "pairs"
        starts = torch.from_numpy(consecutive(ts)) if pairs else torch.arange(ts.steps)

        def draw(generator: torch.Generator) -> ExpertRows:
            chosen = data.share(uniform_rows(len(starts), size, generator))
            rows = rows_at(ts.rows, starts[chosen])
            mix = data.share(torch.rand(size, 2, generator=generator)).to(observations.device)
            return ExpertRows(
                data.gather(observations, rows),
                data.gather(observations, rows + 1) if pairs else None,
                None if actions is None else data.gather(actions, rows),
                mix,
            )

        return draw
