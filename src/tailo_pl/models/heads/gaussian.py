"""Gaussian: the paper's head."""

from __future__ import annotations

import torch
from torch import Tensor

from tailo_pl.models.heads.squashed_gaussian import SquashedGaussian


class Gaussian(SquashedGaussian):
    """A Gaussian squashed by tanh, its log-variance between -10 and 4.

    Arguments are those of SquashedGaussian.
    """

    def distribution(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, spread = outputs.chunk(2, dim=-1)
        return mean, 7 * torch.tanh(spread) - 3
