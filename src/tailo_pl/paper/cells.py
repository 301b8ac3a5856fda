"""Cells: experiments by their overrides, written down as lists of combinations."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tailo_pl.config.choices import choices, folders
from tailo_pl.data.cache import fingerprint
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml

_FIRST = ("env", "setting", "method", "preset")  # of a cell's overrides; the others follow by name
_USUAL = ("source=bundled",)  # says nothing


@dataclass(frozen=True, order=True)
class Cell:
    """One experiment of one seed. Overrides that say the same in another order are the same cell."""

    overrides: tuple[str, ...]
    seed: int = 0

    @classmethod
    def of(cls, overrides: Iterable[str], seed: int = 0) -> Cell:
        """With the overrides in order; of those with the same key the last holds."""
        given = {override.split("=", 1)[0]: override for override in overrides if override not in _USUAL}
        return cls(tuple(sorted(given.values(), key=_place)), seed)

    @property
    def text(self) -> str:
        """All overrides but the seed, as one would type them."""
        return shlex.join(self.overrides)

    @property
    def run_name(self) -> str:
        """Name of the cell's run: another one once configurations have changed. (Stages that have not are reused.)"""
        return f"cell-{fingerprint([self.overrides, _configurations(tuple(folders()))])[:8]}-seed{self.seed}"

    @property
    def command(self) -> str:
        """What trains the cell's run."""
        return f"tailo train {self.text} seed={self.seed}"

    def called(self, common: Iterable[str] = ()) -> str:
        """In a few words, without overrides that all cells have: `hopper incomplete_ta every=3 smodice kl, seed 0`."""
        told = [one for one in self.overrides if one not in set(common)]
        words = [re.sub(r"^(method\.divergence|env|setting|method)=|^(setting|method)\.", "", one) for one in told]
        return f"{' '.join(words)}, seed {self.seed}"

    @property
    def values(self) -> dict[str, str]:
        """The overrides by their keys."""
        return dict(override.split("=", 1) for override in self.overrides)  # type: ignore[arg-type]

    @property
    def stem(self) -> tuple[str, ...]:
        """What cells have in common that may share stages: everything but the method's options."""
        common = (one for one in self.overrides if not one.startswith("method."))
        return (*common, str(self.seed))

    @property
    def unknown_method(self) -> str | None:
        """The cell's method where there is none of this name."""
        name = self.values.get("method", "tailo")
        return None if name in choices("method") else name


@cache
def _configurations(where: tuple[Path, ...]) -> str:
    """Names the content of all configurations but this room's own."""
    paths = sorted(path for folder in where for path in folder.glob("*/*.yaml"))
    return fingerprint([path.read_text() for path in paths])


def _place(override: str) -> tuple[int, str]:
    """`setting.every` stands behind `setting`, and before `method`."""
    group = override.split("=", 1)[0].split(".")[0]
    return (_FIRST.index(group) if group in _FIRST else len(_FIRST), override.split("=", 1)[0])


def read_entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a list of cells: overrides as keys."""
    entries = read_yaml(path, "a list of cells")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: expected a list of entries, each with overrides as keys")
    return entries


def combinations(entry: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """All combinations of an entry: each key has a value or a list of values; keys with a comma vary together."""
    values = [value if isinstance(value, list) else [value] for value in entry.values()]
    for chosen in itertools.product(*values):
        overrides: list[str] = []
        for key, value in zip(entry, chosen, strict=True):
            names = key.split(",")
            overrides += [
                f"{name}={one}" for name, one in zip(names, value if len(names) > 1 else [value], strict=True)
            ]
        yield tuple(overrides)
