"""The mean score of the expert's trajectories in TA is logged while a discriminator learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lightning import Trainer

from tailo_pl.callbacks import ExpertScores
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models import PUDiscriminator
from tailo_pl.training.metrics_log import MetricsLog


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("known", [True, False])
def test_it_is_the_mean_over_the_experts_states(
    task_data: Callable[..., TaskData],
    make_trainer: Callable[..., Trainer],
    trajectories_of: Callable[..., Trajectories],
    tmp_path: Path,
    known: bool,
) -> None:
    states = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.array(["expert", "random", "expert"]) if known else "logs"
    ta = trajectories_of(states, [10, 30, 20], labels)
    ts = trajectories_of(states[:10], [10], "expert" if known else "else")
    log = MetricsLog(str(tmp_path), "log")
    trainer = make_trainer(max_steps=6, callbacks=[ExpertScores(3)], logger=log)
    model = PUDiscriminator(2, hidden=(4, 4))
    trainer.fit(model, datamodule=task_data(ts, ta, batches="pairs", batch_size=8))
    logged = {row["step"]: row["expert_score"] for row in log.rows if "expert_score" in row}
    assert logged.keys() == ({3, 6} if known else set())
    if known:
        assert logged[6] == pytest.approx(model.scores(ta)[[*range(10), *range(40, 60)]].mean(), rel=1e-5)


def test_a_period_below_one_is_refused() -> None:
    with pytest.raises(UserError, match=r"expert_scores\.every_n_steps: 0 given"):
        ExpertScores(0)
