"""The range of a LeRobot data set's actions, by its own statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.data.formats.members import read_member_json, read_member_lines
from tailo_pl.errors import UserError, one_line


def action_range(folder: Path, action: str, width: int) -> tuple[str, NDArray[Any], NDArray[Any]] | None:
    """The smallest and largest action by the data set's statistics, and the file that has them; None: none has."""
    for name in ("meta/stats.json", "meta/episodes_stats.jsonl"):
        if not (folder / name).exists():
            continue
        expected = "statistics of the features"
        if name.endswith("l"):
            lines = read_member_lines(folder, name, expected)
            found = [one.get("stats") if isinstance(one, dict) else None for one in lines]
        else:
            found = [read_member_json(folder, name, expected)]
        ends = [_range(folder, name, one, action, width) for one in found]
        if ends:
            return name, np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
    return None


def _range(folder: Path, name: str, stats: Any, action: str, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    of_action = stats.get(action) if isinstance(stats, dict) else None
    ends = []
    for key in ("min", "max"):
        given = of_action.get(key) if isinstance(of_action, dict) else None
        numbers: Any = [given] if type(given) in (int, float) else given
        plain = isinstance(numbers, list) and all(type(one) in (int, float) and abs(one) < 1e38 for one in numbers)
        if not plain or len(numbers) != width:
            raise UserError(
                f"{folder}: {name}: {action}.{key}: {one_line(repr(given))} found, expected {width} finite numbers"
            )
        ends.append(np.array(numbers, dtype=np.float64))
    return ends[0], ends[1]
