"""RolloutScore looks and never touches; StageCheckpoint keeps what training reached."""

from __future__ import annotations

import csv
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from lightning import Trainer
from lightning.pytorch.loggers import CSVLogger
from numpy.typing import NDArray
from torch import nn

from tailo_pl.callbacks import RolloutScore, StageCheckpoint
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.evaluation import episode_seeds
from tailo_pl.envs.pointmaze import PointMaze
from tailo_pl.envs.reference_scores import Reference
from tailo_pl.envs.simulator import Step
from tailo_pl.errors import UserError
from tailo_pl.models import WeightedBCPolicy

pytestmark = pytest.mark.usefixtures("seeded")


class Walk:
    """Rows on a line: from seed % 3 each step adds the action, which is also the reward; 3 or more is success."""

    observation_dim, action_dim, horizon = 1, 1, 5
    action_low, action_high = np.array([-1.0]), np.array([1.0])

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.position, self.elapsed = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        self.closed = False

    def reset(self, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
        self.position[rows], self.elapsed[rows] = seeds % 3, 0
        return self.position[rows, None]

    def step(self, rows: NDArray[np.int64], actions: NDArray[np.floating]) -> Step:
        self.position[rows] += actions[:, 0]
        self.elapsed[rows] += 1
        done = self.position[rows] >= 3
        truncated = self.elapsed[rows] >= self.horizon
        return Step(self.position[rows, None], actions[:, 0].astype(float), done, truncated, done)

    def close(self) -> None:
        self.closed = True


class Line(Environment):
    observation_dim = 1
    action_low = (-1.0,)
    action_high = (1.0,)
    horizon = 5
    reference = Reference(low=-1.0, high=3.0, source="made up")
    rows: ClassVar[int] = 2
    knows_success = True

    def __init__(self) -> None:
        self.made: list[Walk] = []

    def simulator(self, rows: int) -> Walk:
        self.made.append(Walk(rows))
        return self.made[-1]


class Endless(Line):
    knows_success = False


def half_step_policy() -> WeightedBCPolicy:
    """Acts 0.5 everywhere, and keeps doing so: its learning rate is too small to change a bit."""
    policy = WeightedBCPolicy(1, [-1.0], [1.0], hidden=(4,), learning_rate=1e-30, weight_decay=0.0)
    last = policy.actor.network[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    with torch.no_grad():
        last.bias.copy_(torch.tensor([np.arctanh(0.5), 0.0]))
    return policy


@pytest.fixture
def line_data(task_data, trajectories_of: Callable[..., Trajectories]) -> Callable[[], TaskData]:
    ta = trajectories_of(np.random.default_rng(0).normal(size=(40, 1)), [20, 20], actions=np.full((40, 1), 0.3))
    return lambda: task_data(ta, ta, batches="weighted", batch_size=8)


@pytest.fixture
def maze_data(task_data, trajectories_of: Callable[..., Trajectories]) -> Callable[[], TaskData]:
    ta = trajectories_of(np.random.default_rng(0).normal(4, 1, (200, 4)), [100, 100])
    return lambda: task_data(ta, ta, batches="weighted", batch_size=32)


def maze_policy() -> WeightedBCPolicy:
    torch.manual_seed(3)
    return WeightedBCPolicy(4, [-1.0, -1.0], [1.0, 1.0], hidden=(16, 16), learning_rate=1e-2)


def read_csv(logger: CSVLogger) -> list[dict[str, str]]:
    with (Path(logger.log_dir) / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


class TestRolloutScore:
    def test_training_is_bit_identical_with_and_without(
        self, maze_data: Callable[[], TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        trained = []
        for callbacks in ([], [RolloutScore(PointMaze(), every_n_steps=2, episodes=2)]):
            policy, trainer = maze_policy(), make_trainer(max_steps=5, callbacks=callbacks)
            trainer.fit(policy, datamodule=maze_data())
            noise = torch.rand(3)  # the global generator is where it would be
            trained.append((policy.state_dict(), trainer.optimizers[0].state_dict()["state"], noise))
            evaluations = [callback.history for callback in callbacks]
        assert [[evaluation.step for evaluation in history] for history in evaluations] == [[2, 4, 5]]
        (weights, moments, noise), (weights_with, moments_with, noise_with) = trained
        for name, tensor in weights.items():
            assert torch.equal(tensor, weights_with[name]), name
        for number, state in moments.items():
            for name, tensor in state.items():
                assert torch.equal(tensor, moments_with[number][name])
        assert torch.equal(noise, noise_with)

    @pytest.mark.parametrize(
        ("every", "max_steps", "steps"), [(3, 8, [3, 6, 8]), (4, 8, [4, 8]), (0, 8, [8]), (100, 8, [8]), (1, 2, [1, 2])]
    )
    def test_every_n_steps_and_at_the_end(
        self, line_data, make_trainer: Callable[..., Trainer], every: int, max_steps: int, steps: list[int]
    ) -> None:
        rollout = RolloutScore(Line(), every_n_steps=every, episodes=2)
        make_trainer(max_steps=max_steps, callbacks=[rollout]).fit(half_step_policy(), datamodule=line_data())
        assert [evaluation.step for evaluation in rollout.history] == steps

    def test_numbers_by_hand(self, line_data, make_trainer: Callable[..., Trainer]) -> None:
        rollout = RolloutScore(Line(), episodes=9, seed=4)
        make_trainer(max_steps=1, callbacks=[rollout]).fit(half_step_policy(), datamodule=line_data())
        starts = episode_seeds(4, "rollout", 9) % 3
        assert set(starts.tolist()) == {0, 1, 2}
        # In steps of 0.5 to 3: from 0 it would take 6, so 5 and no success; from 1 it takes 4; from 2 it takes 2.
        lengths = np.array([5, 4, 2])[starts]
        scores = 100 * (lengths * 0.5 + 1) / 4
        (evaluation,) = rollout.history
        assert evaluation.episodes == 9
        assert evaluation.mean_length == pytest.approx(lengths.mean())
        assert evaluation.mean_return == pytest.approx((lengths * 0.5).mean(), rel=1e-5)
        assert evaluation.score == pytest.approx(scores.mean(), rel=1e-5)
        assert evaluation.score_std == pytest.approx(scores.std(), rel=1e-5)
        assert evaluation.success == pytest.approx((starts > 0).mean())

    def test_every_evaluation_plays_the_same_episodes(self, line_data, make_trainer: Callable[..., Trainer]) -> None:
        rollout = RolloutScore(Line(), every_n_steps=1, episodes=5)
        make_trainer(max_steps=3, callbacks=[rollout]).fit(half_step_policy(), datamodule=line_data())
        numbers = {(e.score, e.score_std, e.mean_length, e.success, e.episodes) for e in rollout.history}
        assert len(rollout.history) == 3 and len(numbers) == 1

    def test_logs(self, line_data, make_trainer: Callable[..., Trainer], tmp_path: Path) -> None:
        logger = CSVLogger(tmp_path, name="", version="")
        rollout = RolloutScore(Line(), every_n_steps=2, episodes=4)
        make_trainer(max_steps=5, callbacks=[rollout], logger=logger).fit(half_step_policy(), datamodule=line_data())
        logged = {int(row["step"]): row for row in read_csv(logger) if row.get("rollout/score")}
        assert list(logged) == [2, 4, 5]
        for evaluation in rollout.history:
            row = logged[evaluation.step]
            assert float(row["rollout/score"]) == pytest.approx(evaluation.score)
            assert float(row["rollout/score_std"]) == pytest.approx(evaluation.score_std)
            assert float(row["rollout/return"]) == pytest.approx(evaluation.mean_return)
            assert float(row["rollout/length"]) == pytest.approx(evaluation.mean_length)
            assert float(row["rollout/success"]) == pytest.approx(evaluation.success)

    def test_no_success_where_the_task_has_none(
        self, line_data, make_trainer: Callable[..., Trainer], tmp_path: Path
    ) -> None:
        logger, rollout = CSVLogger(tmp_path, name="", version=""), RolloutScore(Endless(), episodes=2)
        make_trainer(max_steps=1, callbacks=[rollout], logger=logger).fit(half_step_policy(), datamodule=line_data())
        assert rollout.history[0].success is None
        assert not any("rollout/success" in row for row in read_csv(logger))

    def test_one_simulator_no_larger_than_needed_closed_at_the_end(
        self, line_data, make_trainer: Callable[..., Trainer]
    ) -> None:
        for episodes, rows in ((1, 1), (7, Line.rows)):
            environment = Line()
            rollout = RolloutScore(environment, every_n_steps=1, episodes=episodes)
            make_trainer(max_steps=3, callbacks=[rollout]).fit(half_step_policy(), datamodule=line_data())
            (simulator,) = environment.made
            assert simulator.rows == rows
            assert simulator.closed

    @pytest.mark.parametrize(("name", "value"), [("every_n_steps", -1), ("episodes", 0)])
    def test_numbers_out_of_range(self, name: str, value: int) -> None:
        with pytest.raises(UserError, match=rf"rollout\.{name}"):
            RolloutScore(Line(), **{name: value})


class SeenCheckpoint(StageCheckpoint):
    """Notes the steps at which a checkpoint lies on the disk, and its content."""

    def __init__(self, every_n_steps: int) -> None:
        super().__init__(every_n_steps)
        self.seen: dict[int, dict[str, Any]] = {}

    def look(self, trainer: Trainer) -> None:
        if self.path(trainer).exists():
            content = torch.load(self.path(trainer), weights_only=True)
            self.seen[content["global_step"]] = content

    def on_train_batch_end(self, trainer: Trainer, *arguments: Any) -> None:
        super().on_train_batch_end(trainer, *arguments)
        self.look(trainer)

    def on_train_end(self, trainer: Trainer, *arguments: Any) -> None:
        super().on_train_end(trainer, *arguments)
        self.look(trainer)


class TestStageCheckpoint:
    @pytest.mark.parametrize(("every", "steps"), [(0, [7]), (3, [3, 6, 7]), (7, [7]), (100, [7])])
    def test_when(self, maze_data, make_trainer: Callable[..., Trainer], every: int, steps: list[int]) -> None:
        checkpoint = SeenCheckpoint(every)
        policy = maze_policy()
        trainer = make_trainer(max_steps=7, callbacks=[checkpoint], enable_checkpointing=True)
        trainer.fit(policy, datamodule=maze_data())
        assert list(checkpoint.seen) == steps
        for name, tensor in policy.state_dict().items():
            assert torch.equal(tensor, checkpoint.seen[7]["state_dict"][name])

    def test_where(self, maze_data, make_trainer: Callable[..., Trainer], tmp_path: Path) -> None:
        make_trainer(max_steps=1, callbacks=[StageCheckpoint()], enable_checkpointing=True).fit(
            maze_policy(), datamodule=maze_data()
        )
        assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*.ckpt")] == [Path("checkpoints/last.ckpt")]
        logger = CSVLogger(tmp_path / "stage", name="", version="")
        make_trainer(max_steps=1, callbacks=[StageCheckpoint()], enable_checkpointing=True, logger=logger).fit(
            maze_policy(), datamodule=maze_data()
        )
        assert (tmp_path / "stage" / "checkpoints" / "last.ckpt").is_file()

    def test_last_evaluation_is_in_the_last_checkpoint(
        self, line_data, make_trainer: Callable[..., Trainer], tmp_path: Path
    ) -> None:
        rollout = RolloutScore(Line(), every_n_steps=2, episodes=2)
        make_trainer(max_steps=3, callbacks=[StageCheckpoint(), rollout], enable_checkpointing=True).fit(
            half_step_policy(), datamodule=line_data()
        )
        content = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
        history = content["callbacks"][rollout.state_key]["history"]
        assert [evaluation["step"] for evaluation in history] == [2, 3]

    def test_going_on_from_a_checkpoint_is_as_if_never_interrupted(
        self, maze_data, line_data, make_trainer: Callable[..., Trainer], tmp_path: Path
    ) -> None:
        whole = maze_policy()
        make_trainer(max_steps=6).fit(whole, datamodule=maze_data())
        first = maze_policy()
        trainer = make_trainer(max_steps=4, callbacks=[StageCheckpoint()], enable_checkpointing=True)
        trainer.fit(first, datamodule=maze_data())
        torch.manual_seed(99)
        resumed = WeightedBCPolicy(4, [-1.0, -1.0], [1.0, 1.0], hidden=(16, 16), learning_rate=1e-2)
        make_trainer(max_steps=6).fit(resumed, datamodule=maze_data(), ckpt_path=str(StageCheckpoint.path(trainer)))
        for name, tensor in whole.state_dict().items():
            assert torch.equal(tensor, resumed.state_dict()[name]), name
        assert not torch.equal(first.actor.network[0].weight, resumed.actor.network[0].weight)

    def test_negative_interval(self) -> None:
        with pytest.raises(UserError, match="every_n_steps"):
            StageCheckpoint(-1)


def test_history_survives_a_checkpoint(line_data, make_trainer: Callable[..., Trainer]) -> None:
    before = RolloutScore(Line(), episodes=3)
    make_trainer(max_steps=2, callbacks=[before]).fit(half_step_policy(), datamodule=line_data())
    after = RolloutScore(Line(), episodes=3)
    after.load_state_dict(before.state_dict())
    assert after.history == before.history and len(after.history) == 1


def test_signals_mean_after_training_what_they_meant_before(line_data, make_trainer: Callable[..., Trainer]) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    trainer = make_trainer(max_steps=3, callbacks=[StageCheckpoint()], enable_checkpointing=True)
    trainer.fit(half_step_policy(), datamodule=line_data())
    assert {number: signal.getsignal(number) for number in before} == before
