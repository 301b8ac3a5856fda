"""RolloutBatches and PathBatches: what methods need that act in a learnt model of the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tailo_pl.data.batches.kind import Batches
from tailo_pl.data.batches.step_tables import StepTables
from tailo_pl.data.draws import rows_at, uniform_rows
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.transitions import Transitions
from tailo_pl.envs.environment import Environment
from tailo_pl.errors import Refusal, UserError, require_range


class InModel(Batches):
    """Base of batches for acting in a model, whose episodes end where the environment's do.

    Args:
        batch_size: rows per batch.
        environment: whose rule says where episodes end; filled in from the run.
    """

    needs: ClassVar[tuple[str, ...]] = ("environment",)

    def __init__(self, batch_size: int, environment: Environment | None = None) -> None:
        super().__init__(batch_size)
        if environment is not None and not environment.knows_endings:
            raise Refusal(
                f"env: {type(environment).__name__} does not say at which states its episodes end, expected one that "
                "does: this method acts in a model"
            )
        self._environment = environment

    def ended(self, states: Tensor) -> Tensor:
        """Whether an episode ends on reaching each of these raw states, (rows, dim)."""
        assert self._environment is not None
        return torch.from_numpy(self._environment.ended(states.detach().cpu().numpy())).to(states.device)


class RolloutBatch(NamedTuple):
    """A step's rows: recorded ones, and where to find the others among those the model has made."""

    real: Tensor
    """(rows, …): state, action in the data's units, reward, next state, done side by side"""
    places: Tensor
    """for each of the other rows its place among all that the model has made, in [0, 1)"""
    noise: Tensor
    """(2, rows, action_dim): standard normal numbers, for actions drawn at s and at s'"""


class RolloutDraws(NamedTuple):
    """All that is random in some rollouts."""

    starts: Tensor
    """(rollouts, dim): recorded states to begin with"""
    actions: Tensor
    """(length, rollouts, action_dim): standard normal numbers"""
    outcomes: Tensor
    """(length, rollouts, 1 + dim): standard normal numbers, of reward and next state"""
    members: Tensor
    """(length, rollouts): which model takes the step, in [0, 1)"""


class RolloutBatches(InModel):
    """Recorded steps with the input `rewards`, numbers that choose rows of a model, and draws of rollouts in it.

    Args:
        batch_size: rows per batch.
        real_share: of them that are recorded.
        environment: whose rule says where episodes end; filled in from the run.
    """

    reads = ("rewards", "dynamics")

    def __init__(self, batch_size: int = 256, real_share: float = 0.05, environment: Environment | None = None) -> None:
        super().__init__(batch_size, environment)
        require_range("real_share", real_share, 0, 1)
        self.real_rows = max(1, round(real_share * batch_size))

    def check(self, task: Task, setting: Setting) -> None:
        try:
            Transitions(task.ta)
        except UserError as error:
            raise Refusal(str(error)) from error

    @cached_property
    def tables(self) -> StepTables:
        """The recorded steps."""
        return StepTables(self.data)

    def maker(self) -> Callable[[int], RolloutBatch]:
        data, ta, tables = self.data, self.data.task.ta, self.tables
        view = Transitions(ta)
        given = data.input("rewards", ta.steps)
        rewards = torch.zeros(ta.steps) if given is None else torch.from_numpy(given.astype(np.float32))
        others = self.batch_size - self.real_rows

        def batch_at(step: int) -> RolloutBatch:
            generator = data.generator.at(step)
            positions, _ = view.draw(self.real_rows, generator)
            rows = rows_at(ta.rows, positions)
            columns = [rewards[positions].to(tables.device)[:, None], tables.next_states(rows)]
            real = [tables.states(rows), tables.actions(rows), *columns, tables.done(rows)[:, None]]
            return RolloutBatch(
                torch.cat(real, 1),
                torch.rand(others, dtype=torch.float64, generator=generator).to(tables.device),
                torch.randn(2, self.batch_size, tables.action_dim, generator=generator).to(tables.device),
            )

        return batch_at

    def draws(self, number: int, rollouts: int, length: int) -> RolloutDraws:
        """What is random in the rollouts of this number, whenever they are made."""
        ta, tables = self.data.task.ta, self.tables
        generator = self.data.generator_of("rollouts").at(number)
        starts = tables.states(rows_at(ta.rows, uniform_rows(ta.steps, rollouts, generator)))
        return RolloutDraws(
            starts,
            torch.randn(length, rollouts, tables.action_dim, generator=generator).to(tables.device),
            torch.randn(length, rollouts, 1 + starts.shape[1], generator=generator).to(tables.device),
            torch.rand(length, rollouts, generator=generator).to(tables.device),
        )


class PathBatch(NamedTuple):
    """Where paths begin, and the random numbers of their actions; each member of the ensemble has as many paths."""

    starts: Tensor
    """(paths, dim): the first member's, then the same for the second, and so on"""
    noise: Tensor
    """(horizon, paths, action_dim): standard normal numbers"""


class PathBatches(InModel):
    """States at which episodes of TA began, and noise for paths of actions from there.

    Args:
        batch_size: paths in each member of the ensemble.
        horizon: longest path.
        environment: whose rule says where episodes end; filled in from the run.
    """

    reads = ("dynamics", "actor")

    def __init__(self, batch_size: int = 50, horizon: int = 700, environment: Environment | None = None) -> None:
        super().__init__(batch_size, environment)
        require_range("horizon", horizon, 1, closed="[)")
        self.horizon = horizon

    def check(self, task: Task, setting: Setting) -> None:
        if not len(Transitions(task.ta, "all").initial_rows):
            raise Refusal("TA: no trajectory has kept its first step, expected some initial states")

    def maker(self) -> Callable[[int], PathBatch]:
        data, tables = self.data, StepTables(self.data)
        initial = torch.from_numpy(Transitions(data.task.ta, "all").initial_rows)

        def batch_at(step: int) -> PathBatch:
            generator = data.generator.at(step)
            first = uniform_rows(len(initial), self.batch_size, generator)
            starts = tables.states(initial[first]).repeat(data.members, 1)
            noise = torch.randn(self.horizon, len(starts), tables.action_dim, generator=generator)
            return PathBatch(starts, noise.to(tables.device))

        return batch_at
