"""The error a user can cause, the range check that raises it, and words made fit for its line."""

from __future__ import annotations

import math

_LONGEST = 200


class UserError(Exception):
    """A mistake in what the user gave us: shown as one line, exit code 2, without a traceback.

    The message names the thing (file, field, option), what was found, and what was expected.
    """


class Refusal(UserError):
    """A method that is put together rightly cannot do what is asked of it. Others may, and go on."""


def require_range(
    name: str,
    value: float,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    closed: str = "()",
) -> None:
    """Raise `UserError` unless `value` lies between `low` and `high`.

    Args:
        name: what the user calls the value, e.g. `gamma`.
        value: what was given.
        low: lower end.
        high: upper end.
        closed: interval notation for the two ends, e.g. `[)` for low <= value < high.
    """
    above = value >= low if closed[0] == "[" else value > low
    below = value <= high if closed[1] == "]" else value < high
    if not (above and below):  # also catches NaN, which compares false
        raise UserError(f"{name}: {value} given, expected a number in {closed[0]}{low:g}, {high:g}{closed[1]}")


def one_line(text: object) -> str:
    """Text of any origin, shortened and printable."""
    words = printable(text)
    return words[:_LONGEST] + ("…" if len(words) > _LONGEST else "")


def printable(text: object) -> str:
    """Text of any origin without line breaks or other characters that cannot be shown."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(str(text).split()))


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 trajectory`, `592 trajectories`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("y") else f"{number:,} {noun}s"
