"""tailo_pl: offline imitation learning from observations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailo_pl.errors import UserError
    from tailo_pl.estimator import TAILO
    from tailo_pl.policies.load import Policy, load_policy

__all__ = ["TAILO", "Policy", "UserError", "load_policy"]
_HOMES = {"TAILO": "estimator", "Policy": "policies.load", "UserError": "errors", "load_policy": "policies.load"}


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: `tailo --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
