"""What methods came to on data of the project, by which another one may be advised.

`measured.jsonl` beside this is written from the ledger's cells by `python -m tools.ledger --tables`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from tailo_pl.runs.summary import Summary

FILE = "measured.jsonl"
_LIKE = {True: "standard", False: "examples"}  # settings of the project, by whether TS has trajectories


@dataclass(frozen=True)
class Measured:
    """The score of one choice on one task, over seeds, with its 95 % interval.

    Args:
        env: the environment.
        setting: how TS and TA were cut.
        data: recipe of both.
        choice: the method with its options, as overrides.
    """

    env: str
    setting: str
    data: str
    choice: str
    score: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        seeds = f"{self.seeds} seed{'s' * (self.seeds > 1)}"
        return f"{self.choice} {self.score:g} ({self.low:g} to {self.high:g}, {seeds})"


def read_measured() -> list[Measured]:
    """All that there is."""
    lines = files(__package__).joinpath(FILE).read_text().splitlines()
    return [Measured(**json.loads(line)) for line in lines]


def choice_of(measured: Sequence[Measured], method: Mapping[str, Any]) -> str:
    """What the measured call a run's method: the name that tells most of the options that it has.

    Args:
        measured: what is known.
        method: the method's part of the run's configuration.
    """
    fitting = [one.choice for one in measured if _fits(one.choice, method)]
    return max(fitting, key=len, default=f"method={method['name']}")


def _fits(choice: str, method: Mapping[str, Any]) -> bool:
    named = dict(override.removeprefix("method.").split("=", 1) for override in choice.split())
    named["name"] = named.pop("method")
    return all(key in method and yaml.safe_load(value) == method[key] for key, value in named.items())


def better_on_data(measured: Sequence[Measured], summary: Summary, own: str) -> tuple[str, str] | None:
    """Whether another method than a run's was better on its data, by more than both intervals.

    Args:
        measured: what is known.
        summary: of the run.
        own: its method, as the measured call it.

    Returns:
        The choice to take instead, empty where there is none, and in words what speaks for it; None where nothing was
        measured beside the run's method.
    """
    here = [one for one in measured if (one.env, one.data) == (summary["env"], summary["data"]["recipe"])]
    if len(here) < 2 or not any(one.choice == own for one in here):
        return None
    known, better = _against(own, here)
    if not better:
        return "", f"on this data none of {len(here) - 1} others that were measured is better"
    first = max(better, key=lambda one: one.score)
    return first.choice, f"measured on this data: {first}, {known}"


def better_in_setting(measured: Sequence[Measured], summary: Summary, own: str, ordered: bool) -> tuple[str, str]:
    """Whether another method than a run's was better, by more than both intervals, on most tasks of a setting like its
    own.

    Args:
        measured: what is known.
        summary: of the run.
        own: its method, as the measured call it.
        ordered: whether TS has trajectories.

    Returns:
        The choice to take instead, empty where there is none, and in words what speaks for it.
    """
    setting = summary["setting"] if any(one.setting == summary["setting"] for one in measured) else _LIKE[ordered]
    tasks: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for one in measured:
        if one.setting == setting:
            tasks[one.env, one.data].append(one)
    won, tried = defaultdict[str, list[Measured]](list), defaultdict[str, int](int)
    for rows in tasks.values():
        if any(one.choice == own for one in rows):
            for one in rows:
                tried[one.choice] += 1
            for one in _against(own, rows)[1]:
                won[one.choice].append(one)
    others = len(tried) - 1
    if others < 1:
        return "", f"no other was measured beside it in setting {setting}"
    often = max(won, key=lambda choice: (len(won[choice]), sum(one.score for one in won[choice])), default="")
    if often and 2 * len(won[often]) > tried[often]:
        envs = ", ".join(one.env for one in won[often])
        where = f"{len(won[often])} of {tried[often]} tasks of setting {setting} ({envs})"
        return often, f"{often} was better on {where}"
    return "", f"none of {others} others was better on most tasks of setting {setting}"


def _against(own: str, rows: Sequence[Measured]) -> tuple[Measured, list[Measured]]:
    """The row of a choice, and those that are better."""
    known = next(one for one in rows if one.choice == own)
    return known, [one for one in rows if one.low > known.high]
