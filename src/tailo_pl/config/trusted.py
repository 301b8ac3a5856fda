"""What a configuration may name: classes of this package and of Lightning, and of packages the user has allowed.

A configuration names classes, and building a class runs its code. A run folder from elsewhere must not be able to run
whatever Python can import, so everything else is denied unless the user says `--allow PACKAGE`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import TypeVar

from tailo_pl.errors import UserError

PACKAGES = ("tailo_pl", "lightning")
T = TypeVar("T")
VARIABLE = "TAILO_ALLOW"  # how the processes of a run learn what was allowed: names separated by commas


def allow(packages: Iterable[str]) -> None:
    """Let configurations name classes of these packages, in this process and those it starts."""
    allowed = dict.fromkeys([*_allowed(), *packages])
    for package in allowed:
        if not all(part.isidentifier() for part in package.split(".")) or package.split(".")[0] == "jsonargparse":
            raise UserError(f"allow: {package!r} given, expected the name of a package (my_package)")
    os.environ[VARIABLE] = ",".join(allowed)


def restrict_imports() -> None:
    """Deny jsonargparse every import but those of our packages and of what was allowed.

    The policy is jsonargparse's own and holds for all of the process.
    """
    from jsonargparse import set_parsing_settings

    set_parsing_settings(
        import_path_denylist=["*"],
        import_path_allowlist=[*PACKAGES, *_allowed()],
        instantiate_subclass_spec_in_any=False,  # where any value will do, what names a class stays text
    )


def is_trusted(module: str) -> bool:
    """Whether a module is of our packages or of what was allowed."""
    return any(f"{module}.".startswith(f"{one}.") for one in (*PACKAGES, *_allowed()))


def import_class(name: str, path: str, kind: type[T]) -> type[T]:
    """The class of this path, which must be a trusted package's and a `kind`.

    Args:
        name: what the user calls the value that gives the path, e.g. `method.stages.policy.model`.
        path: import path of the class.
        kind: what it must be.
    """
    package, _, attribute = path.rpartition(".")
    if not is_trusted(package):
        raise UserError(f"{name}: {denied(path)}")
    try:
        found = getattr(importlib.import_module(package), attribute, None)
    except ImportError as error:
        raise UserError(f"{name}: {path!r} given, which cannot be imported ({error})") from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise UserError(f"{name}: {path!r} given, expected a {kind.__name__}")
    return found


def denied(path: str) -> str:
    """What is said of a path that may not be imported."""
    return f"{path!r} given, expected a class of {', '.join(PACKAGES)} (or of yours: --allow {path.split('.')[0]})"


def _allowed() -> list[str]:
    return [package for package in os.environ.get(VARIABLE, "").split(",") if package]
