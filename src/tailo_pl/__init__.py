"""tailo_pl: offline imitation learning from observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailo_pl.policies import load_policy

__all__ = ["load_policy"]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: `tailo --help` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tailo_pl import policies

    return getattr(policies, name)
