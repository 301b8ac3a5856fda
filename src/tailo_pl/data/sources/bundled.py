"""Source `bundled`: data the project makes itself, on any machine, without a download."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tailo_pl.data import cache
from tailo_pl.data.sources import locomotion, pointmaze
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError


@dataclass(frozen=True)
class Part:
    """How one part is made: its identity (seed aside) and its maker, which takes the seed."""

    identity: dict[str, object]
    make: Callable[[int], Trajectories]


def _parts(env: str, padded: bool) -> dict[str, Part]:
    if env == "pointmaze":
        return {"directions": Part(pointmaze.identity(), pointmaze.directions)}
    if env in locomotion.TASKS:
        return {
            name: Part(locomotion.identity(part, padded), partial(locomotion.make, env, name, part, padded))
            for name, part in locomotion.parts(env).items()
        }
    raise UserError(f"source bundled: env {env!r} given, expected one of {', '.join(('pointmaze', *locomotion.TASKS))}")


class Bundled(Source):
    """Data rolled out here from policies that come with the package, cached under TAILO_HOME.

    Args:
        env: which environment.
        seed: of all randomness in the data.
        pad_contact_forces: ant only: its 27 numbers followed by 84 zeros, as D4RL recorded it.
    """

    def __init__(self, env: str, seed: int = 0, pad_contact_forces: bool = False) -> None:
        self._env = env
        self._seed = seed
        self._parts = _parts(env, pad_contact_forces)
        self._open: dict[str, Trajectories] = {}

    def part(self, name: str) -> Trajectories:
        identity = self.identity(name)
        if name not in self._open:
            make = self._parts[name].make
            self._open[name] = cache.cached(
                f"{self._env}-{name}", identity, lambda folder: cache.save(make(self._seed), folder)
            )
        return self._open[name]

    def fingerprint(self, name: str) -> str:
        self.part(name)
        return cache.content_fingerprint(f"{self._env}-{name}", self.identity(name))

    @property
    def part_names(self) -> list[str]:
        """The parts there are, made or not."""
        return list(self._parts)

    def folder(self, name: str) -> Path:
        """Where a part is kept once it is made."""
        return cache.entry_folder(f"{self._env}-{name}", self.identity(name))

    def identity(self, name: str) -> dict[str, object]:
        """What decides the content of a part before it is made: the name of its cache entry."""
        if name not in self._parts:
            there = ", ".join(self._parts)
            raise UserError(f"source bundled: no part {name!r} for env {self._env}, expected one of {there}")
        return {"source": "bundled", "env": self._env, "part": name, "seed": self._seed, **self._parts[name].identity}

    def describe(self) -> str:
        return f"bundled: made here for {self._env} with seed {self._seed}"
