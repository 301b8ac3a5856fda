"""TS and TA as arrays in memory: checked, and taken for trajectories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.data.settings import Task

States = ArrayLike | Sequence[ArrayLike]
"""One array of states (rows, dim), or a list of them, one per trajectory."""
StateActions = Sequence[tuple[ArrayLike, ArrayLike]] | Mapping[str, ArrayLike]
"""A list of (states, actions), one per trajectory; or a mapping with observations, actions and offsets."""
Part = tuple[NDArray[Any], NDArray[Any] | None]
"""States, and the actions that go with them."""


def ts_trajectories(ts: States) -> Trajectories:
    """TS of an array, or of one for each trajectory."""
    return _trajectories("ts", _ts_parts(ts))


def ta_trajectories(ta: StateActions) -> Trajectories:
    """TA of pairs (states, actions), one for each trajectory, or of whole arrays with offsets."""
    return _trajectories("ta", *_ta_parts(ta))


def in_arrays(message: str, task: Task, parameters: Iterable[str]) -> str:
    """A complaint about data or settings in the names of who gave arrays: `ta[3], step 17`, not a row of a file.

    Args:
        message: in the names of the command line.
        task: what was given.
        parameters: what is given by a name of its own; all else has been written as it stands in the message.
    """
    for name, part in (("TS", task.ts), ("TA", task.ta)):
        if message.startswith(f"{name}: "):
            offsets = part.offsets

            def place(found: re.Match[str], lower: str = name.lower(), offsets: NDArray[np.int64] = offsets) -> str:
                row = int(found[1])
                number = int(np.searchsorted(offsets, row, side="right")) - 1
                return f"{lower}[{number}], step {row - offsets[number]}"

            message = f"{name.lower()}: {message.removeprefix(f'{name}: ')}"
            message = re.sub(r"\brow (\d+)(?: \(counted from 0\))?", place, message)
    message = re.sub(r"; choose the same for both with source\.\S+", "", message)
    return re.sub(rf"\b(?:source|method|preset)\.({'|'.join(parameters)})\b", r"\1", message)


def _ts_parts(ts: States) -> list[Part]:
    if not isinstance(ts, np.ndarray):
        parts = list(ts) if isinstance(ts, Sequence) else [ts]
        if parts and all(np.ndim(part) == 2 for part in parts):
            return [(_matrix(f"ts[{number}]", part), None) for number, part in enumerate(parts)]
    return [(_matrix("ts", ts), None)]


def _ta_parts(ta: StateActions) -> tuple[list[Part], NDArray[np.int64] | None]:
    """The trajectories, and where one array holds several of them, their offsets."""
    if isinstance(ta, Mapping):
        for key in ("observations", "actions", "offsets"):
            if key not in ta:
                raise UserError(f"ta: no {key!r} found, expected observations, actions and offsets")
        states, actions = (_matrix(f"ta[{key!r}]", ta[key]) for key in ("observations", "actions"))
        _require_as_long("ta", states, actions)
        offsets = np.asarray(ta["offsets"])
        ends = offsets.ndim == 1 and len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(states)
        if not ends or offsets.dtype.kind not in "iu" or (np.diff(offsets) <= 0).any():
            raise UserError(f"ta['offsets']: expected whole numbers that rise from 0 to {len(states)}, the steps")
        return [(states, actions)], offsets.astype(np.int64)
    if isinstance(ta, (str, bytes, np.ndarray)) or not isinstance(ta, Sequence) or not len(ta):
        raise UserError("ta: expected a list of (states, actions), one per trajectory, or a mapping with offsets")
    parts: list[Part] = []
    for number, trajectory in enumerate(ta):
        if not isinstance(trajectory, (tuple, list)) or len(trajectory) != 2:
            raise UserError(f"ta[{number}]: {type(trajectory).__name__} given, expected a pair (states, actions)")
        states, actions = (_matrix(f"ta[{number}][{place}]", trajectory[place]) for place in (0, 1))
        _require_as_long(f"ta[{number}]", states, actions)
        parts.append((states, actions))
    return parts, None


def _matrix(name: str, given: Any) -> NDArray[np.float32]:
    try:
        array = np.asarray(given)
        matrix = array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: cannot be read as numbers ({error}), expected an array (rows, dim)") from error
    if matrix.ndim != 2 or 0 in matrix.shape or array.dtype.kind not in "fiub":
        raise UserError(
            f"{name}: shape {array.shape} of {array.dtype} given, expected numbers (rows, dim), both above 0"
        )
    return matrix


def _require_as_long(name: str, states: NDArray[Any], actions: NDArray[Any]) -> None:
    if len(states) != len(actions):
        raise UserError(f"{name}: {len(states)} states and {len(actions)} actions given, expected as many of both")


def _trajectories(name: str, parts: list[Part], offsets: NDArray[np.int64] | None = None) -> Trajectories:
    for place in (0, 1):
        widths = {part[place].shape[1] for part in parts if part[place] is not None}  # type: ignore[union-attr]
        if len(widths) > 1:
            what = ("states", "actions")[place]
            raise UserError(f"{name}: {what} of {sorted(widths)} dimensions given, expected the same everywhere")
    starts = np.cumsum([0, *[len(states) for states, _ in parts[:-1]]]) if offsets is None else offsets[:-1]
    actions = [part for _, part in parts if part is not None]
    recording = Recording(
        np.concatenate([states for states, _ in parts]), starts, np.concatenate(actions) if actions else None
    )
    return Trajectories.of(recording, "given")
