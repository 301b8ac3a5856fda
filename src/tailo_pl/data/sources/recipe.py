"""What an environment that makes its own data offers to the source `bundled`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from tailo_pl.data.trajectories import Trajectories


@dataclass(frozen=True)
class Part:
    """How one part of the data is made.

    Args:
        identity: everything that decides the content besides the seed, as JSON can write it. The cache goes by it:
            count up a number in it when the same recipe would give other data.
        make: makes the trajectories from a seed.
        body: in which it is recorded, where the environment has several.
    """

    identity: dict[str, object]
    make: Callable[[int], Trajectories]
    body: str | None = None


class Recipe(ABC):
    """How the data of an environment is made. The environment's configuration names it under `data`."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Part]:
        """The parts by name. Looking at them makes nothing."""


@cache  # looking one up takes milliseconds, and a list of data asks for each part
def version_of(package: str) -> str:
    """The version of a package that decides data."""
    return version(package)
