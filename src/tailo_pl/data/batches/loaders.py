"""Loaders of whole batches: nothing is collated, no sampler has a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

BatchT = TypeVar("BatchT")


class StepLoader(Generic[BatchT]):
    """An endless loader: batch after batch, from the step the trainer is at.

    Args:
        batch_at: makes the batch of a step.
        first_step: where to begin, asked anew for each pass.
    """

    def __init__(self, batch_at: Callable[[int], BatchT], first_step: Callable[[], int]) -> None:
        self._batch_at = batch_at
        self._first_step = first_step

    def __iter__(self) -> Iterator[BatchT]:
        step = self._first_step()
        while True:
            yield self._batch_at(step)
            step += 1


class OneBatch:
    """A loader of a single batch. (Lightning takes a plain list for a list of loaders.)

    Args:
        batch: the batch.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __iter__(self) -> Iterator[Any]:
        yield self._batch

    def __len__(self) -> int:
        return 1
