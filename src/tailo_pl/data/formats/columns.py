"""Which fields of a file play which role, by name or by convention."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from tailo_pl.data.formats.record_file import Field
from tailo_pl.errors import UserError, one_line

AUTO = "auto"
OPTION = "source.columns.{}"
"""How the user says which fields play a role."""

VECTORS = ("observations", "actions", "next_observations")
FLAGS = ("terminals", "timeouts")

# Names by which recordings usually call things; the first is the one we write.
ALIASES: dict[str, tuple[str, ...]] = {
    "observations": ("observations", "observation", "obs", "states", "state"),
    "actions": ("actions", "action", "act"),
    "next_observations": ("next_observations", "next_observation", "next_obs", "next_states", "next_state"),
    "rewards": ("rewards", "reward"),
    "terminals": ("terminals", "terminal", "terminated", "terminations", "dones", "done"),
    "timeouts": ("timeouts", "timeout", "truncated", "truncations"),
    "episode": ("episode", "episodes", "episode_id", "trajectory", "trajectory_id"),
    "step": ("step", "steps", "timestep"),
}

# What recordings keep beside states and actions; a pattern does not mean them.
BOOKKEEPING = frozenset(
    ("timestamp", "timestamps", "time", "t", "stamp", "date", "stage", "phase", "task", "task_index", "index", "frame")
) | {"frame_index", "episode_index", "id", "row"}

Names = str | list[str] | None


@dataclass(frozen=True)
class Columns:
    """Which fields of a file hold what.

    Each is a name, a pattern such as `joint_*` (numbered families in the order of their numbers), a list of names
    and patterns, `auto` for the usual names, or null for none.

    Args:
        observations: the state before the step.
        actions: the action taken.
        next_observations: the state after the step.
        rewards: for reports only.
        terminals: whether the step ended the episode by the task's own rule.
        timeouts: whether the step ended the episode by its time limit.
        episode: which episode the step belongs to. Null: a file is one episode, unless it says otherwise by its
            step numbers, terminals or timeouts.
        step: number of the step within its episode.
    """

    observations: Names = AUTO
    actions: Names = AUTO
    next_observations: Names = AUTO
    rewards: Names = AUTO
    terminals: Names = AUTO
    timeouts: Names = AUTO
    episode: Names = AUTO
    step: Names = AUTO


@dataclass(frozen=True)
class FieldNames:
    """The fields of one file that play each role; roles without any are left out."""

    names: Mapping[str, tuple[str, ...]]
    widths: Mapping[str, int]
    left_out: tuple[str, ...] = ()
    """what else the file holds, for people"""

    @property
    def all_names(self) -> list[str]:
        """Every field that is read, once."""
        return list(dict.fromkeys(name for names in self.names.values() for name in names))


def resolve(
    path: object, there: Mapping[str, Field], columns: Columns, ignored: Iterable[str] = (), option: str = OPTION
) -> FieldNames:
    """Find the fields of a file for each role.

    Args:
        path: the file, for messages.
        there: its fields.
        columns: what was asked for.
        ignored: roles that are not wanted.
        option: how the user says which fields play a role.
    """
    names: dict[str, tuple[str, ...]] = {}
    wanted = [role.name for role in fields(columns) if role.name not in set(ignored)]
    for role in wanted:
        asked: Names = getattr(columns, role)
        if asked == AUTO:
            found = _usual(path, there, role, option)
        elif asked is None:
            found = ()
        else:
            found = _asked(path, there, role, [asked] if isinstance(asked, str) else asked, option)
        if found:
            names[role] = found
    if "observations" not in names:
        raise UserError(
            f"{path}: observations: no field found among {_listed(there)}, expected one of "
            f"{', '.join(ALIASES['observations'])}, or {option.format('observations')}=NAME"
        )
    widths = {role: sum(_width(there[name]) for name in found) for role, found in names.items()}
    for role, width in widths.items():
        if not width or (role not in VECTORS and width != 1):
            expected = "at least 1" if role in VECTORS else "1"
            raise UserError(f"{path}: {role}: {width} numbers per step found, expected {expected}")
    return FieldNames(names, widths, _left_out(there, names, set(wanted)))


def _width(field: Field) -> int:
    return 1 if field.width is None else field.width


def _asked(path: object, there: Mapping[str, Field], role: str, patterns: list[str], option: str) -> tuple[str, ...]:
    found: list[str] = []
    for pattern in patterns:
        if pattern in there:
            found.append(pattern)
            continue
        matching = sorted(fnmatch.filter(there, pattern), key=_natural) if "*" in pattern else []
        matching = [name for name in matching if _is_measured(name, there[name], role)]
        if not matching:
            near = difflib.get_close_matches(pattern, there, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UserError(f"{path}: {role}: no field {pattern!r} found, expected one of {_listed(there)}{hint}")
        found += matching
    if len(set(found)) < len(found):
        raise UserError(f"{path}: {role}: a field is named twice in {option.format(role)}")
    return tuple(found)


def _is_measured(name: str, field: Field, role: str) -> bool:
    """Whether a pattern for a role means this field: not text, bookkeeping, or what another role is usually called."""
    others = {alias for other, aliases in ALIASES.items() if other != role for alias in aliases}
    return field.dtype.kind in "biuf" and name.lower() not in BOOKKEEPING | others


def _usual(path: object, there: Mapping[str, Field], role: str, option: str) -> tuple[str, ...]:
    """The field or the numbered family of fields with one of the role's usual names."""
    candidates: list[tuple[str, ...]] = [(name,) for name in ALIASES[role] if name in there]
    if role in VECTORS:
        for alias in ALIASES[role]:
            family = sorted((name for name in there if _number(name, alias) is not None), key=_natural)
            if family:
                numbers = [_number(name, alias) for name in family]
                first = numbers[0]
                if first not in (0, 1) or numbers != list(range(first, first + len(numbers))):
                    raise UserError(
                        f"{path}: {role}: fields {', '.join(family[:4])}… found, expected numbers without gaps from 0 "
                        f"(or {option.format(role)}=...)"
                    )
                candidates.append(tuple(family))
    if len(candidates) > 1:
        both = " and ".join(found[0] for found in candidates[:2])
        raise UserError(f"{path}: {role}: both {both} found, choose one with {option.format(role)}=NAME")
    return candidates[0] if candidates else ()


def _number(name: str, alias: str) -> int | None:
    """The number of `obs_3`, `obs.3`, `obs[3]` or `obs3` in the family `obs`."""
    found = re.fullmatch(rf"{re.escape(alias)}[_.\[]?(\d+)\]?", name)
    return int(found.group(1)) if found else None


def _left_out(there: Mapping[str, Field], names: Mapping[str, tuple[str, ...]], wanted: set[str]) -> tuple[str, ...]:
    """Fields that play no role, each with why, or with the name that was perhaps meant."""
    used = {name for found in names.values() for name in found}
    known = {name for aliases in ALIASES.values() for name in aliases}
    unwanted = {alias for role in ALIASES.keys() - wanted for alias in ALIASES[role]}
    usual = [alias for role in wanted if role in VECTORS or role not in names for alias in ALIASES[role]]
    remarks = []
    for name in there:
        stem = re.sub(r"[_.\[]?\d*\]?$", "", name)
        if name in used or name in known or stem in unwanted:
            continue
        near = [] if name.lower() in BOOKKEEPING else difflib.get_close_matches(stem, usual, n=1, cutoff=0.8)
        why = f" (did you mean {near[0]}?)" if near else " (no numbers)" if there[name].dtype.kind not in "biuf" else ""
        remarks.append(one_line(name) + why)
    return tuple(remarks)


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Sorts obs_10 behind obs_9."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name) if part]


def _listed(there: Mapping[str, Field]) -> str:
    names = [one_line(name) for name in there]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
