"""What libraries say about damaged files, as one line that begins with the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tailo_pl.errors import UserError

_LONGEST = 200


def one_line(text: object) -> str:
    """Text of any origin, shortened and without line breaks or other characters that cannot be shown."""
    words = " ".join(str(text).split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in words[:_LONGEST])
    return shown + ("…" if len(words) > _LONGEST else "")


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
