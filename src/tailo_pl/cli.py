"""The `tailo` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

import click
from click.exceptions import Exit, NoSuchCommand
from click.shell_completion import shell_complete

from tailo_pl.commands.advise import advise
from tailo_pl.commands.compare import compare
from tailo_pl.commands.completion import VARIABLE, completion
from tailo_pl.commands.curate import curate
from tailo_pl.commands.data import data
from tailo_pl.commands.evaluate import evaluate
from tailo_pl.commands.export import export
from tailo_pl.commands.fit import fit, validate
from tailo_pl.commands.jobs import Interrupted
from tailo_pl.commands.logs import quieten
from tailo_pl.commands.play import play
from tailo_pl.commands.prepare import prepare
from tailo_pl.commands.push import push
from tailo_pl.commands.report import report
from tailo_pl.commands.reproduce import reproduce
from tailo_pl.commands.run import run
from tailo_pl.commands.score import score
from tailo_pl.commands.table import table
from tailo_pl.commands.train import train
from tailo_pl.config.choices import use_folder
from tailo_pl.errors import UserError, printable
from tailo_pl.runs.launch import complain


class Commands(click.Group):
    """Commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="tailo_pl", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Offline imitation learning from observations."""
    if context.invoked_subcommand != "run":  # whose processes have others to think of
        _end_like_ctrl_c(signal.SIGTERM)
    quieten()
    use_folder(None)


for command in (
    train, fit, validate, evaluate, data, score, curate, table, compare, reproduce, advise, report, export, push,
    play, prepare, run, completion,
):  # fmt: skip
    app.add_command(command)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. A mistake of the user's ends as one line on standard error and exit code 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    gc.set_threshold(20_000)  # imports make many objects and no rubbish: to look for it is a seventh of a start
    if instruction := os.environ.get(VARIABLE):
        return shell_complete(app, {}, "tailo", VARIABLE, instruction)
    if not arguments or arguments[0] == "help":
        arguments = ["--help"]
    try:
        # Not `app.main`: it would take a KeyboardInterrupt for its own, and what it says of it is lost.
        with app.make_context("tailo", arguments) as context:
            app.invoke(context)
    except Exit as end:  # after --help and --version, and by --strict
        return end.exit_code
    except click.UsageError as error:
        complain(UserError(_line(error)))
        return 2
    except UserError as error:
        complain(error)
        return 2
    except Interrupted as stop:
        sys.stderr.write(f"tailo: interrupted; `tailo train resume={stop.run_dir}` goes on\n")
        return 130
    except KeyboardInterrupt:
        sys.stderr.write("tailo: interrupted\n")
        return 130
    return 0


def _end_like_ctrl_c(number: signal.Signals) -> None:
    """Let a signal end the command as Ctrl-C does: what was begun is cleared away, and a line says how to go on."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, signal.default_int_handler)


def _line(error: click.UsageError) -> str:
    """Click's complaint in our form: which command, then what is wrong with it, in one line."""
    command = error.ctx.command_path.removeprefix("tailo").strip() if error.ctx else ""
    if isinstance(error, NoSuchCommand) and error.ctx and isinstance(error.ctx.command, click.Group):
        there = [name for name, one in error.ctx.command.commands.items() if not one.hidden]
        hint = f" (did you mean {error.possibilities[0]}?)" if error.possibilities else ""
        return f"{command or 'command'}: {error.command_name!r} given, expected one of {', '.join(there)}{hint}"
    said = printable(error.format_message()).rstrip(".")
    return f"{command}: {said[0].lower()}{said[1:]}".removeprefix(": ")


if __name__ == "__main__":
    sys.exit(main())
