"""A way for data making to say how far it is, without knowing who listens."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]
"""Told what is being made, how many steps are done, and how many there will be."""


def _nobody(what: str, done: int, total: int) -> None:
    return None


listener: ContextVar[Listener] = ContextVar("listener", default=_nobody)
