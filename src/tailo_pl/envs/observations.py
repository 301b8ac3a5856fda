"""How an observation of several pieces becomes a state: one row of numbers, in one order for simulators and data."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tailo_pl.errors import UserError

_NUMERIC = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Piece:
    """A piece of an observation.

    Args:
        name: what messages call it.
        path: the keys that lead to it.
        width: how many numbers it holds.
    """

    name: str
    path: tuple[str | int, ...]
    width: int


def pieces(space: spaces.Space[Any], keys: Sequence[str] | None, option: str) -> list[Piece]:
    """The pieces of an observation, in the order in which they make up a state.

    Pieces of Dict and Tuple spaces are put side by side: in the order of `keys`, or all of them with the keys sorted
    on every level. A piece within another is called `outer/inner`, and the pieces of a tuple 0, 1 and so on. Arrays
    of several ranks are taken row by row, and a discrete observation is one number.

    Args:
        space: of the observations.
        keys: the pieces that are wanted; a key that holds others means all of them. None: all.
        option: what the user calls `keys`.
    """
    there = {"/".join(map(str, path)): (path, piece) for path, piece in _leaves(space)}
    if keys is not None and not keys:
        raise UserError(f"{option}: an empty list given, expected keys of the observations, or null for all")
    if keys is not None and "" in there:
        raise UserError(f"{option}: {', '.join(keys)} given, but the observations are one {type(space).__name__}")
    chosen: list[str] = []
    for key in there if keys is None else keys:
        found = [name for name in there if name == key or name.startswith(f"{key}/")]
        if not found:
            near = difflib.get_close_matches(key, there, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UserError(f"{option}: no {key!r} found, expected some of {', '.join(there)}{hint}")
        chosen += found
    for name in chosen:
        piece = there[name][1]
        if chosen.count(name) > 1:
            raise UserError(f"{option}: {name!r} chosen twice")
        if not isinstance(piece, _NUMERIC):
            numeric = ", ".join(name for name, (_, other) in there.items() if isinstance(other, _NUMERIC))
            raise UserError(
                f"{_named(name)}: space {type(piece).__name__} found, expected numbers; "
                f"choose with {option} among {numeric or 'none'}"
            )
    if not chosen:
        raise UserError("observations: an empty space found, expected at least one number")
    return [Piece(_named(name), there[name][0], _width(there[name][1])) for name in chosen]


def state(observation: Any, wanted: Sequence[Piece]) -> NDArray[np.float64]:
    """The state that an observation makes up."""
    return np.concatenate([np.asarray(follow(observation, one), dtype=np.float64).reshape(-1) for one in wanted])


def follow(observation: Any, piece: Piece) -> Any:
    """The values of a piece."""
    for key in piece.path:
        observation = observation[key]
    return observation


def _leaves(
    space: spaces.Space[Any], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], spaces.Space[Any]]]:
    """The pieces of a space with the keys that lead to them, in the order of a state."""
    if isinstance(space, spaces.Dict):
        for key in sorted(space.spaces):
            yield from _leaves(space.spaces[key], (*path, key))
    elif isinstance(space, spaces.Tuple):
        for number, piece in enumerate(space.spaces):
            yield from _leaves(piece, (*path, number))
    else:
        yield path, space


def _width(space: spaces.Space[Any]) -> int:
    return int(np.prod(space.shape or ()))


def _named(name: str) -> str:
    return f"observations {name}".rstrip()
