"""`tailo data`: look at data, make it ahead, convert it."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, columns, composing, opened, recordings
from tailo_pl.errors import UserError


@click.group(no_args_is_help=False)
@composing
def data() -> None:
    """List, inspect, make or convert data."""


@data.command("list")
@click.argument(
    "source", required=False, type=click.Choice(["bundled", "d4rl", "minari"]), help="Everything of one source."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@composing
def list_(source: str | None, as_json: bool) -> None:
    """What is known, what is on disk, how large it is."""
    from tailo_pl.commands.catalogue import list_data
    from tailo_pl.commands.console import show_listing

    show_listing(list(list_data(source)), as_json=as_json, complete=source is not None)


@data.command()
@recordings
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@columns
@composing
def inspect(data: tuple[str, ...], as_json: bool, columns: tuple[str, ...], features: tuple[str, ...]) -> None:
    """Steps, ranges, oddities, and what training makes of it."""
    from tailo_pl.commands.console import show_inspection
    from tailo_pl.data import inspection
    from tailo_pl.data.formats.survey import Survey

    survey = Survey()
    trajectories = opened(data, columns, features, finite=False, survey=survey)
    show_inspection(inspection.inspect(trajectories, survey=survey), as_json=as_json)


@data.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="ENV[/PART]...", help="Of which environment, or which part of it."
)
@composing
def make(names: tuple[str, ...]) -> None:
    """Make bundled data ahead."""
    from tailo_pl.commands import catalogue
    from tailo_pl.commands.making import making_data

    with making_data():
        for name in names:
            env, _, part = name.partition("/")
            if env not in (there := catalogue.environments()):
                raise UserError(f"data make: {name!r} given, expected ENV or ENV/PART of {', '.join(there)}")
            source = catalogue.bundled(env)
            for wanted in [part] if part else source.part_names:
                source.part(wanted)


@data.command()
@click.argument("source", metavar="IN", type=click.Path(), help="File, pattern, or a name of `tailo data list`.")
@click.argument("out", metavar="OUT", type=PATH, help="The file to write; its suffix says which format.")
@columns
@composing
def convert(source: str, out: Path, columns: tuple[str, ...], features: tuple[str, ...]) -> None:
    """Between file formats, number by number."""
    from tailo_pl.commands.console import show_converted
    from tailo_pl.data.formats import WRITTEN, write_file

    if out.suffix not in WRITTEN:
        raise UserError(f"{out}: unknown format, expected {', '.join(WRITTEN)}")
    if out.exists():
        raise UserError(f"{out}: this file exists; choose another name, or delete it")
    trajectories = opened([source], columns, features)
    write_file(out, trajectories)
    show_converted(trajectories, out)
