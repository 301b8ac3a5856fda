"""What libraries say about damaged files, as one line that begins with the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailo_pl.errors import UserError, one_line


@contextmanager
def damage_told(where: object, what: str) -> Iterator[None]:
    """Whatever goes wrong inside is the file's fault: the parsers behind have no common error.

    Args:
        where: the file, and what of it.
        what: how to call the damage.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{where}: {what} ({one_line(error) or type(error).__name__})") from error
