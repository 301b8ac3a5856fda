"""Recordings by their paths, whatever their layout: files of steps, LeRobot, robomimic, Zarr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from tailo_pl.data.formats import open_file
from tailo_pl.data.formats.columns import AUTO, OPTION, Columns
from tailo_pl.data.formats.imports import Opener, read_exactly
from tailo_pl.data.formats.step_reader import Care, Ending
from tailo_pl.data.formats.survey import Survey
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError

KINDS = ("files", "lerobot", "robomimic", "zarr")


@dataclass(frozen=True)
class How:
    """What the user, or a run, says of the layout of recordings.

    Args:
        kind: one of `KINDS`; None: found by looking.
        columns: for files: which fields hold what, by role; roles that are not named are found by their usual names.
        features: for data sets: what makes up a state; None: the layout's own default.
        action: for data sets: what holds the actions; None: the layout's own default.
        option: how the user says which fields of files play a role.
    """

    kind: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    features: Sequence[str] | None = None
    action: str | None = None
    option: str = OPTION

    @classmethod
    def of_source(cls, source: Mapping[str, Any]) -> How:
        """As a run's configuration has it; a source of another kind says nothing."""
        if source.get("name") not in KINDS:
            return cls()
        roles = [role.name for role in fields(Columns)]
        given = source.get("columns")
        columns = {role: given[role] for role in roles if role in given} if isinstance(given, Mapping) else {}
        return cls(source["name"], columns, source.get("features"), source.get("action"))


def kind_of(path: Path) -> str:
    """The layout of what lies at a path."""
    # What cannot be another layout is not looked at: the libraries that could tell take long to import.
    if not path.exists() or (path.is_file() and not path.name.lower().endswith((".hdf5", ".h5", ".zarr.zip"))):
        return "files"
    from tailo_pl.data.formats.lerobot_meta import is_lerobot
    from tailo_pl.data.formats.robomimic import is_robomimic
    from tailo_pl.data.formats.zarr_buffer import is_zarr

    looks = {"lerobot": is_lerobot, "zarr": is_zarr, "robomimic": is_robomimic}
    return next((kind for kind, look in looks.items() if look(path)), "files")


def open_recordings(
    names: Sequence[str],
    how: How,
    *,
    finite: bool = True,
    ignored: Iterable[str] = (),
    survey: Survey | None = None,
) -> Trajectories:
    """All steps of some recordings of one layout, with the number types they have there.

    Args:
        names: paths and patterns, or ids of LeRobot data sets on the Hub.
        how: what is known of their layout.
        finite: refuse NaN and infinity; without, states, actions and rewards may hold them or lack them.
        ignored: roles that are not wanted.
        survey: looks at everything that is read.
    """
    from tailo_pl.data.hub import data_set_folder

    found = [data_set_folder(name, "data", download=True) for name in names]
    kind = how.kind or kind_of(found[0])
    paths, opener, columns = _layout(kind, found, how, holes=not finite)
    return read_exactly(
        paths,
        columns,
        care=Care(finite=finite),
        open_file=opener,
        ending=Ending(whole_file=columns.episode is None or not finite or "actions" in ignored),
        ignored=ignored,
        option=how.option,
        telling=kind == "files",
        survey=survey,
    )


def _layout(kind: str, found: list[Path], how: How, holes: bool) -> tuple[list[Path], Opener, Columns]:
    features = list(how.features) if how.features else None
    if kind == "lerobot":
        from tailo_pl.data.formats.lerobot import ACTION, STATE, LeRobotSet
        from tailo_pl.data.sources import lerobot

        with LeRobotSet(found[0]) as one:
            action = how.action or (ACTION if ACTION in one.fields else None)
            rewards = "next.reward" if "next.reward" in one.fields else None
            missing = next((name for name in features or [STATE] if name not in one.fields), None)
            if missing:
                raise UserError(
                    f"{found[0]}: no feature {missing!r} of numbers, expected some of {', '.join(one.fields)} "
                    "(source.features)"
                )
        columns = lerobot.columns_of(features or [STATE], action, rewards)
        return found, partial(LeRobotSet, holes=holes), columns
    if kind == "robomimic":
        from tailo_pl.data.formats.robomimic import RobomimicFile
        from tailo_pl.data.sources import robomimic

        with RobomimicFile(found[0]) as file:
            return found, RobomimicFile, robomimic.columns_of(file, features)
    if kind == "zarr":
        from tailo_pl.data.formats.zarr_buffer import ZarrBuffer
        from tailo_pl.data.sources import zarr

        return found, ZarrBuffer, zarr.columns_of(features, how.action or AUTO)
    from tailo_pl.data.sources.files import expand

    if features:
        raise UserError(
            f"{found[0]}: a file of steps, expected its fields to be named with {how.option.format('ROLE')}"
        )
    return expand("data", [str(path) for path in found]), partial(open_file, holes=holes), Columns(**how.columns)
