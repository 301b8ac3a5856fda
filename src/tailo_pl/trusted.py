"""What a configuration may name: classes of this package and of Lightning, and of packages the user has allowed.

A configuration names classes, and building a class runs its code. A run folder from elsewhere must not be able to run
whatever Python can import, so everything else is denied unless the user says `--allow PACKAGE`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from jsonargparse import set_parsing_settings

from tailo_pl.errors import UserError

PACKAGES = ("tailo_pl", "lightning")
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
    set_parsing_settings(import_path_denylist=["*"], import_path_allowlist=[*PACKAGES, *_allowed()])


def _allowed() -> list[str]:
    return [package for package in os.environ.get(VARIABLE, "").split(",") if package]
