"""Transitions: which steps can be drawn, what follows them, where episodes begin. Steps may be missing anywhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.batches import TransitionBatch, TransitionBatches
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.draws import StepGenerator
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.data.transitions import Transitions, consecutive, has_next, shared_steps
from tailo_pl.errors import UserError


def recorded(lengths: list[int], ends: list[str], written: bool = False) -> Trajectories:
    """Trajectories whose states are 0, 1, 2, ...; each ends by `terminal`, `timeout`, or nobody wrote down how."""
    steps, lasts = sum(lengths), np.cumsum(lengths) - 1
    states = np.arange(steps, dtype=np.float32)[:, None]
    terminals, timeouts = np.zeros(steps, dtype=bool), np.zeros(steps, dtype=bool)
    terminals[lasts], timeouts[lasts] = [end == "terminal" for end in ends], [end == "timeout" for end in ends]
    recording = Recording(
        states,
        np.cumsum([0, *lengths[:-1]]),
        actions=states / 100,
        next_observations=states + 1 if written else None,
        terminals=terminals,
        timeouts=timeouts,
    )
    return Trajectories.of(recording)


def drawn(view: Transitions, size: int = 400) -> tuple[np.ndarray, np.ndarray]:
    positions, absorbing = view.draw(size, StepGenerator(0, "stage").at(0))
    return positions.numpy(), absorbing.numpy()


def first_batches(make: Callable[..., TaskData], ts: Trajectories, ta: Trajectories, **options: Any) -> list[Any]:
    data = make(ts, ta, batches="transitions", **options)
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    data.trainer = SimpleNamespace(global_rank=0, world_size=1, strategy=strategy, global_step=0)
    return list(islice(data.train_dataloader(), 4))


@st.composite
def incomplete(draw: st.DrawFn) -> Trajectories:
    """Recorded trajectories with any steps missing, one at least left."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    kinds = st.sampled_from(["terminal", "timeout", "unknown"])
    whole = recorded(lengths, [draw(kinds) for _ in lengths], draw(st.booleans()))
    missing = draw(st.lists(st.booleans(), min_size=whole.steps, max_size=whole.steps).filter(lambda m: not all(m)))
    return whole.drop(np.array(missing))


@given(incomplete(), st.sampled_from(["next", "next_or_done"]))
def test_only_steps_with_something_behind_them_are_drawn(ta: Trajectories, steps: Any) -> None:
    recording, index = ta.recording, ta.index
    expected = []
    for position, row in enumerate(index):
        last, written = recording.is_last[row], recording.next_observations is not None
        known = (written or not last) and not recording.timeouts[row]
        if known or (steps == "next_or_done" and recording.terminals[row]):
            expected.append(position)
    if not expected:
        with pytest.raises(UserError, match="no step with a known next state"):
            Transitions(ta, steps)
        return
    view = Transitions(ta, steps)
    assert len(view) == len(expected)
    assert set(drawn(view)[0]) == set(expected)


@given(incomplete())
def test_the_next_state_is_the_recorded_one_and_starts_are_true_starts(ta: Trajectories) -> None:
    assert set(ta.recording.observations[Transitions(ta, "all").initial_rows, 0]) == {
        float(start) for start in ta.recording.starts if start in ta.index
    }
    if not has_next(ta).any():
        return
    make: Any = lambda ts, ta, **options: _data(ts, ta, **options)  # noqa: E731
    if not len(Transitions(ta, "all").initial_rows):
        with pytest.raises(UserError, match="no trajectory has kept its first step"):
            TransitionBatches(initial=True).view(Task(ta, ta))
        TransitionBatches().view(Task(ta, ta))  # only some methods need them
    for batch in first_batches(make, ta, ta, steps="next", batch_size=16):
        assert torch.equal(batch.next_observations, batch.observations + 1)
        assert torch.equal(batch.actions, batch.observations / 100)


def _data(ts: Trajectories, ta: Trajectories, **options: Any) -> TaskData:
    options.pop("batches")
    data = TaskData(None, None, TransitionBatches(**options), "stage", 0)  # type: ignore[arg-type]
    data.task = Task(ts, ta)
    return data


def test_a_terminal_step_is_marked_done_and_a_timed_out_one_never_drawn() -> None:
    ta = recorded([3, 4, 2], ["terminal", "timeout", "terminal"], written=True)
    seen: dict[float, float] = {}
    for batch in first_batches(_data, ta, ta, batch_size=64):
        seen |= dict(zip(batch.observations[:, 0].tolist(), batch.done.tolist(), strict=True))
    assert seen == {0: 0, 1: 0, 2: 1, 3: 0, 4: 0, 5: 0, 7: 0, 8: 1}


def test_initial_states_are_drawn_apart_from_the_steps() -> None:
    ta = recorded([3, 3, 3], ["terminal"] * 3).drop(np.arange(9) == 3)  # the second lost its first step
    batches = first_batches(_data, ta, ta, batch_size=64)
    initial = torch.cat([batch.initial[:, 0] for batch in batches])
    assert set(initial.tolist()) == {0.0, 6.0}
    rows = torch.cat([batch.observations[:, 0] for batch in batches])
    assert any((initial == 0) & (rows > 5)) and any((initial == 6) & (rows < 3))


def test_the_absorbing_state_comes_once_per_ending_with_its_own_reward(task_data: Any) -> None:
    ta = recorded([3, 4, 2], ["terminal", "timeout", "terminal"])
    assert len(Transitions(ta, absorbing=True)) == len(Transitions(ta)) + 2
    rewards = np.append(np.arange(9), 77.0)
    batch: TransitionBatch
    share = []
    for batch in first_batches(task_data, ta, ta, absorbing=True, rewards=rewards, batch_size=512):
        loops = batch.absorbing.bool()
        assert set(batch.rewards[loops].tolist()) == {77.0}
        assert torch.equal(batch.rewards[~loops], batch.observations[~loops, 0])
        share.append(batch.absorbing.mean().item())
    assert np.mean(share) == pytest.approx(2 / 10, abs=0.03)


def test_expert_pairs_are_consecutive_states_of_one_trajectory() -> None:
    ts = recorded([4, 3], ["timeout", "timeout"]).drop(np.array([0, 0, 1, 0, 0, 0, 0], dtype=bool))
    assert ts.observations[consecutive(ts), 0].tolist() == [0.0, 4.0, 5.0]
    for batch in first_batches(_data, ts, recorded([3], ["terminal"]), steps="next", expert="pairs", batch_size=8):
        assert torch.equal(batch.expert.next_observations, batch.expert.observations + 1)
    alone = ts.take([0]).drop(np.array([0, 1, 0], dtype=bool))
    with pytest.raises(UserError, match="TS: no two consecutive states"):
        TransitionBatches(steps="next", expert="pairs").view(Task(alone, ts))


def test_steps_that_are_the_experts_are_left_out_of_ta() -> None:
    whole = recorded([3, 3], ["terminal", "terminal"])
    expert = Trajectories.stack([whole.take([1])])  # another recording with the same numbers
    assert shared_steps(whole, expert).tolist() == [False, False, False, True, True, True]
    for batch in first_batches(_data, expert, whole, steps="all", expert="actions", batch_size=32):
        assert set(batch.observations[:, 0].tolist()) == {0.0, 1.0, 2.0}
        assert torch.equal(batch.expert.actions, batch.expert.observations / 100)
    states_only = Trajectories.of(Recording(np.zeros((2, 1), dtype=np.float32), np.array([0])))
    with pytest.raises(UserError, match="TS: states only found"):
        TransitionBatches(steps="all", expert="actions").view(Task(states_only, whole))
