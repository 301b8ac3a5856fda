"""What tells configurations apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

_STAGES = "method.stages."


def telling_names(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the values in which flat configurations differ.

    A knob of the method shows again in the stages that use it, and its own name says enough: of a stage's values only
    those are named in which members differ that are alike in everything else.
    """
    names = dict.fromkeys(name for member in members for name in member)
    differing = [name for name in names if _differ(members, name)]
    chosen = [name for name in differing if not name.startswith(_STAGES)]
    alike: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for member in members:
        alike[repr([member.get(name) for name in chosen])].append(member)
    of_stages = (name for name in differing if name.startswith(_STAGES))
    return [*chosen, *(name for name in of_stages if any(_differ(group, name) for group in alike.values()))]


def _differ(members: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({repr(member.get(name)) for member in members}) > 1
