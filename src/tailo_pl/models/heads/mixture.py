"""Mixture: several heads of one kind and how likely each is, for logs in which several behaviours share states."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from tailo_pl.errors import require_range
from tailo_pl.models.heads.head import Head


class Mixture(Head):
    """-log sum_k p_k(s) pi_k(a|s), where -log pi_k is the loss of component k; acts as the most likely component does.

    The mean of two behaviours may be what neither would do: where one goes left and one goes right of an obstacle, a
    single Gaussian or regression runs into it. A mixture learns both and takes one of them.

    Args:
        of: what each of them is, a `Regression` for example.
        components: how many.
    """

    def __init__(self, of: Head, components: int = 4) -> None:
        super().__init__()
        require_range("head.components", components, 1, closed="[)")
        self._components = components
        self._of = of

    def prepare(self, action_dim: int) -> None:
        self._of.prepare(action_dim)

    def width(self, action_dim: int) -> int:
        return self._components * (1 + self._of.width(action_dim))

    def losses(self, outputs: Tensor, actions: Tensor, noise: Tensor | None = None) -> Tensor:
        logits, parts = self._split(outputs)
        actions = actions.repeat_interleave(self._components, 0)
        noise = None if noise is None else noise.repeat_interleave(self._components, 0)
        of_parts = self._of.losses(parts.flatten(0, 1), actions, noise).view_as(logits)
        return -torch.logsumexp(log_softmax(logits, -1) - of_parts, -1)

    def act(self, outputs: Tensor) -> Tensor:
        logits, parts = self._split(outputs)
        strongest = logits.argmax(-1)[:, None, None].expand(-1, 1, parts.shape[-1])
        return self._of.act(parts.gather(1, strongest).squeeze(1))

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the components, (rows, components), and what each component reads, (rows, components, width)."""
        logits, parts = outputs.tensor_split([self._components], -1)
        return logits, parts.reshape(-1, self._components, parts.shape[-1] // self._components)
