"""The absorbing state has no action: whatever the rows that stand for it hold, nothing is learnt from it."""

from __future__ import annotations

import pytest
import torch
from lightning import Trainer

from tailo_pl.data.batches import TransitionBatch
from tailo_pl.losses.dice import Divergence
from tailo_pl.models import SMODICE


def gradients(batch: TransitionBatch, divergence: Divergence) -> torch.Tensor:
    torch.manual_seed(0)
    module = SMODICE(3, [-1.0, -1.0], [1.0, 1.0], divergence=divergence, absorbing=True, hidden=(8,))
    module.trainer = Trainer(accelerator="cpu", devices=1, logger=False, max_steps=9, enable_checkpointing=False)
    module.training_step(batch, 0).backward()
    return torch.cat([weight.grad.flatten() for weight in module.parameters() if weight.grad is not None])


@pytest.mark.parametrize("divergence", ["kl", "chi2"])
def test_rows_of_the_absorbing_state_may_hold_anything(divergence: Divergence) -> None:
    torch.manual_seed(1)
    absorbing = torch.tensor([0.0, 1, 0, 0, 1, 0])
    marked = absorbing[:, None] > 0
    batch = TransitionBatch(
        torch.randn(6, 3), torch.rand(6, 2) - 0.5, torch.randn(6, 3), torch.zeros(6), torch.randn(6),
        torch.randn(6, 3), absorbing, torch.randn(6, 2), None, 6,
    )  # fmt: skip
    other = batch._replace(
        observations=torch.where(marked, 3.0, batch.observations),
        actions=torch.where(marked, 0.9, batch.actions),
        next_observations=torch.where(marked, -2.0, batch.next_observations),
        noise=torch.where(marked, 1.5, batch.noise),
    )
    assert torch.equal(gradients(batch, divergence), gradients(other, divergence))
    overflowing = batch._replace(rewards=torch.where(absorbing > 0, 200.0, batch.rewards))
    assert torch.isfinite(gradients(overflowing, divergence)).all()
