"""Typed parsing: from a configuration's values to objects by their signatures, and mistakes as one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from jsonargparse import ArgumentError, ArgumentParser, Namespace

from tailo_pl.config.trusted import denied, restrict_imports
from tailo_pl.errors import UserError, one_line, printable

T = TypeVar("T")
_LONGEST = 500  # letters of a complaint


def as_class(values: Any, where: str, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """A class of a configuration (`class_path`, its arguments beside it) as jsonargparse writes it.

    Classes among the arguments are written likewise.

    Args:
        values: as composed.
        where: what the user calls it.
        own: keys that are no arguments of the class.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("class_path"), str):
        raise UserError(f"{where}: {one_line(repr(values))} given, expected class_path and arguments beside it")
    if "init_args" in values:
        raise UserError(f"{where}.init_args: unknown key, expected the arguments beside class_path")
    arguments = {
        key: as_class(value, f"{where}.{key}") if isinstance(value, Mapping) and "class_path" in value else value
        for key, value in values.items()
        if key != "class_path" and key not in own
    }
    return {"class_path": values["class_path"], "init_args": arguments}


def build(base: type[T], config: Mapping[str, Any], where: str) -> T:
    """The object of a class as `as_class` writes it, which must be a `base`."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(base, "it")
    built: T = parse(parser, {"it": dict(config)}, rename={"it": where})["it"]
    return built


def parse(
    parser: ArgumentParser,
    values: dict[str, Any],
    rename: Mapping[str, str] | None = None,
    *,
    instantiate: bool = True,
) -> Namespace:
    """Parse and, unless told not to, instantiate what may be named (`tailo_pl.config.trusted`).

    jsonargparse's complaints come as one line.
    """
    restrict_imports()
    try:
        parsed = parser.parse_object(values)
        built: Namespace = parser.instantiate(parsed) if instantiate else parsed
        return built
    except mistakes() as error:
        raise as_user_error(error, rename) from error


def mistakes() -> tuple[type[Exception], ...]:
    """What building a class of a configuration raises where the configuration is wrong."""
    # Lightning has an error of its own; who has not imported it, which takes seconds, cannot be given that one.
    lightning = sys.modules.get("lightning.fabric.utilities.exceptions")
    own = () if lightning is None else (lightning.MisconfigurationException,)
    return (ArgumentError, ValueError, TypeError, *own)


def as_user_error(error: BaseException, rename: Mapping[str, str] | None = None) -> UserError:
    """A complaint of jsonargparse or of a class it built, as one line in the user's names."""
    cause: BaseException | None = error
    while cause is not None:  # our own message, if one started it, is the best there is
        if isinstance(cause, UserError):
            return cause
        cause = cause.__cause__ or cause.__context__
    message = str(error)
    key = re.search(r'Parser key "([^"]+)"', message)
    if found := re.search(r"Importing '([^']+)' is not allowed", message):
        message = (f"{key.group(1)}: " if key else "") + denied(found.group(1))
    # A union's complaint lists one line per alternative; the first is the one that was meant.
    if found := re.search(r"Errors:\s+- (.*?)(?=\n\s*- |\nGiven value)", message, re.DOTALL):
        message = (f"{key.group(1)}: " if key else "") + found.group(1)
    elif found := re.match(r'Parser key "([^"]+)":\s*(.*)', message, re.DOTALL):
        message = f"{found.group(1)}: {found.group(2)}"
    message = " ".join(message.split())
    message = re.sub(r""": Problem with given class_path '[^']+': Parser key "([^"]+)":""", r".\1:", message)
    message = re.sub(r"Problem with given class_path '([^']+)': Option", r"\1: option", message)
    message = re.sub(r"Expected an? (?:<class '(\w+)'>|typing\.Literal(\[[^\]]*\]))\.?", _expected, message)
    for inner, outer in (rename or {}).items():
        message = re.sub(rf"^{re.escape(inner)}\b", outer, message)
    shown = printable(message)  # it repeats what was given
    return UserError(shown[:_LONGEST] + ("…" if len(shown) > _LONGEST else ""))


def _expected(found: re.Match[str]) -> str:
    """Python's name of a type as people say it."""
    kind, literals = found.groups()
    return f"expected {kind}." if kind else f"expected one of {literals[1:-1]}."
