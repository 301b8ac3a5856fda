"""Several networks side by side: each is a network of its own, trained on its own rows; together they act as one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Trainer
from torch import Tensor, nn

from tailo_pl import load_policy
from tailo_pl.callbacks import HeldOutChoice
from tailo_pl.data.batches import WeightedBatch
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.draws import rank_share
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.heads import Gaussian, Head, Mixture, Regression
from tailo_pl.models.members import MemberLinear, MemberNorm
from tailo_pl.models.networks import mlp

pytestmark = pytest.mark.usefixtures("seeded")
BOUNDS = ([-1.0, 0.0], [3.0, 0.5])


def small(**arguments: Any) -> WeightedBCPolicy:
    return WeightedBCPolicy(3, *BOUNDS, **{"head": Regression(), "hidden": (8, 8), **arguments})


def alone(policy: WeightedBCPolicy, member: int) -> nn.Sequential:
    """One member as a network of torch's own layers."""
    layers: list[nn.Module] = []
    for layer in policy.actor.network:
        if isinstance(layer, MemberLinear):
            linear = nn.Linear(*layer.weight.shape[1:])
            linear.load_state_dict({"weight": layer.weight[member].T, "bias": layer.bias[member, 0]})
            layers.append(linear)
        elif isinstance(layer, MemberNorm):
            norm = nn.LayerNorm(layer.weight.shape[-1])
            norm.load_state_dict({"weight": layer.weight[member, 0], "bias": layer.bias[member, 0]})
            layers.append(norm)
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


class TestNetwork:
    def test_layers_in_order(self) -> None:
        for members, linear, norm in ((1, nn.Linear, nn.LayerNorm), (3, MemberLinear, MemberNorm)):
            plain, layered = (mlp(3, (8, 8), 2, nn.ReLU, norm=kind, members=members) for kind in ("none", "layer"))
            assert [type(layer) for layer in plain] == [linear, nn.ReLU, linear, nn.ReLU, linear]
            assert [type(layer) for layer in layered] == [linear, norm, nn.ReLU, linear, norm, nn.ReLU, linear]

    def test_one_member_begins_with_the_weights_it_always_had(self) -> None:
        torch.manual_seed(5)
        network = small().actor.network
        torch.manual_seed(5)
        for layer, plain in zip(network[::2], (nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 2)), strict=True):
            assert torch.equal(layer.weight, plain.weight) and torch.equal(layer.bias, plain.bias)

    def test_members_begin_apart_each_as_one_network_would(self) -> None:
        layer = MemberLinear(50, 4, 16)
        assert len({tuple(weights.flatten().tolist()) for weights in layer.weight}) == 50
        # nn.Linear: uniform within +- 1/sqrt(4); the mean of |w| is half of it.
        assert layer.weight.abs().max() <= 0.5 and layer.weight.abs().mean().item() == pytest.approx(0.25, abs=0.01)
        assert layer.bias is not None and layer.bias.abs().max() <= 0.5

    @pytest.mark.parametrize("norm", ["none", "layer"])
    def test_each_is_a_network_of_its_own(self, norm: Any) -> None:
        policy, states = small(members=3, norm=norm), torch.randn(7, 3)
        with torch.no_grad():
            for weight in policy.actor.parameters():
                weight.add_(0.1 * torch.randn_like(weight))  # a norm begins with ones and zeros
            outputs = policy.actor.member_outputs(states)
            assert outputs.shape == (3, 7, 2)
            for member in range(3):
                torch.testing.assert_close(outputs[member], alone(policy, member)(states))

    def test_bad_arguments(self) -> None:
        with pytest.raises(UserError, match=r"members: 0 given"):
            small(members=0)
        with pytest.raises(UserError, match=r"hidden: 0 given"):
            small(hidden=(8, 0))


class TestActing:
    @pytest.mark.parametrize("head", [Gaussian(), Regression(), Mixture(Regression(), 2)])
    def test_by_the_mean_of_the_members(self, head: Head) -> None:
        policy, states = small(head=head, members=3), torch.randn(5, 3)
        with torch.no_grad():
            each = [head.act(alone(policy, member)(states)) for member in range(3)]
            torch.testing.assert_close(policy.acting(states), (each[0] + each[1] + each[2]) / 3)
            torch.testing.assert_close(policy(states), policy.bounds((each[0] + each[1] + each[2]) / 3))

    def test_spread(self) -> None:
        # Members that always give 0.5, 0.5 and -1: deviations 0.70710678 and, of 0, 0, 0, none; their mean half of it.
        policy = small(members=3)
        last = policy.actor.network[-1]
        with torch.no_grad():
            last.weight.zero_()
            last.bias.copy_(torch.tensor([[[0.5, 0.0]], [[0.5, 0.0]], [[-1.0, 0.0]]]).atanh().clamp(-20, 20))
            spread = policy.spread(torch.randn(4, 3))
        assert spread is not None and spread.tolist() == pytest.approx([0.70710678 / 2] * 4)

    def test_equal_members_do_not_differ(self) -> None:
        policy = small(members=3, averaging=0.9)
        with torch.no_grad():
            for weight in policy.parameters():
                weight.copy_(weight[:1].expand_as(weight))
            spread = policy.spread(torch.randn(4, 3))
        assert spread is not None and spread.abs().max() < 1e-6

    def test_one_member_has_no_spread(self) -> None:
        assert small().spread(torch.randn(4, 3)) is None


class TestTraining:
    def test_row_i_is_that_of_member_i(self, make_trainer: Callable[..., Trainer]) -> None:
        policy = small(members=3)
        policy.trainer = make_trainer(max_steps=1000)
        batch = WeightedBatch(torch.randn(12, 3), torch.rand(12, 2) * 0.5, torch.rand(12), 12)
        policy.training_step(batch, 0).backward()
        for member in range(3):
            network, own = alone(policy, member), slice(member, None, 3)
            outputs = network(batch.observations[own])
            losses = policy.actor.head.losses(outputs, policy.bounds.normalise(batch.actions[own]))
            (batch.weights[own] * losses).mean().backward()  # as if it were trained alone
            for ours, plain in zip(policy.actor.network[::2], network[::2], strict=True):
                torch.testing.assert_close(ours.weight.grad[member], plain.weight.grad.T)
                torch.testing.assert_close(ours.bias.grad[member, 0], plain.bias.grad)

    @pytest.fixture
    def data(self, task_data: Any, trajectories_of: Callable[..., Trajectories]) -> Callable[..., TaskData]:
        states = np.random.default_rng(0).normal(size=(300, 3))
        actions = 0.25 + 0.2 * np.sign(states[:, :2])
        ta = trajectories_of(states, [50] * 6, actions=actions)
        return lambda **arguments: task_data(ta, ta, batches="weighted", batch_size=20, **arguments)

    def test_every_member_has_a_batch_of_its_own(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer]
    ) -> None:
        seen: list[WeightedBatch] = []

        class Watched(WeightedBCPolicy):
            def training_step(self, batch: WeightedBatch, batch_idx: int) -> Tensor:
                seen.append(batch)
                return super().training_step(batch, batch_idx)

        policy = Watched(3, *BOUNDS, head=Regression(), hidden=(8,), members=3)
        make_trainer(max_steps=2).fit(policy, datamodule=data())
        assert [(len(batch.observations), batch.size) for batch in seen] == [(60, 60)] * 2
        rows = [{tuple(row) for row in seen[0].observations[member::3].tolist()} for member in range(3)]
        assert rows[0] != rows[1] != rows[2]

    def test_processes_share_the_rows_of_every_member_alike(self) -> None:
        drawn = torch.arange(14).view(-1, 2)  # seven rows of two members
        shares = [rank_share(drawn, rank, 2).flatten().tolist() for rank in range(2)]
        assert shares == [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11]]
        assert [number % 2 for number in shares[1]] == [0, 1] * 3  # row i is still that of member i % 2

    @pytest.mark.parametrize(
        "arguments",
        [
            {"members": 3, "norm": "layer"},
            {"head": Mixture(Regression(), 3)},
            {"head": Gaussian("censored"), "members": 2},
        ],
        ids=["members", "mixture", "both"],
    )
    def test_going_on_from_a_checkpoint_is_as_if_never_interrupted(
        self,
        data: Callable[..., TaskData],
        make_trainer: Callable[..., Trainer],
        tmp_path: Path,
        arguments: dict[str, Any],
    ) -> None:
        def policy() -> WeightedBCPolicy:
            return small(averaging=0.9, learning_rate=1e-2, **arguments)

        torch.manual_seed(0)
        whole = policy()
        make_trainer(max_steps=9).fit(whole, datamodule=data(held_out=1))
        torch.manual_seed(0)
        trainer = make_trainer(max_steps=4)
        trainer.fit(policy(), datamodule=data(held_out=1))
        trainer.save_checkpoint(tmp_path / "x.ckpt")
        resumed = policy()  # other initial weights
        make_trainer(max_steps=9).fit(resumed, datamodule=data(held_out=1), ckpt_path=str(tmp_path / "x.ckpt"))
        for name, tensor in whole.state_dict().items():
            assert torch.equal(tensor, resumed.state_dict()[name]), name

    @pytest.mark.parametrize("head", [Gaussian("censored"), Regression(), Mixture(Regression(), 2)])
    def test_learns_and_is_chosen_by_what_is_held_out(
        self, data: Callable[..., TaskData], make_trainer: Callable[..., Trainer], tmp_path: Path, head: Head
    ) -> None:
        torch.manual_seed(0)
        policy = small(head=head, members=3, averaging=0.8, learning_rate=1e-2, hidden=(32, 32))
        choice, task = HeldOutChoice(), data(held_out=1)
        trainer = make_trainer(
            max_steps=150, callbacks=[choice], val_check_interval=50, check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
        )  # fmt: skip
        trainer.fit(policy, datamodule=task)
        held_out = task.batches.validation()
        with torch.no_grad():
            errors = policy.acting(policy.standardise(held_out.observations)) - policy.bounds.normalise(
                held_out.actions
            )
        assert choice.best == pytest.approx(errors.square().mean().item(), rel=1e-4)
        assert choice.best < 0.1  # of recorded actions that vary by 0.1 and 0.8
        trainer.save_checkpoint(tmp_path / "x.ckpt")
        states = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
        loaded = load_policy(tmp_path / "x.ckpt")
        with torch.no_grad():
            np.testing.assert_array_equal(loaded(states), policy(torch.from_numpy(states)))
            expected = policy.spread(torch.from_numpy(states))
        spread = loaded.spread(states)
        assert spread is not None and expected is not None
        np.testing.assert_allclose(spread, expected)
        far = loaded.spread(30 * states)
        one = loaded.spread(states[0])
        assert far is not None and one is not None and one.shape == () and float(one) == pytest.approx(spread[0])
        assert far.mean() > 1.5 * spread.mean()  # states unlike any of the data
