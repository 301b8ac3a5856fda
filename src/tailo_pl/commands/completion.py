"""`tailo completion`: what a shell needs to complete commands, options, and the choices of `tailo train`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from tailo_pl.commands.options import trusting
from tailo_pl.config.choices import choices, groups
from tailo_pl.errors import UserError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_TAILO_COMPLETE"  # by which the shell's script asks for what can follow


@click.command()
@click.argument("shell", help="bash, zsh or fish.")
@trusting
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """What a shell needs to complete commands and choices.

    For bash: eval "$(tailo completion bash)"
    """
    script = get_completion_class(shell)
    if shell not in SHELLS or script is None:
        raise UserError(f"completion: {shell!r} given, expected one of {', '.join(SHELLS)}")
    click.echo(script(context.find_root().command, {}, "tailo", VARIABLE).source())


def complete_override(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """What can follow as an override: every choice of every config group; file names behind other keys."""
    before: list[str] = list(context.params.get(parameter.name or "") or ())
    group, equals, _ = incomplete.partition("=")
    offered = [f"{group}={name}" for group in groups() for name in choices(group)]
    if before[-1:] == ["="] or (before and before[-1] in groups() and before[-2:-1] != ["="]):
        # bash takes `env`, `=` and what follows for three words, and Click leaves out an `=` at the end
        group, equals = [word for word in before if word != "="][-1], "="
        offered = choices(group) if group in groups() else []
    if equals and group not in groups():
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(word) for word in offered if word.startswith(incomplete)]
