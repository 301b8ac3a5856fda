"""Stages through torch.compile."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import numpy as np
import pytest
import torch
from lightning import Trainer
from torch import Tensor

from tailo_pl.callbacks import Compiled
from tailo_pl.config.compose import composed
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.heads import Gaussian
from tailo_pl.training.building import check_stages


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_learns_the_same(
    trajectories_of: Callable[..., Trajectories],
    task_data: Callable[..., TaskData],
    make_trainer: Callable[..., Trainer],
) -> None:
    ta = trajectories_of(np.random.default_rng(0).normal(size=(60, 3)), [20, 40])
    trained: list[Tensor] = []
    for callbacks in ([], [Compiled()]):
        torch.manual_seed(0)
        policy = WeightedBCPolicy(3, [-1, -1], [1, 1], head=Gaussian("censored"), learning_rate=1e-3, hidden=(16, 16))
        data = task_data(ta, ta, batches="weighted", batch_size=32)
        make_trainer(max_steps=5, callbacks=callbacks).fit(policy, datamodule=data)
        assert "row_losses" not in vars(policy)  # nothing of it stays behind
        trained.append(torch.nn.utils.parameters_to_vector(policy.parameters()))
    torch.testing.assert_close(*trained, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("method", "module"), [("oril", "TD3BC"), ("marwil", "MARWIL")])
def test_a_stage_that_is_not_compiled_is_refused_before_anything_runs(method: str, module: str) -> None:
    own = ["env=pointmaze", f"method={method}", "preset.baselines.actor=own", "compile=true"]
    with pytest.raises(UserError, match=rf"compile: true given, but stage policy \({module}\) is not compiled"):
        check_stages(composed(own))


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="compile: no C\\+\\+ compiler found"):
        check_stages(composed(["env=pointmaze", "compile=true", "trainer=cpu"]))
