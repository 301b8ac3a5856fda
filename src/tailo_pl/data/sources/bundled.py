"""Source `bundled`: data the project makes itself, on any machine, without a download."""

from __future__ import annotations

from pathlib import Path

from tailo_pl.data import cache
from tailo_pl.data.sources.recipe import Recipe
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError


class Bundled(Source):
    """Data made here by the recipe of an environment, cached under TAILO_HOME.

    Args:
        env: which environment.
        recipe: how its data is made; None: it makes none.
        seed: of all randomness in the data.
    """

    def __init__(self, env: str, recipe: Recipe | None = None, seed: int = 0) -> None:
        if recipe is None:
            raise UserError(f"env {env}: makes no data of its own, expected source=files, d4rl or minari")
        self._env = env
        self._seed = seed
        self._parts = recipe.parts
        self._open: dict[str, Trajectories] = {}

    def part(self, name: str) -> Trajectories:
        identity = self.identity(name)
        if name not in self._open:
            make = self._parts[name].make
            self._open[name] = cache.cached(
                f"{self._env}-{name}", identity, lambda folder: cache.save(make(self._seed), folder)
            )
        return self._open[name]

    def body(self, name: str) -> str | None:
        return self._parts[name].body if name in self._parts else None

    def fingerprint(self, name: str) -> str:
        self.part(name)
        return cache.content_fingerprint(f"{self._env}-{name}", self.identity(name))

    def recipe(self, name: str) -> str:
        return cache.fingerprint(self.identity(name))

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
