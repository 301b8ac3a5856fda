"""The catalogue: what data is known by name, what of it is on disk, and how to open any of it."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailo_pl.config.choices import choice_file, choices, resolved
from tailo_pl.data.hub import is_id
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.d4rl_datasets import DATASETS, dataset_path
from tailo_pl.data.sources.recipe import Recipe
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.data.formats.survey import Survey
    from tailo_pl.data.opening import How


@dataclass(frozen=True)
class Entry:
    """One data set.

    Args:
        name: by which `open_data` finds it.
        source: bundled, d4rl or minari.
        path: where it is, or would be.
        size: bytes on disk; None: not there.
    """

    name: str
    source: str
    path: str
    size: int | None


def list_data(source: str | None = None) -> Iterator[Entry]:
    """What is known: all of one source, or all bundled data and whatever else is on disk."""
    if source in (None, "bundled"):
        yield from _bundled()
    if source in (None, "d4rl"):
        for entry in _d4rl():
            if source or entry.size is not None:
                yield entry
    if source in (None, "minari"):
        yield from _minari()


def _bundled() -> Iterator[Entry]:
    for env in environments():
        source = bundled(env)
        for part in source.part_names:
            folder = source.folder(part)
            yield Entry(f"{env}/{part}", "bundled", str(folder), _size(folder))


def _d4rl() -> Iterator[Entry]:
    for name in DATASETS:
        path = dataset_path(name)
        yield Entry(name, "d4rl", str(path), path.stat().st_size if path.is_file() else None)


def _minari() -> Iterator[Entry]:
    # To ask Minari takes its import; where it has never stored anything there is nothing to ask.
    if "MINARI_DATASETS_PATH" in os.environ or any(Path.home().glob(".minari/datasets/*")):
        from tailo_pl.data.sources.minari import local_datasets

        for name, path, size in local_datasets():
            yield Entry(f"minari:{name}", "minari", str(path), size)


def environments() -> list[str]:
    """The environments that make data of their own: their configuration names a recipe under `data`."""
    # Looked up in the text: to parse all of these files takes longer than all else that lists data.
    return [env for env in choices("env") if re.search(r"^data:", choice_file("env", env).read_text(), re.MULTILINE)]


def bundled(env: str) -> Bundled:
    """The bundled data of one of the `environments`, in the form its configuration asks for."""
    from omegaconf import OmegaConf  # here: to look at a file needs neither

    from tailo_pl.config.parsing import as_class, build

    config = resolved(OmegaConf.create({"env": OmegaConf.load(choice_file("env", env))}))["env"]
    recipe = build(Recipe, as_class(config["data"], "env.data"), "env.data")  # type: ignore[type-abstract]
    return Bundled(config["name"], recipe)


def open_data(
    names: list[str], how: How, *, finite: bool = True, ignored: Sequence[str] = (), survey: Survey | None = None
) -> Trajectories:
    """Data by name or path.

    Args:
        names: `walker2d/expert` (bundled), `hopper-expert-v2` (D4RL), `minari:ID`, or files, folders and patterns.
        how: for files and data sets of other layouts: what holds what.
        finite: for these: refuse NaN and infinity.
        ignored: for these: roles that are not wanted.
        survey: for these: looks at everything that is read.
    """
    name = names[0]
    if len(names) == 1 and not Path(name).exists():
        env, _, part = name.partition("/")
        if part and env in environments():
            return bundled(env).part(part)
        if name.startswith("minari:"):
            from tailo_pl.data.sources.minari import Minari

            return Minari().part(name.removeprefix("minari:"))
        if name in DATASETS:
            from tailo_pl.data.sources.d4rl import D4RL

            return D4RL().part(name)
        if not Path(name).suffix and "*" not in name and not is_id(name):
            known = [*DATASETS, *(entry.name for entry in _bundled())]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UserError(
                f"data: {name!r} given, expected a file, ENV/PART of `tailo data list`, a D4RL name or minari:ID{hint}"
            )
    from tailo_pl.data.opening import open_recordings

    return open_recordings(names, how, finite=finite, ignored=ignored, survey=survey)


def _size(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    return sum(file.stat().st_size for file in folder.iterdir())
