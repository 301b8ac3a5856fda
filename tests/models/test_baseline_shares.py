"""Under DDP: the gradients of two processes with half a batch each, averaged, are those of the whole batch."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lightning import Trainer

from tailo_pl.data.batches import ExpertRows, TransitionBatch
from tailo_pl.models import IQL, MARWIL, SMODICE, LobsDICE, ReCOIL
from tailo_pl.models.policy import PolicyModule

ROWS = 9  # shares of five and four


def case(make: Callable[[], PolicyModule]) -> tuple[PolicyModule, TransitionBatch]:
    torch.manual_seed(0)
    flags = (torch.rand(2, ROWS) < 0.3).float()
    expert = ExpertRows(*(torch.randn(ROWS, 3) for _ in range(2)), None, torch.rand(ROWS, 2), *torch.randn(2, ROWS, 3))
    batch = TransitionBatch(
        torch.randn(ROWS, 3), torch.rand(ROWS, 2) - 0.5, torch.randn(ROWS, 3), flags[0], torch.randn(ROWS),
        torch.randn(ROWS, 3), flags[1], torch.randn(ROWS, 2), expert, ROWS,
    )  # fmt: skip
    module = make()
    module.trainer = Trainer(accelerator="cpu", devices=1, logger=False, max_steps=9, enable_checkpointing=False)
    return module, batch


def share(part: Any, rank: int) -> Any:
    if isinstance(part, torch.Tensor):
        return part[rank::2]
    return type(part)(*(share(field, rank) for field in part)) if isinstance(part, tuple) else part


def gradients(module: PolicyModule, batch: TransitionBatch) -> dict[str, torch.Tensor]:
    module.zero_grad()
    module.training_step(batch, 0).backward()
    return {name: one.grad.clone() for name, one in module.named_parameters() if one.grad is not None}


BOUNDS = ([-1.0, -1.0], [1.0, 1.0])
CASES: dict[str, Callable[[], PolicyModule]] = {
    "smodice-kl": lambda: SMODICE(3, *BOUNDS, divergence="kl", absorbing=True, hidden=(8,)),
    "smodice-chi2": lambda: SMODICE(3, *BOUNDS, divergence="chi2", hidden=(8,)),
    "lobsdice": lambda: LobsDICE(3, *BOUNDS, hidden=(8,)),
    "marwil": lambda: MARWIL(3, *BOUNDS, hidden=(8,)),
    "otr": lambda: IQL(3, *BOUNDS, hidden=(8,)),
    "recoil": lambda: ReCOIL(3, *BOUNDS, expert="pairs", hidden=(8,)),
}


def process(rank: int, meeting: str) -> None:
    torch.set_num_threads(1)
    whole = {name: gradients(*case(make)) for name, make in CASES.items()}  # alone, before the two have met
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    for name, make in CASES.items():
        module, batch = case(make)
        for weight, gradient in gradients(module, share(batch, rank)).items():
            dist.all_reduce(gradient)
            assert torch.allclose(gradient / 2, whole[name].pop(weight), atol=1e-5), (name, weight)
        assert not whole[name], (name, list(whole[name]))
    dist.destroy_process_group()


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_shares_add_up_to_the_global_batch(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=process, args=(rank, str(tmp_path / "meeting"))) for rank in range(2)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(120)
    codes = [one.exitcode for one in processes]
    for one in processes:
        one.kill()
    assert codes == [0, 0]
