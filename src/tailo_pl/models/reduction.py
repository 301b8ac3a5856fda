"""Means over the whole batch, wherever its rows are."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_nn
from torch import Tensor


def batch_max(values: Tensor) -> Tensor:
    """The largest value of the global batch, the same on all ranks; not differentiable."""
    largest = values.detach().float().max()
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return largest


def batch_log_mean_exp(values: Tensor, count: int) -> Tensor:
    """log mean exp over the global batch, differentiable, without overflow.

    Args:
        values: one per local row.
        count: rows of the global batch.
    """
    largest = batch_max(values)
    (mean,) = batch_means([torch.exp(values.float() - largest)], [count])
    return largest + torch.log(mean)


def batch_means(rows: list[Tensor], counts: list[int]) -> list[Tensor]:
    """Mean of each tensor over the global batch, differentiable, identical on all ranks.

    Under DDP each rank holds a share of the rows, and shares may differ by one. Summing over ranks and dividing by
    the true count makes the loss on every rank the loss of the global batch, whatever non-linearity follows; DDP's
    averaging of the gradients then gives the gradient one process would have.

    Args:
        rows: one value per local row, for each quantity.
        counts: rows of the global batch, for each quantity.
    """
    sums = [values.float().sum() for values in rows]
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        sums = list(dist_nn.all_reduce(torch.stack(sums)).unbind())  # type: ignore[no-untyped-call]
    return [total / count for total, count in zip(sums, counts, strict=True)]
