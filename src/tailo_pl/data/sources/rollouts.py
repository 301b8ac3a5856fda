"""What recipes that roll out policies share: seeds of the episodes, and how far they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from tailo_pl.data.progress import listener
from tailo_pl.envs.evaluation import episode_seeds


def seeds(seed: int, stream: str, episodes: int | None) -> Iterable[int]:
    """Seeds of so many episodes, or without end; each stream has its own."""
    if episodes is not None:
        return [int(one) for one in episode_seeds(seed, stream, episodes)]
    first = int(episode_seeds(seed, stream, 1)[0])
    return itertools.count(first)


def reporter(what: str, total: int) -> Callable[[int], None]:
    """Pass progress on to whoever listens, in the calling context."""
    tell, done = listener.get(), 0

    def progress(steps: int) -> None:
        nonlocal done
        done += steps
        tell(what, done, total)

    return progress
