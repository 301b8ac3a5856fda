"""Which rows make batch n: a pure function of (seed, stage, step), so nothing about sampling is ever saved."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tailo_pl.data.rows import Rows


class StepGenerator:
    """Random numbers for one step of one stage: `at(step)` gives the same stream whenever and wherever it is called.

    Args:
        seed: the stage's seed.
        stage: its name.
    """

    def __init__(self, seed: int, stage: str) -> None:
        digest = hashlib.sha256(f"{seed}/{stage}".encode()).digest()
        self._key = int.from_bytes(digest[:8], "little")
        self._generator = torch.Generator()

    def at(self, step: int) -> torch.Generator:
        # PyTorch uses the low 32 bits; with an odd multiplier no two of 2^32 steps of a stage share them.
        mixed = (self._key + step * 0x9E3779B97F4A7C15) % 2**64
        return self._generator.manual_seed(mixed - 2**63)


def uniform_rows(count: int, size: int, generator: torch.Generator) -> Tensor:
    """`size` rows out of `count`, each equally likely, with replacement."""
    return torch.randint(count, (size,), generator=generator)


class UnmarkedRows:
    """Positions that are not marked, which are most of them: number n of them, or some drawn uniformly.

    Args:
        marks: one per position.
    """

    def __init__(self, marks: NDArray[np.bool_]) -> None:
        changes = np.flatnonzero(np.diff(marks, prepend=False, append=False))
        begins, ends = changes[::2], changes[1::2]
        gaps = torch.from_numpy(np.cumsum(ends - begins))
        self._count = len(marks) - int(gaps[-1] if len(gaps) else 0)
        # A position counted without the marked ones moves up by the gaps that begin at or before it.
        self._moves = torch.cat([torch.zeros(1, dtype=torch.int64), gaps])
        self._limits = torch.from_numpy(begins) - self._moves[:-1]

    def __len__(self) -> int:
        return self._count

    def at(self, numbers: Tensor) -> Tensor:
        """The positions of these numbers, counted from 0 without the marked ones."""
        if not len(self._limits):
            return numbers
        return numbers + self._moves[torch.searchsorted(self._limits, numbers, right=True)]

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        return self.at(uniform_rows(self._count, size, generator))


class ProportionalRows:
    """Rows drawn in proportion to their weight: first a block of rows by its total, then a row within the block.

    Blocks keep the sums small: beside the weights themselves, which may be a memory map, there is one number for
    every 64 of them.

    Args:
        weights: one non-negative number per row, not all zero.
    """

    _BLOCK = 64

    def __init__(self, weights: Tensor) -> None:
        self._weights = weights
        whole = len(weights) // self._BLOCK * self._BLOCK
        totals = [
            chunk.view(-1, self._BLOCK).sum(1, dtype=torch.float64) for chunk in torch.split(weights[:whole], 1 << 20)
        ]
        if whole < len(weights):
            totals.append(weights[whole:].sum(dtype=torch.float64)[None])
        self._cumulative = torch.cumsum(torch.cat(totals), 0)
        self._before = self._cumulative - torch.cat(totals)

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        points = torch.rand(size, generator=generator, dtype=torch.float64) * self._cumulative[-1]
        # right=True skips what weighs nothing; the clamps catch a product rounded up to the total.
        block = torch.searchsorted(self._cumulative, points, right=True).clamp_(max=len(self._cumulative) - 1)
        rows = (block[:, None] * self._BLOCK + torch.arange(self._BLOCK)).clamp_(max=len(self._weights) - 1)
        within = torch.cumsum(self._weights[rows].double(), 1)
        place = torch.searchsorted(within, (points - self._before[block])[:, None], right=True)[:, 0]
        # Rounding may leave a point at the end of its block: then the last row there that weighs something.
        heaviest = torch.argmax(within, 1)  # the first place at which the whole total is reached
        return torch.minimum(block * self._BLOCK + torch.minimum(place, heaviest), torch.tensor(len(self._weights) - 1))


def rank_share(rows: Tensor, rank: int, ranks: int) -> Tensor:
    """This rank's share of a global batch."""
    return rows if ranks == 1 else rows[rank::ranks]


def rows_at(rows: Rows, positions: Tensor) -> Tensor:
    """Rows of the recording at these positions among the kept ones."""
    if len(rows.starts) == 1 and rows.starts[0] == 0:
        return positions  # everything is kept
    return torch.from_numpy(rows.at(positions.numpy()))
