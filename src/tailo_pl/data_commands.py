"""The commands that look at data: `tailo data list|inspect|make|convert` and `tailo score`."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.filesize import decimal
from rich.table import Table

from tailo_pl.console import making_data
from tailo_pl.data import catalogue
from tailo_pl.data.columns import Columns
from tailo_pl.data.formats import SUFFIXES, write_file
from tailo_pl.data.inspection import inspect
from tailo_pl.data.inspection_table import tables
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tailo_pl.screen import console, show


def data(parser: ArgumentParser, arguments: list[str]) -> None:
    """Run `tailo data ...`."""
    parser.description = "Look at data, make it ahead, convert it."
    commands = parser.add_subparsers(dest="command", required=True, metavar="list|inspect|make|convert")
    listing = commands.add_parser("list", help="what is known, what is on disk, how large it is")
    listing.add_argument("source", nargs="?", choices=["bundled", "d4rl", "minari"], help="everything of one source")
    inspecting = commands.add_parser("inspect", help="steps, trajectories, returns, ranges, oddities")
    inspecting.add_argument("data", nargs="+", help="files, patterns, or a name of `tailo data list`")
    making = commands.add_parser("make", help="make bundled data ahead")
    making.add_argument("names", nargs="+", metavar="ENV[/PART]")
    converting = commands.add_parser("convert", help="between file formats, number by number")
    converting.add_argument("input", metavar="IN", help="file, pattern, or a name of `tailo data list`")
    converting.add_argument("output", metavar="OUT", type=Path, help=f"one of {', '.join(SUFFIXES)}")
    for command in (listing, inspecting):
        command.add_argument("--json", action="store_true", help="print JSON")
    for command in (inspecting, converting):
        _add_columns(command)
    options = parser.parse_args(arguments)
    {"list": _list, "inspect": _inspect, "make": _make, "convert": _convert}[options.command](options)


def score(parser: ArgumentParser, arguments: list[str]) -> None:
    """Run `tailo score ...`."""
    parser.description = "R and W of a trained run's discriminator for new logs, written to a file."
    parser.add_argument("data", nargs="+", help="files, patterns, or a name of `tailo data list`")
    parser.add_argument("--run", type=Path, required=True, help="folder of a finished run")
    parser.add_argument("--out", type=Path, default=Path("scores.csv"), help="default scores.csv; also .npz, .parquet")
    _add_columns(parser)
    options = parser.parse_args(arguments)

    from tailo_pl.scoring import score as scored
    from tailo_pl.scoring import write_scores

    trajectories = _open(options.data, options)
    scores = scored(options.run, trajectories)
    write_scores(scores, options.out)
    table = Table(title=f"{len(trajectories):,} trajectories of {' '.join(options.data)}, scored by {options.run}")
    for column in ("trajectory", "origin", "steps", "mean score", "weight"):
        table.add_column(column, justify="left" if column == "origin" else "right")
    means, shares = trajectories.mean(scores.score), trajectories.mean(scores.weight) * trajectories.lengths
    best = means.argsort()[::-1]
    for number in best[:5].tolist() + (best[-5:].tolist() if len(best) > 10 else best[5:].tolist()):
        table.add_row(
            str(number),
            str(trajectories.origins[number]),
            f"{trajectories.lengths[number]:,}",
            f"{means[number]:.3f}",
            f"{shares[number] / shares.sum():.2%}",
        )
    show(table)
    out = console()
    if len(best) > 10:
        out.print("the five that score highest and the five that score lowest")
    out.print(f"scores {options.out}", highlight=False, soft_wrap=True)


def _add_columns(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAMES",
        help="which fields of the files hold what, e.g. observations=x,y,joint_*",
    )


def _columns(options: Namespace) -> Columns:
    roles = [field.name for field in fields(Columns)]
    chosen: dict[str, Any] = {}
    for given in options.column:
        role, separator, names = given.partition("=")
        if role not in roles or not separator:
            raise UserError(f"--column: {given!r} given, expected ROLE=NAMES with a role of {', '.join(roles)}")
        chosen[role] = None if names in ("", "null") else names.split(",")
    return Columns(**chosen)


def _open(names: list[str], options: Namespace, *, finite: bool = True) -> Trajectories:
    with making_data():
        return catalogue.open_data(names, _columns(options), finite=finite)


def _list(options: Namespace) -> None:
    entries = list(catalogue.list_data(options.source))
    if options.json:
        sys.stdout.write(json.dumps([asdict(entry) for entry in entries], indent=1) + "\n")
        return
    table = Table(title="data")
    for column in ("name", "source", "on disk", "where"):
        table.add_column(column, justify="right" if column == "on disk" else "left", overflow="fold")
    for entry in entries:
        there = entry.size is not None
        table.add_row(entry.name, entry.source, decimal(entry.size or 0) if there else "–", entry.path if there else "")
    show(table)
    if options.source is None:
        console().print(
            "– is made or downloaded when it is used. `tailo data list d4rl` names all of D4RL's data sets.",
            highlight=False,
        )


def _inspect(options: Namespace) -> None:
    inspection = inspect(_open(options.data, options, finite=False))
    if options.json:
        sys.stdout.write(json.dumps(asdict(inspection), indent=1) + "\n")
        return
    for table in tables(inspection):
        show(table)


def _make(options: Namespace) -> None:
    with making_data():
        for name in options.names:
            env, _, part = name.partition("/")
            if env not in catalogue.ENVS:
                raise UserError(f"data make: {name!r} given, expected ENV or ENV/PART of {', '.join(catalogue.ENVS)}")
            source = catalogue.bundled(env)
            for wanted in [part] if part else source.part_names:
                source.part(wanted)


def _convert(options: Namespace) -> None:
    if options.output.suffix not in SUFFIXES:
        raise UserError(f"{options.output}: unknown format, expected {', '.join(SUFFIXES)}")
    if options.output.exists():
        raise UserError(f"{options.output}: this file exists; choose another name, or delete it")
    trajectories = _open([options.input], options)
    write_file(options.output, trajectories)
    console().print(
        f"{trajectories.steps:,} steps in {len(trajectories):,} trajectories written to {options.output}",
        highlight=False,
        soft_wrap=True,
    )
