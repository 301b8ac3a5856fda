"""Several processes at one run: who they are, and how they wait for each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def process_group() -> Iterator[None]:
    """Join the other processes that torchrun started, for all stages of the run; alone, do nothing."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        dist.init_process_group("cpu:gloo,cuda:nccl")
    else:
        dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return not dist.is_initialized() or dist.get_rank() == 0


def wait_for_all() -> None:
    """Return once every process has come here."""
    if dist.is_initialized():
        dist.barrier()
