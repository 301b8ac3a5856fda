"""The bars that are shown while data is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailo_pl.data.progress import listener
from tailo_pl.screen import console


@contextmanager
def making_data() -> Iterator[None]:
    """Show a bar for every part of the data that is being made meanwhile."""
    bars: list[_Bars] = []  # none until something is made: usually the data is there and nothing is to be shown

    def tell(what: str, done: int, total: int) -> None:
        if not bars:
            bars.append(_Bars())
        bars[0].tell(what, done, total)

    token = listener.set(tell)
    try:
        yield
        for one in bars:
            one.complete()
    finally:
        listener.reset(token)
        for one in bars:
            one.stop()


class _Bars:
    """One bar for each part."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("making {task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console(stderr=True),
        )
        self._progress.start()

    def tell(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=min(done, total))

    def complete(self) -> None:
        """Fill all bars: how many steps there will be is a guess where episodes may end early."""
        for task in self._progress.tasks:
            self._progress.update(task.id, completed=task.total)

    def stop(self) -> None:
        self._progress.stop()
