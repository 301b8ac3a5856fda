"""TaskData: statistics of TA, and which rows its batches hold.

Every state names its row, so that a batch tells where its rows came from.
"""

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
from lightning import Trainer

from tailo_pl.data import trajectories
from tailo_pl.data.datamodule import TaskData, state_statistics
from tailo_pl.data.draws import StepGenerator, UnmarkedRows, uniform_rows
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

MakeData = Callable[..., TaskData]


@pytest.fixture
def ts(trajectories_of: Callable[..., Trajectories]) -> Trajectories:
    """Five kept states, 1001 1002 1004 1005 1006, out of eight."""
    whole = trajectories_of(np.arange(1000, 1008)[:, None] * [1, 1], [8])
    return whole.drop(np.isin(np.arange(8), [0, 3, 7]))


@pytest.fixture
def ta(trajectories_of: Callable[..., Trajectories]) -> Trajectories:
    """Four trajectories of 10 rows each, of which rows 0, 13 and 39 are dropped; the action is the row over 100."""
    rows = np.arange(40)
    whole = trajectories_of(rows[:, None] * [1, 1], [10, 10, 10, 10], actions=rows[:, None] / [100, 100])
    return whole.drop(np.isin(rows, [0, 13, 39]))


def batches(data: TaskData, make_trainer: Callable[..., Trainer], count: int) -> list[Any]:
    data.trainer = make_trainer(max_steps=1)
    return list(islice(data.train_dataloader(), count))


def drawn(side: torch.Tensor) -> set[int]:
    return set(side[:, 0].int().tolist())


class TestStatistics:
    def test_of_the_kept_steps_only(self, task_data: MakeData, trajectories_of: Callable[..., Trajectories]) -> None:
        rng = np.random.default_rng(0)
        states = rng.normal([5, -300], [2, 40], (60, 2))
        lost = rng.random(60) < 0.3
        states[lost] = 1e6  # would show
        ta = trajectories_of(states, [20, 40]).drop(lost)
        data = task_data(trajectories_of(states[:3], [3]), ta, batches="pairs", std_floor=1e-3)
        mean, std = data.statistics
        kept = states[~lost].astype(np.float32).astype(np.float64)
        np.testing.assert_allclose(mean, kept.mean(0), rtol=1e-6)
        np.testing.assert_allclose(std, kept.std(0) + 1e-3, rtol=1e-6)
        assert mean.dtype == std.dtype == torch.float32

    def test_in_chunks(self, monkeypatch: pytest.MonkeyPatch, ta: Trajectories) -> None:
        whole = state_statistics(ta)
        monkeypatch.setattr(trajectories, "CHUNK_BYTES", 7 * ta.observations[0].nbytes)  # 37 rows: five and a rest
        for chunked, expected in zip(state_statistics(ta), whole, strict=True):
            np.testing.assert_allclose(chunked, expected, rtol=1e-12)
        np.testing.assert_allclose(whole[0], ta.observations.mean(0), rtol=1e-6)

    def test_nearly_constant_dimension_far_from_zero(self, trajectories_of: Callable[..., Trajectories]) -> None:
        # In float32 the neighbours of 4096 are 2^-11 apart or more; alternate between two of them.
        states = np.where(np.arange(1000)[:, None] % 2 == 0, 4096.0, 4096.0 + 2**-10)
        mean, std = state_statistics(trajectories_of(states, [1000]))
        np.testing.assert_allclose(mean, 4096 + 2**-11, rtol=1e-12)
        np.testing.assert_allclose(std, 2**-11, rtol=1e-6)

    def test_constant_dimension_gets_the_floor(
        self, task_data: MakeData, trajectories_of: Callable[..., Trajectories]
    ) -> None:
        constant = trajectories_of(np.full((9, 1), 3.0), [9])
        _, std = task_data(constant, constant, batches="pairs").statistics
        assert std.item() == pytest.approx(1e-4)


class TestPairs:
    @pytest.mark.parametrize(("batch_size", "size"), [(3, 3), (5, 5), (512, 5)])
    def test_size_is_at_most_the_states_of_ts(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories, batch_size: int, size: int
    ) -> None:
        (batch,) = batches(task_data(ts, ta, batches="pairs", batch_size=batch_size), make_trainer, 1)
        assert batch.size == size
        assert batch.ts.shape == batch.u.shape == (size, 2)
        assert batch.mix.shape == (size,)
        assert batch.ts.dtype == batch.u.dtype == batch.mix.dtype == torch.float32

    def test_both_sides_draw_all_and_only_kept_rows(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        many = batches(task_data(ts, ta, batches="pairs"), make_trainer, 150)
        assert drawn(torch.cat([batch.ts for batch in many])) == {1001, 1002, 1004, 1005, 1006}
        assert drawn(torch.cat([batch.u for batch in many])) == set(range(40)) - {0, 13, 39}
        mix = torch.cat([batch.mix for batch in many])
        assert 0 <= mix.min() < 0.01 and 0.99 < mix.max() < 1
        assert mix.mean().item() == pytest.approx(0.5, abs=0.05)

    def test_safe_negatives_come_from_the_marked_trajectories(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        marks = np.array([False, True, False, True])
        many = batches(task_data(ts, ta, batches="pairs", negatives=marks), make_trainer, 120)
        assert drawn(torch.cat([batch.u for batch in many])) == ({*range(10, 20)} | {*range(30, 39)}) - {13}
        assert drawn(torch.cat([batch.ts for batch in many])) == {1001, 1002, 1004, 1005, 1006}

    def test_statistics_stay_those_of_all_ta(self, task_data: MakeData, ts: Trajectories, ta: Trajectories) -> None:
        marked = task_data(ts, ta, batches="pairs", negatives=np.array([False, True, False, True]))
        for one, two in zip(marked.statistics, task_data(ts, ta, batches="pairs").statistics, strict=True):
            assert torch.equal(one, two)

    def test_marks_for_another_number_of_trajectories(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        with pytest.raises(UserError, match=r"shape \(3,\) found, expected \(4,\)"):
            batches(task_data(ts, ta, batches="pairs", negatives=np.ones(3, dtype=bool)), make_trainer, 1)


class TestWeighted:
    def test_without_weights_all_count_alike(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        many = batches(task_data(ts, ta, batches="weighted", batch_size=64), make_trainer, 20)
        assert all(batch.size == 64 and (batch.weights == 1).all() for batch in many)
        assert drawn(torch.cat([batch.observations for batch in many])) == set(range(40)) - {0, 13, 39}

    def test_actions_belong_to_their_states(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        (batch,) = batches(task_data(ts, ta, batches="weighted", batch_size=64), make_trainer, 1)
        torch.testing.assert_close(batch.actions, batch.observations / 100)

    def test_uniform_weights_follow_their_rows(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        weights = (ta.observations[:, 0] / 40).astype(np.float32)  # one per kept step, named after its row
        data = task_data(ts, ta, batches="weighted", batch_size=200, weights=weights)
        (batch,) = batches(data, make_trainer, 1)
        torch.testing.assert_close(batch.weights, batch.observations[:, 0] / 40)
        assert drawn(batch.observations) == set(range(40)) - {0, 13, 39}
        assert data.batches.loss_scale == 1

    def test_proportional(self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories) -> None:
        rows = ta.observations[:, 0]
        weights = np.select([rows == 14, rows == 38], [1.0, 0.25], 0.0).astype(np.float32)
        data = task_data(ts, ta, batches="weighted", batch_size=10_000, weights=weights, sampling="proportional")
        (batch,) = batches(data, make_trainer, 1)
        assert drawn(batch.observations) == {14, 38}
        assert (batch.weights == 1).all()
        share = (batch.observations[:, 0] == 14).float().mean().item()
        assert share == pytest.approx(0.8, abs=0.02)  # standard deviation 0.004
        torch.testing.assert_close(batch.actions, batch.observations / 100)

    def test_loss_scale_is_the_mean_weight(self, task_data: MakeData, ts: Trajectories, ta: Trajectories) -> None:
        weights = np.random.default_rng(0).random(37).astype(np.float32)
        data = task_data(ts, ta, batches="weighted", weights=weights, sampling="proportional")
        assert data.batches.loss_scale == pytest.approx(weights.astype(np.float64).mean(), rel=1e-9)
        assert task_data(ts, ta, batches="weighted", sampling="proportional").batches.loss_scale == 1

    def test_proportional_times_scale_is_uniform_with_weights(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        """mean(W) * E[f] over drawn rows is E[W f] over uniform rows: the same minimiser."""
        weights = (np.random.default_rng(0).random(37) ** 4).astype(np.float32)
        drawn_by = task_data(
            ts, ta, batches="weighted", batch_size=200_000, weights=weights, sampling="proportional", stage="policy"
        )
        (batch,) = batches(drawn_by, make_trainer, 1)
        exact = (weights * ta.observations[:, 0]).mean()
        assert drawn_by.batches.loss_scale * batch.observations[:, 0].mean().item() == pytest.approx(exact, rel=0.01)

    def test_weights_for_another_number_of_steps(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        with pytest.raises(UserError, match=r"shape \(40,\) found, expected \(37,\)"):
            batches(task_data(ts, ta, batches="weighted", weights=np.ones(40)), make_trainer, 1)

    def test_ta_without_actions(self, task_data: MakeData, make_trainer, ts: Trajectories) -> None:
        states_only = Trajectories.of(Recording(np.zeros((4, 2), dtype=np.float32), np.array([0])))
        with pytest.raises(UserError, match="no actions recorded"):
            batches(task_data(ts, states_only, batches="weighted"), make_trainer, 1)


def same(one: Any, two: Any) -> bool:
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, two, strict=True))
    return torch.equal(one, two) if isinstance(one, torch.Tensor) else one == two


class TestPurity:
    @pytest.mark.parametrize("kind", ["pairs", "weighted", "transitions"])
    def test_batches_depend_on_seed_stage_and_step_alone(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories, kind: str
    ) -> None:
        one, again = (batches(task_data(ts, ta, batches=kind), make_trainer, 4) for _ in range(2))
        assert all(same(a, b) for a, b in zip(one, again, strict=True))
        assert not any(same(one[0], later) for later in one[1:])
        for change in ({"seed": 1}, {"stage": "other"}):
            (other,) = batches(task_data(ts, ta, batches=kind, **change), make_trainer, 1)
            assert not same(one[0], other)

    @pytest.mark.parametrize("kind", ["pairs", "weighted", "transitions"])
    @pytest.mark.parametrize("ranks", [2, 3])
    def test_ranks_share_one_global_batch(
        self, task_data: MakeData, ts: Trajectories, ta: Trajectories, kind: str, ranks: int
    ) -> None:
        inputs = {"weights": (ta.observations[:, 0] / 40).astype(np.float32)} if kind == "weighted" else {}

        def batch(rank: int, world: int) -> Any:
            data = task_data(ts, ta, batches=kind, batch_size=50, **inputs)
            # What TaskData asks of a trainer; a real one would need that many processes.
            strategy = SimpleNamespace(root_device=torch.device("cpu"))
            data.trainer = SimpleNamespace(
                global_rank=rank, world_size=world, strategy=strategy, global_step=3, lightning_module=None
            )
            return next(iter(data.train_dataloader()))

        whole, shares = batch(0, 1), [batch(rank, ranks) for rank in range(ranks)]
        assert all(share.size == whole.size for share in shares)
        for field, rows in whole._asdict().items():
            # A row of the global batch keeps its partners: the k-th row of each tensor is on the same rank.
            if isinstance(rows, torch.Tensor):
                for rank, share in enumerate(shares):
                    assert torch.equal(getattr(share, field), rows[rank::ranks])

    def test_begins_at_the_trainers_step(
        self, task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories
    ) -> None:
        from_start = batches(task_data(ts, ta, batches="pairs"), make_trainer, 8)
        data = task_data(ts, ta, batches="pairs")
        strategy = SimpleNamespace(root_device=torch.device("cpu"))
        data.trainer = SimpleNamespace(
            global_rank=0, world_size=1, strategy=strategy, global_step=5, lightning_module=None
        )
        resumed = list(islice(data.train_dataloader(), 3))
        assert all(same(a, b) for a, b in zip(from_start[5:], resumed, strict=True))


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("batch_size", -3), ("std_floor", 0.0)])
def test_numbers_out_of_range(task_data: MakeData, ts: Trajectories, ta: Trajectories, name: str, value: float) -> None:
    with pytest.raises(UserError, match=name):
        task_data(ts, ta, batches="pairs", **{name: value})


def test_origins_never_reach_training(task_data: MakeData, make_trainer, ts: Trajectories, ta: Trajectories) -> None:
    relabelled = Trajectories(ta.recording, ta.rows, ta.offsets, np.array(["a", "b", "c", "d"]))
    one, two = (batches(task_data(ts, side, batches="pairs"), make_trainer, 3) for side in (ta, relabelled))
    assert all(same(a, b) for a, b in zip(one, two, strict=True))


@given(st.lists(st.booleans(), min_size=1, max_size=60).filter(lambda marks: not all(marks)), st.integers(0, 99))
def test_what_is_held_out_is_never_drawn(marks: list[bool], step: int) -> None:
    held = np.array(marks)
    drawn = UnmarkedRows(held)(64, StepGenerator(0, "policy").at(step))
    left = torch.from_numpy(np.flatnonzero(~held))
    assert torch.equal(drawn, left[uniform_rows(len(left), 64, StepGenerator(0, "policy").at(step))])
