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
        options: of the setting, as overrides without its name.
        data: recipe of both.
        choice: the method with its options, as overrides.
    """

    env: str
    setting: str
    options: str
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
    name, *options = choice.split()
    options = [one.removeprefix("method.") for one in options]
    return name == f"method={method['name']}" and _has(method, " ".join(options))


def _has(config: Mapping[str, Any], options: str) -> bool:
    """Whether a part of a configuration has the values that some overrides name."""
    named = dict(override.split("=", 1) for override in options.split())
    return all(key in config and yaml.safe_load(value) == config[key] for key, value in named.items())


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


def cut_alike(measured: Sequence[Measured], setting: Mapping[str, Any]) -> list[Measured]:
    """What was measured in the same setting with the same options, be it on other data: D4RL's medium data is cut as
    this project's.

    Args:
        measured: what is known.
        setting: its part of a run's configuration.
    """
    return [one for one in measured if one.setting == setting["name"] and _has(setting, one.options)]


def like_setting(measured: Sequence[Measured], setting: Mapping[str, Any], ordered: bool) -> list[Measured]:
    """What was measured in the same setting or, where that is nothing, in the one that is most like it.

    Args:
        measured: what is known.
        setting: its part of a run's configuration.
        ordered: whether TS has trajectories.
    """
    named = [one for one in measured if one.setting == setting["name"]]
    return named or [one for one in measured if one.setting == _LIKE[ordered]]


def better_on_most(rows: Sequence[Measured], own: str) -> tuple[str, str]:
    """Whether another method than a run's was better, by more than both intervals, on most of some tasks.

    Args:
        rows: what was measured on tasks like that of the run.
        own: its method, as the measured call it.

    Returns:
        The choice to take instead, empty where there is none, and in words what speaks for it.
    """
    tasks: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for one in rows:
        tasks[one.env, one.data].append(one)
    won, tried = defaultdict[str, list[Measured]](list), defaultdict[str, int](int)
    for beside in tasks.values():
        if any(one.choice == own for one in beside):
            for one in beside:
                tried[one.choice] += 1
            for one in _against(own, beside)[1]:
                won[one.choice].append(one)
    others, where = len(tried) - 1, _where(rows)
    if others < 1:
        return "", f"no other was measured beside it{where}"
    often = max(won, key=lambda choice: (len(won[choice]), sum(one.score for one in won[choice])), default="")
    if often and 2 * len(won[often]) > tried[often]:
        envs = ", ".join(one.env for one in won[often])
        return often, f"{often} was better on {len(won[often])} of {tried[often]} tasks{where} ({envs})"
    return "", f"none of {others} other{'s' * (others > 1)} was better on most tasks{where}"


def _where(rows: Sequence[Measured]) -> str:
    """The setting of some rows in words, with its options where they are the same."""
    if not rows:
        return ""
    options = {one.options for one in rows}
    return " of setting " + " ".join([rows[0].setting, *(options if len(options) == 1 else ())]).strip()


def _against(own: str, rows: Sequence[Measured]) -> tuple[Measured, list[Measured]]:
    """The row of a choice, and those that are better."""
    known = next(one for one in rows if one.choice == own)
    return known, [one for one in rows if one.low > known.high]
