"""One process at a time: locks on files, which the system gives back when their process ends, however it ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tailo_pl.errors import UserError

log = logging.getLogger(__name__)


@contextmanager
def turn(path: Path, what: str) -> Iterator[None]:
    """Hold the lock `path`; where another process has it, say so and wait. `what` is what both are at."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        log.info("%s: another process is at it, waiting", what)
        lock.acquire(poll_interval=0.2)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def no_one_else(path: Path, what: str) -> Iterator[int]:
    """Hold the lock `path`; where another process has it, that is an error of the user's.

    Yields its descriptor: a process that inherits it holds the lock too, as long as it lives.
    """
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise UserError(f"{what}: another process is at work on it") from error
    try:
        descriptor = lock._context.lock_file_fd  # filelock has no other name for it
        assert descriptor is not None
        yield descriptor
    finally:
        lock.release()
