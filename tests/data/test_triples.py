"""Triples: three consecutive states, whatever is missing and however episodes end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tailo_pl.data.batches.triples import TripleBatches, consecutive_triples, followed_steps
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import Refusal


def made(terminals: list[int], starts: list[int], count: int = 8) -> Trajectories:
    states = np.arange(count, dtype=np.float32)[:, None]
    ended = np.isin(np.arange(count), terminals)
    actions = states / 10
    return Trajectories.of(Recording(states, np.array(starts), actions=actions, terminals=ended))


def test_which_steps() -> None:
    ta = made(terminals=[3], starts=[0, 4, 7])
    # 2 is followed by 3, which ended its episode, and 5 by 6, with which a recording breaks off: nothing known behind.
    assert followed_steps(ta).tolist() == [0, 1, 4]
    assert consecutive_triples(ta).tolist() == [0, 1, 4]


def test_missing_steps_break_them() -> None:
    ta = made(terminals=[7], starts=[0])
    kept = ta.drop(np.arange(8) == 3)
    states = np.asarray(kept.observations)[:, 0]
    # 1 -> 2 -> 3: the state behind 2 is recorded
    assert states[followed_steps(kept)].tolist() == [0, 1, 4, 5]
    assert states[consecutive_triples(kept)].tolist() == [0, 4, 5]


def test_rows(task_data: Any) -> None:
    ta, ts = made(terminals=[3], starts=[0, 4, 7]), made(terminals=[], starts=[0, 3])
    data = task_data(ts, ta, batches="triples", batch_size=64)
    strategy = SimpleNamespace(root_device=torch.device("cpu"))
    data.trainer = SimpleNamespace(global_rank=0, world_size=1, strategy=strategy, global_step=0)
    batch = next(iter(data.train_dataloader()))
    first, second, third = (part[:, 0] for part in batch.states)
    assert set(first.tolist()) == {0, 1, 4}
    assert torch.equal(second, first + 1) and torch.equal(third, first + 2)
    assert torch.equal(batch.actions[:, 0], first / 10)
    assert set(batch.expert.first[:, 0].tolist()) == {0, 3, 4, 5}
    assert all(torch.equal(part, batch.expert.first + shift) for shift, part in enumerate(batch.expert))


def test_refuses_what_has_none() -> None:
    setting, batches = SimpleNamespace(ordered=True), TripleBatches(8)
    whole, pairs = made(terminals=[], starts=[0]), made(terminals=[], starts=[0, 2, 4, 6])
    batches.check(Task(whole, whole), setting)  # type: ignore[arg-type]
    for ts, ta, ordered, line in (
        (pairs, whole, True, "TS: no three consecutive states found"),
        (whole, whole, False, "TS: no three consecutive states found"),
        (whole, pairs, True, "TA: no step with two known states behind it is left"),
    ):
        with pytest.raises(Refusal, match=line):
            batches.check(Task(ts, ta), SimpleNamespace(ordered=ordered))  # type: ignore[arg-type]
