"""Several processes at one run, started by `launch`, torchrun or srun: who they are, how they wait for each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

PATIENCE = timedelta(hours=2)  # the others wait while the first makes data or rewards, which may take a while


@contextmanager
def process_group() -> Iterator[None]:
    """Join the other processes of the run, for all its stages; alone, do nothing."""
    _adopt_slurm()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
        dist.init_process_group("cpu:gloo,cuda:nccl", timeout=PATIENCE)
    else:
        dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def _adopt_slurm() -> None:
    """srun tells its processes who they are in variables of its own; torch reads others."""
    if "WORLD_SIZE" in os.environ or not SLURMEnvironment.detect():
        return
    slurm = SLURMEnvironment()
    os.environ |= {
        "WORLD_SIZE": str(slurm.world_size()),
        "RANK": str(slurm.global_rank()),
        "LOCAL_RANK": str(slurm.local_rank()),
        "MASTER_ADDR": slurm.main_address,
        "MASTER_PORT": str(slurm.main_port),
    }


def will_be_first() -> bool:
    """What `is_first` will say once the processes have joined."""
    return int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0"))) == 0


def is_first() -> bool:
    """Whether this process is the one that writes files."""
    return not dist.is_initialized() or dist.get_rank() == 0


def wait_for_all() -> None:
    """Return once every process has come here."""
    if dist.is_initialized():
        dist.barrier()
