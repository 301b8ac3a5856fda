"""What a source of recorded data offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tailo_pl.data.trajectories import Trajectories

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
"""Lower and upper bound of each action."""


class Source(ABC):
    """Recorded data in named parts (expert, random, medium, ...); a setting says which it needs."""

    @abstractmethod
    def part(self, name: str) -> Trajectories:
        """The trajectories of one part. Raises `UserError` naming the parts there are."""

    @abstractmethod
    def fingerprint(self, name: str) -> str:
        """Names the content of a part: equal for equal data, different for different data."""

    def recipe(self, name: str) -> str:
        """Names what a part comes from. Unlike its content this is the same on every machine where a source makes its
        data: processors round differently, and simulated episodes then soon differ."""
        return self.fingerprint(name)

    def action_bounds(self, name: str) -> Bounds | None:
        """The bounds of a part's actions where the source knows them."""
        return None

    def body(self, name: str) -> str | None:
        """The body that a part was recorded in, where the source knows it and there are several to choose from."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """One line for people: what data this is."""
