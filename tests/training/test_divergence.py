"""A number that is no longer finite ends a stage at its step, leaves a good checkpoint, and scores 0 from there on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.runs import small

from tailo_pl import cli
from tailo_pl.callbacks import StageCheckpoint
from tailo_pl.data.draws import StepGenerator, uniform_rows
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.stage import Diverged

SMALL = small(
    30,
    "env=pointmaze",
    "name=a",
    "preset.policy_steps=60",
    "preset.held_out.trajectories=0",
    "preset.rollout.every_n_steps=20",
    "trainer.log_every_n_steps=7",
    "checkpoint_every=10",
)


def test_the_step_is_that_of_the_first_bad_batch(
    tmp_path: Path, task_data: Callable[..., Any], make_trainer: Callable[..., Any],
    trajectories_of: Callable[..., Trajectories], seeded: None,
) -> None:  # fmt: skip
    actions = np.zeros((400, 2), dtype=np.float32)
    actions[123] = np.nan
    ta = trajectories_of(np.random.default_rng(0).normal(0, 1, (400, 3)), [200, 200], actions=actions)
    data = task_data(ta, ta, batches="weighted", batch_size=8)
    drawn = [uniform_rows(400, 8, StepGenerator(0, "stage").at(step)) for step in range(200)]
    first = next(step for step, rows in enumerate(drawn, start=1) if 123 in rows)
    assert 10 < first < 190
    trainer = make_trainer(
        max_steps=200, log_every_n_steps=10, callbacks=[StageCheckpoint(every_n_steps=3)], enable_checkpointing=True
    )
    with pytest.raises(Diverged) as failure:
        trainer.fit(WeightedBCPolicy(3, [-1, -1], [1, 1]), datamodule=data)
    assert failure.value.step == first
    checkpoint = torch.load(StageCheckpoint.path(trainer), weights_only=True)
    assert 0 < checkpoint["global_step"] < first
    assert all(torch.isfinite(weight).all() for weight in checkpoint["state_dict"].values())


@pytest.mark.parametrize("stage", ["pretrain", "policy"])
def test_a_run_records_it_and_scores_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rate = f"method.stages.{stage}.model.learning_rate=1e38"
    assert cli.main(["train", *SMALL, rate]) == 0
    err = capsys.readouterr().err
    run = Path("runs/pointmaze/examples/tailo/a")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["failure"]["stage"] == stage
    step = summary["failure"]["step"]
    assert f"stage {stage}: not finite at step {step} (batch of seed 0, stage {stage}, step {step - 1})" in err
    assert summary["score"] == 0.0
    if stage == "policy":
        assert [(one["step"], one["score"]) for one in summary["evaluations"] if one["step"] >= step]
        assert all(one["score"] == 0 for one in summary["evaluations"] if one["step"] >= step)
        assert summary["evaluations"][-1]["step"] == 60
    else:
        assert not (run / "policy").exists()
    assert cli.main(["evaluate", str(run)]) == 2
    assert f"stage {stage} ended in a numerical error at step {step}" in capsys.readouterr().err
    assert summary["verdict"]["level"] == "bad"
    assert cli.main(["advise", str(run), str(run)]) == 0  # which has nothing to weigh, and says why
    assert f"stage {stage} ended in a numerical error at step {step}" in capsys.readouterr().out
