"""MOPO and MOReL: models of the dynamics, acting in them, and runs that go on where they were stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.line import Line, line_steps
from helpers.runs import small

from tailo_pl import cli
from tailo_pl.config.compose import composed, composed_config
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.models import MOPO, Dynamics, Ensemble, MOReL
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare


@pytest.fixture
def line() -> Trajectories:
    return line_steps()


def make_sure(ensemble: Ensemble, biases: list[list[float]], largest: float = 1.0) -> None:
    """Let members predict these numbers wherever they are."""
    with torch.no_grad():
        for weight in ensemble.network.parameters():
            weight.zero_()
        ensemble.network[-1].bias[:, 0] = torch.tensor(biases)  # type: ignore[union-attr, index, operator]
        ensemble.largest_disagreement.fill_(largest)


@pytest.mark.parametrize("probabilistic", [True, False])
def test_models_learn_a_line(
    probabilistic: bool, line: Trajectories, task_data: Any, make_trainer: Any, seeded: None
) -> None:
    data = task_data(line, line, batches="dynamics", batch_size=32, rewards=line.rewards)
    module = Dynamics(1, [-1], [1], Ensemble(3, 2, (16,), "swish", probabilistic), learning_rate=0.01)
    trainer = make_trainer(max_steps=300, limit_val_batches=0)
    trainer.fit(module, datamodule=data)
    packed = module.hand_on(data.task)["parameters"]
    ensemble = Ensemble(3, 2, (16,), "swish", probabilistic)
    ensemble.prepare(1, 1)
    ensemble.unpack(torch.from_numpy(packed))
    states, actions = torch.tensor([[0.5], [-0.5]]), torch.tensor([[0.8], [-0.4]])
    means, deviations = ensemble.predict(module.standardise(states), actions)
    assert means[ensemble.chosen].mean(0).numpy() == pytest.approx(np.array([[0.5, 0.4], [-0.5, -0.2]]), abs=0.08)
    assert (deviations is not None) == probabilistic and ensemble.largest_disagreement > 0
    # Both are standardised: what the targets' deviation is worth, not the data's units.
    _, errors = module.losses(data.batches.validation())
    assert errors.mean() < 0.05


def test_the_largest_disagreement_is_that_of_all_steps(
    line: Trajectories, task_data: Any, make_trainer: Any, seeded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailo_pl.models.dynamics.PART", 100)
    monkeypatch.setattr("tailo_pl.models.dynamics.LOOKED_AT", 50)
    data = task_data(line, line, batches="dynamics", batch_size=32, rewards=line.rewards)
    module = Dynamics(1, [-1], [1], Ensemble(3, 2, (16,), "relu", False))
    make_trainer(max_steps=1, limit_val_batches=0).fit(module, datamodule=data)
    module.hand_on(data.task)
    drawn = ~np.asarray(line.recording.timeouts, dtype=bool)
    states, actions = torch.from_numpy(line.observations[drawn]), torch.from_numpy(line.recording.actions[drawn])
    means = module.ensemble.predict(module.standardise(states), actions).means[..., 1]
    by_hand = max((one - other).abs().max().item() for one in means for other in means)
    assert module.ensemble.largest_disagreement.item() == pytest.approx(by_hand, rel=1e-5)


def test_the_average_of_mopos_actor_acts(line: Trajectories, task_data: Any, make_trainer: Any, seeded: None) -> None:
    """After updates 1 and 2 an average of decay 0.5 moves by 3/4 and by 3/5; the rate falls to zero."""
    data = task_data(line, line, batches="rollouts", batch_size=8, rewards=line.rewards, environment=Line())
    module = MOPO(
        1, [-1], [1], Ensemble(2, 1, (4,), "relu", True), rollouts=9, schedule="cosine", averaging=0.5, hidden=(4,)
    )
    bias, seen = module.actor.network[-1].bias, []  # type: ignore[union-attr]
    seen.append(bias.detach().clone())
    trained = module.optimizer_step

    def watched(*arguments: Any, **options: Any) -> None:
        trained(*arguments, **options)
        seen.append(bias.detach().clone())

    module.optimizer_step = watched  # type: ignore[method-assign]
    trainer = make_trainer(max_steps=2, limit_val_batches=0)
    trainer.fit(module, datamodule=data)
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])
    expected = seen[0] + 0.75 * (seen[1] - seen[0])
    expected = expected + 0.6 * (seen[2] - expected)
    torch.testing.assert_close(module.acting.network[-1].bias, expected)  # type: ignore[union-attr, index]
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0)


def test_a_step_without_a_next_state_counts_by_its_reward_alone(
    line: Trajectories, task_data: Any, make_trainer: Any
) -> None:
    data = task_data(line.take([0, 1]), line.take([0, 1]), batches="dynamics", rewards=line.rewards[:40])
    data.trainer = make_trainer()
    module = Dynamics(1, [-1], [1], Ensemble(2, 1, (4,), "relu", False))
    make_sure(module.ensemble, [[1.0, 7.0], [0.0, 7.0]])
    batch = data.batches.some(40)
    batch = batch._make(part[-2:] if isinstance(part, torch.Tensor) else 2 for part in batch)
    _, errors = module.losses(batch)
    reward, change = batch.rewards, batch.next_observations[:, 0] - batch.observations[:, 0]
    assert batch.known.tolist() == [1, 0]
    assert errors[0, 0].item() == pytest.approx(((1 - reward[0]) ** 2 + (7 - change[0]) ** 2).item() / 2, rel=1e-5)
    assert errors[1, 1].item() == pytest.approx((reward[1] ** 2).item() / 2, rel=1e-5)


def test_rollouts_of_mopo_by_hand(line: Trajectories, task_data: Any, make_trainer: Any, seeded: None) -> None:
    """Reward 1 and one step to the right, whatever the action: rows end beyond 2, and rewards lack the penalty."""
    ensemble = Ensemble(2, 1, (4,), "relu", True)
    data = task_data(line, line, batches="rollouts", batch_size=8, rewards=line.rewards, environment=Line())
    module = MOPO(1, [-1], [1], ensemble, penalty=0.5, length=3, rollouts=50, every=10, kept=1, hidden=(4,))
    make_sure(ensemble, [[1.0, 1.0, -40.0, -40.0], [1.0, 1.0, 0.0, -40.0]])
    make_trainer(max_steps=1, limit_val_batches=0).fit(module, datamodule=data)
    rows = module._rows
    states, rewards, nexts, done = rows[:, 0], rows[:, 2], rows[:, 3], rows[:, 4]
    # Member 1 is not believed, but its deviation of the reward is the larger: log-variance 0 within [-10, 0.5].
    width = float(torch.exp(0.5 * (0.5 - torch.nn.functional.softplus(torch.tensor(0.5)))))
    assert rewards.mean().item() == pytest.approx(1 - 0.5 * width, abs=0.02)
    assert (nexts - states).numpy() == pytest.approx(np.ones(len(rows)), abs=0.05)
    assert done.bool().tolist() == (nexts > 2).tolist() and 0 < done.sum() < len(rows)
    # Those that ended are not gone on with: the states of the second steps are the others' next states.
    first, second = nexts[:50][done[:50] == 0], states[50 : 50 + int((done[:50] == 0).sum())]
    assert torch.equal(first, second)


@pytest.mark.parametrize(("largest", "cut", "length"), [(2.9, 1.0, 1), (3.1, 0.0, 4)])
def test_paths_of_morel_by_hand(
    largest: float, cut: float, length: int, line: Trajectories, task_data: Any, make_trainer: Any, seeded: None
) -> None:
    """Two members at a distance of 1, a third of 3: known or not, everywhere. Nothing ends on the left."""
    ensemble = Ensemble(2, 2, (4,), "relu", False)
    data = task_data(line, line, batches="paths", batch_size=5, horizon=4, environment=Line())
    module = MOReL(1, [-1], [1], ensemble, unknown_penalty=0.5, hidden=(4,), value_hidden=(4,))
    make_sure(ensemble, [[2.0, -3.0], [2.0, -4.0]], largest)
    trainer = make_trainer(max_steps=1, limit_val_batches=0)
    before = torch.cat([weight.detach().flatten() for weight in module.actor.parameters()])
    trainer.fit(module, datamodule=data)
    paths = module.paths(next(iter(data.train_dataloader())))
    assert paths.cut.item() == cut and paths.there.sum(0).tolist() == [length] * 10
    assert paths.rewards[0].tolist() == [2 - 0.5 * cut] * 10
    assert paths.ended.sum().item() == 10 * cut
    assert not torch.equal(before, torch.cat([weight.detach().flatten() for weight in module.actor.parameters()]))


def test_the_value_of_paths_of_one_step_is_their_reward(
    line: Trajectories, task_data: Any, make_trainer: Any, seeded: None
) -> None:
    """To about a deviation of the reward: more, and advantages would be the value's own noise."""
    ensemble = Ensemble(2, 2, (4,), "relu", False)
    data = task_data(line, line, batches="paths", batch_size=5, horizon=4, environment=Line())
    module = MOReL(1, [-1], [1], ensemble)
    make_sure(ensemble, [[2.0, -3.0], [2.0, -4.0]], 2.9)
    make_trainer(max_steps=100, limit_val_batches=0).fit(module, datamodule=data)
    paths = module.paths(next(iter(data.train_dataloader())))
    values, found = module._advantages(paths)
    assert paths.there.sum(0).tolist() == [1] * 10
    assert values[0].detach().numpy() == pytest.approx(np.full(10, 2.0), abs=1.5)
    assert (values + found)[0].numpy() == pytest.approx(np.full(10, 2.0), abs=1e-4)


SMALL = small(
    10,
    "env=pointmaze",
    "preset.model_based.dynamics_steps=20",
    "preset.model_based.clone_steps=10",
    "preset.model_based.rollouts=40",
    "preset.model_based.starts=4",
    "preset.model_based.horizon=6",
    "method.ensemble.hidden=[8]",
    "checkpoint_every=10",
)
OWN = {
    "mopo": ("preset.model_based.mopo_steps", 40, 27, ("method.stages.dynamics.model.decays=[]",
             "method.stages.policy.model.every=8", "method.stages.policy.model.kept=2",
             "preset.model_based.mopo_schedule=constant")),
    "morel": ("preset.model_based.iterations", 6, 3, ()),
}  # fmt: skip


@pytest.mark.parametrize("method", OWN)
def test_trains_once_and_goes_on_as_if_it_had_not_stopped(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    budget, whole, part, own = OWN[method]
    folders = []
    for name, steps in (("whole", whole), ("stopped", part)):
        folders.append(prepare(composed([*SMALL, *own, f"method={method}", f"name={name}", f"{budget}={steps}"])))
        summary = execute(folders[-1])
        assert summary["failure"] is None and summary["episodes"] == 1
    # The models were trained once: the second run's stage is the first's.
    reused = json.loads((folders[1] / "dynamics/stage.json").read_text())["reused_from"]
    assert reused == f"pointmaze/examples/{method}/whole/dynamics"
    assert cli.main(["train", f"resume={folders[1]}", f"method.stages.policy.max_steps={whole}"]) == 0, (
        capsys.readouterr().err
    )
    ends = [torch.load(folder / "policy/checkpoints/last.ckpt", weights_only=True) for folder in folders]
    assert ends[0]["global_step"] == ends[1]["global_step"] == whole
    for name, value in ends[0]["state_dict"].items():
        assert torch.equal(value, ends[1]["state_dict"][name]), name


def test_refuses_what_it_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    states = rng.normal(size=(50, 4))
    np.savez("ts.npz", observations=states[:9], episode=np.zeros(9, dtype=int))
    np.savez("ta.npz", observations=states, actions=rng.uniform(-1, 1, (50, 2)), terminals=np.arange(50) % 10 == 9)
    own = ("source=files", "source.ts=ts.npz", "source.ta=ta.npz", "setting=given")
    for arguments, line in (
        (("method=mopo", *own, "env=pointmaze"), "method mopo, setting given: TA: no rewards recorded, expected them: this method learns from the task's own reward"),  # noqa: E501
        (("method=morel", *own, "env=none"), "env: none given, expected an environment: PathBatches needs its rules"),
        (("method=mopo", *own, "env=gym", "env.id=Pendulum-v1"), "env: GymEnvironment does not say at which states its episodes end, expected one that does: this method acts in a model"),  # noqa: E501
        (("method=morel", "trainer=ddp"), "trainer.devices: 2 given, but stage dynamics (Dynamics) trains in one process"),  # noqa: E501
        (("method=mopo", "trainer=ddp"), "trainer.devices: 2 given, but stage dynamics (Dynamics) trains in one process"),  # noqa: E501
        (("method=mopo", "method.ensemble.probabilistic=false"), "ensemble.probabilistic: false given, expected true: the penalty is the models' deviation"),  # noqa: E501
    ):  # fmt: skip
        assert cli.main(["train", *arguments]) == 2, arguments
        err = capsys.readouterr().err
        assert err.strip().splitlines()[-1] == f"tailo: {line}"
        assert "Traceback" not in err and not Path("runs").exists()


@pytest.mark.parametrize(
    ("overrides", "length", "penalty"),
    [
        (("env=hopper", "setting=offline_rl"), 5, 5),
        (("env=walker2d", "setting=offline_rl", "setting.dataset=medium-expert"), 1, 2),
        (("env=hopper", "setting=standard"), 5, 1),  # nothing is published for it
        (("env=pointmaze",), 5, 1),
    ],
)
def test_rollouts_suit_the_data_set(overrides: tuple[str, ...], length: int, penalty: int) -> None:
    policy = composed_config(["method=mopo", *overrides])["method"]["stages"]["policy"]["model"]
    assert (policy["length"], policy["penalty"]) == (length, penalty)
