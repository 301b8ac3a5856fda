"""Options that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tailo_pl.config.choices import use_folder
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.data.formats.survey import Survey
    from tailo_pl.data.opening import How
    from tailo_pl.data.trajectories import Trajectories

STATES_ONLY = ("actions", "next_observations")
"""Roles that scoring does not need."""
PATH = click.Path(path_type=Path)
# What has a front door of its own, Hydra's or Lightning's, gets every argument as it was typed.
PASS_ON = {"ignore_unknown_options": True}  # and without a --help of ours
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
recordings = click.argument(
    "data",
    nargs=-1,
    required=True,
    metavar="DATA...",
    type=click.Path(),
    help="Files, patterns, or a name of `tailo data list`.",
)


def _allow(context: click.Context, parameter: click.Parameter, packages: Sequence[str]) -> None:
    if packages and not context.resilient_parsing:  # which is when a shell completes a line
        from tailo_pl.config.trusted import allow

        allow(packages)
        sys.path.insert(0, "")  # the user's own package is most likely here


def _allow_folder(context: click.Context, parameter: click.Parameter, folders: Sequence[str]) -> None:
    if folders and not context.resilient_parsing:
        from tailo_pl.config.places import allow_folders

        allow_folders(folders)


def _config_dir(context: click.Context, parameter: click.Parameter, folder: Path | None) -> None:
    if folder is not None:
        use_folder(folder)


def trusting(command: Decorated) -> Decorated:
    """Options that say what configurations may do beyond what they may by themselves."""
    command = click.option(
        "--allow-folder",
        multiple=True,
        type=click.Path(),
        metavar="FOLDER",
        callback=_allow_folder,
        expose_value=False,
        help="Let a saved configuration write to this folder.",
    )(command)
    return click.option(
        "--allow",
        multiple=True,
        metavar="PACKAGE",
        callback=_allow,
        expose_value=False,
        help="Let configurations name classes of this package.",
    )(command)


def composing(command: Decorated) -> Decorated:
    """The same, and where else a command that reads configurations by name finds them."""
    return click.option(
        "--config-dir",
        type=PATH,
        metavar="DIR",
        callback=_config_dir,
        expose_value=False,
        help="Find configurations of your own here.",
    )(trusting(command))


def columns(command: Decorated) -> Decorated:
    """Which fields of the user's files hold what, and what of a data set makes up a state."""
    command = click.option(
        "--feature",
        "features",
        multiple=True,
        metavar="NAME",
        help="What makes up a state in LeRobot, robomimic and Zarr data, e.g. observation.state; several are joined.",
    )(command)
    return click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=NAMES",
        help="Which fields of the files hold what, e.g. observations=x,y,joint_*.",
    )(command)


def chosen_columns(columns: Sequence[str]) -> dict[str, Any]:
    """The user's `--column` options, by role."""
    from tailo_pl.data.formats.columns import Columns

    roles = [field.name for field in fields(Columns)]
    chosen: dict[str, Any] = {}
    for given in columns:
        role, separator, found = given.partition("=")
        if role not in roles or not separator:
            raise UserError(f"--column: {given!r} given, expected ROLE=NAMES with a role of {', '.join(roles)}")
        chosen[role] = None if found in ("", "null") else found.split(",")
    return chosen


def opened(
    names: Sequence[str],
    columns: Sequence[str],
    features: Sequence[str] = (),
    *,
    finite: bool = True,
    ignored: Sequence[str] = (),
    survey: Survey | None = None,
    remembered: How | None = None,
) -> Trajectories:
    """The data of these names, read as the user's options say; what they leave open as a run remembers it."""
    from tailo_pl.commands import catalogue
    from tailo_pl.commands.making import making_data
    from tailo_pl.data.opening import How

    before = remembered or How()
    how = replace(
        before,
        columns={**before.columns, **chosen_columns(columns)},
        features=list(features) or before.features,
        option="--column {}",
    )
    try:
        with making_data():
            return catalogue.open_data(list(names), how, finite=finite, ignored=ignored, survey=survey)
    except UserError as error:
        # Sources name their own options; these commands have theirs.
        said = str(error).replace("source.features=[...]", "--feature NAME").replace("(source.features)", "(--feature)")
        raise UserError(said) from error
