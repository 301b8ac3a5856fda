"""`tailo completion SHELL`: a script that lets a shell complete commands and the choices of `tailo train`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from tailo_pl.choices import choices
from tailo_pl.errors import UserError

DATA = ("list", "inspect", "make", "convert")

_BASH = """\
# tailo completion bash > ~/.local/share/bash-completion/completions/tailo
_tailo() {{
    local line="${{COMP_LINE:0:COMP_POINT}}" words=""
    local cur="${{line##* }}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    elif [ "${{COMP_WORDS[1]}}" = train ]; then
        words="{overrides}"
    elif [ "${{COMP_WORDS[1]}}" = data ] && [ "$COMP_CWORD" -eq 2 ]; then
        words="{data}"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    # bash takes what stands before = for a word of its own
    COMPREPLY=("${{COMPREPLY[@]#"${{cur%"${{cur##*=}}"}}"}}")
}}
complete -o default -F _tailo tailo
"""
_ZSH = """\
#compdef tailo
# tailo completion zsh > a folder of $fpath/_tailo
_tailo() {{
    if (( CURRENT == 2 )); then
        compadd -- {commands}
    elif [[ $words[2] == train ]]; then
        compadd -- {overrides}
    elif [[ $words[2] == data ]] && (( CURRENT == 3 )); then
        compadd -- {data}
    else
        _files
    fi
}}
compdef _tailo tailo
"""
_FISH = """\
# tailo completion fish > ~/.config/fish/completions/tailo.fish
complete -c tailo -n __fish_use_subcommand -f -a "{commands}"
complete -c tailo -n "__fish_seen_subcommand_from train" -f -a "{overrides}"
complete -c tailo -n "__fish_seen_subcommand_from data" -a "{data}"
"""
SHELLS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(shell: str, commands: tuple[str, ...]) -> str:
    """The script for a shell."""
    if shell not in SHELLS:
        raise UserError(f"completion: {shell!r} given, expected one of {', '.join(SHELLS)}")
    return SHELLS[shell].format(commands=" ".join(commands), overrides=" ".join(overrides()), data=" ".join(DATA))


def overrides() -> list[str]:
    """Every choice of every config group, as it is written behind `tailo train`."""
    folder = Path(str(files("tailo_pl.configs")))
    groups = sorted(path.name for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.yaml")))
    return [f"{group}={name}" for group in groups for name in choices(group) if not name.startswith("default_for_")]
