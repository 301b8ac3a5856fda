"""How many threads a stage computes with."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
from lightning import Trainer

from tailo_pl.callbacks.threads import Threads, share_of_cores


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "processes", "cores"),
    [("LOCAL_WORLD_SIZE", "1", 8), ("LOCAL_WORLD_SIZE", "3", 2), ("SLURM_NTASKS_PER_NODE", "16", 1), ("NONE", "4", 8)],
)
@pytest.mark.usefixtures("eight_cores")
def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch, name: str, processes: str, cores: int) -> None:
    monkeypatch.setenv(name, processes)
    assert share_of_cores() == cores


@pytest.mark.usefixtures("eight_cores")
def test_never_more_threads_than_the_share(
    monkeypatch: pytest.MonkeyPatch, make_trainer: Callable[..., Trainer]
) -> None:
    before = torch.get_num_threads()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    threads, trainer = Threads(6), make_trainer(max_steps=1)
    threads.setup(trainer, trainer.lightning_module, "fit")
    assert torch.get_num_threads() == 2
    threads.teardown(trainer, trainer.lightning_module, "fit")
    assert torch.get_num_threads() == before
