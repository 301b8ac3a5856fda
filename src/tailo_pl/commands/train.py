"""`tailo train`: run an experiment, go on with one, or sweep over several."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from tailo_pl.commands.completion import complete_override
from tailo_pl.commands.jobs import execute, train_config
from tailo_pl.commands.options import PASS_ON, composing
from tailo_pl.commands.sweep import sweep, through_hydra
from tailo_pl.config.overrides import readable
from tailo_pl.errors import UserError

STRICT = 3  # exit status of --strict
HYDRA_FLAGS = ("-m", "--multirun", "-c", "--cfg", "--resolve", "-p", "--package", "-i", "--info")


@click.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_override)
@click.option("--strict", is_flag=True, help=f"End with status {STRICT} where the verdict on the run is bad.")
@composing
def train(arguments: tuple[str, ...], strict: bool) -> None:
    """Run an experiment: tailo train env=hopper (-m: sweep)."""
    if {"-h", "--help"} & set(arguments):
        from tailo_pl.commands.train_help import train_help

        click.echo(train_help(), nl=False)
        return
    for argument in arguments:
        if argument.startswith("-") and argument.split("=")[0] not in HYDRA_FLAGS:
            raise UserError(_unknown_flag(argument))
    resumed = [argument for argument in arguments if argument.startswith("resume=")]
    if resumed:
        others = [one for one in arguments if one not in resumed]
        _end(_resume(Path(resumed[-1].removeprefix("resume=")), others), strict)
    elif {"-m", "--multirun"} & set(arguments):
        if strict:
            raise UserError("train: --strict given with -m, expected it with a single run")
        sweep(readable(arguments, sweep=True))
    elif any(argument.startswith("-") for argument in arguments):  # what is there is shown, nothing is run
        through_hydra([one if "=" not in one else readable([one])[0] for one in arguments])
    else:
        # Not through Hydra, which would make a folder of its own before anything is checked.
        overrides = readable(arguments)
        from tailo_pl.config.compose import composed_config

        _end(train_config(composed_config(overrides)), strict)


def _unknown_flag(argument: str) -> str:
    flags = ("--config-dir", "--allow", "--allow-folder", "--strict", *HYDRA_FLAGS, "-h", "--help")
    near = difflib.get_close_matches(argument.split("=")[0], flags, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"train: unknown flag {argument!r}, expected key=value or one of {', '.join(flags)}{hint}"


def _end(summary: dict[str, Any], strict: bool) -> None:
    if strict and summary["verdict"]["level"] == "bad":
        raise Exit(STRICT)


def _resume(run_dir: Path, overrides: list[str]) -> dict[str, Any]:
    from tailo_pl.commands.making import making_data
    from tailo_pl.runs.resume import resume

    with making_data():
        experiment = resume(run_dir, overrides)
    return execute(run_dir, experiment)
