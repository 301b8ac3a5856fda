"""What the command line shows: frames and colours on a terminal, plain text elsewhere, JSON, completion, help."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers.terminal import on_terminal

from tailo_pl import cli
from tailo_pl.commands.data import data
from tailo_pl.config.choices import choices, groups

TABLE = """
from rich.table import Table
from tailo_pl.screen import console, show

table = Table(title="a title that is longer than it")
table.add_column("name")
table.add_column("number", justify="right")
table.add_row("one", "[bold]1[/]")
table.add_row("x" * 100, "2")
show(table)
console().print("[red]3[/] words")
"""


def test_a_terminal_gets_frames_and_colours() -> None:
    shown = on_terminal(TABLE, NO_COLOR="")
    assert "┏" in shown and "\x1b[" in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_plain_text_without_a_terminal_or_with_no_color(terminal: bool) -> None:
    if terminal:
        shown = on_terminal(TABLE, NO_COLOR="1").replace("\r\n", "\n")
    else:
        shown = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True).stdout
    assert shown.isascii() and "\x1b" not in shown
    lines = shown.splitlines()
    assert lines[0] == "a title that is longer than it"
    assert lines[1].split() == ["name", "number"]
    assert lines[2].split() == ["one", "1"] and lines[3].split() == ["x" * 100, "2"]  # nothing is cut
    assert lines[4] == "3 words"


def test_evaluate_as_json(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(run_dir), "--episodes", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"] == str(run_dir) and found["episodes"] == 2 and {"score", "score_std", "success"} <= set(found)


def test_data_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "list", "bundled", "--json"]) == 0
    assert {entry["name"] for entry in json.loads(capsys.readouterr().out)} >= {"pointmaze/directions", "hopper/expert"}


def visible(group: click.Group) -> list[str]:
    """The commands that help lists."""
    return [name for name, command in group.commands.items() if not command.hidden]


def test_help_has_a_line_for_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 9 + len(visible(cli.app)) and max(map(len, lines)) <= 80
    listed = [line.split() for line in lines[lines.index("Commands:") + 1 :]]
    assert [words[0] for words in listed] == visible(cli.app)
    assert {"train", "fit", "evaluate", "data", "score", "export", "play"} <= {words[0] for words in listed}
    assert all(len(words) > 2 and not words[-1].endswith("...") for words in listed)  # nothing is cut


@pytest.mark.parametrize("arguments", [[], ["help"], ["-h"]])
def test_other_ways_to_ask_for_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out.startswith("Usage: tailo ")


OF_THEIR_OWN = ("train", "fit", "validate")  # behind them are Hydra and Lightning CLI


@pytest.mark.parametrize(
    "command",
    [[name] for name in visible(cli.app) if name not in OF_THEIR_OWN] + [["data", name] for name in visible(data)],
    ids=" ".join,
)
def test_help_of_a_command(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: tailo {' '.join(command)} [OPTIONS]") and max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", OF_THEIR_OWN)
def test_help_of_a_command_with_many_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: tailo {command} ") and max(map(len, lines)) <= 80


def test_train_s_help_describes_every_choice(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["train", "--help"])
    lines = capsys.readouterr().out.splitlines()
    for group in groups():
        begin = next(at for at, line in enumerate(lines) if line.startswith(f"{group}="))
        for choice in choices(group):
            assert any(line.startswith(f"  {choice} ") and len(line.split()) > 2 for line in lines[begin:]), choice


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from tailo_pl.cli import main; main(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "lightning", "hydra", "rich", "mujoco", "jsonargparse"} & set(loaded)


@pytest.fixture(scope="module")
def on_path(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `tailo` is this one."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "tailo").write_text(f'#!/bin/sh\nexec {sys.executable} -m tailo_pl.cli "$@"\n')
    (folder / "tailo").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def completed(line: str, env: dict[str, str]) -> list[str]:
    """What bash offers behind a line; like bash, it takes = for a word of its own."""
    script = f"""
    compopt() {{ echo "<$2>"; }}
    eval "$(tailo completion bash)"
    line={line!r}; words=(${{line//=/ = }}); case "$line" in *" ") words+=("");; esac
    COMP_WORDS=("${{words[@]}}"); COMP_CWORD=$((${{#words[@]}} - 1))
    _tailo_completion tailo; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env=env
    ).stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(on_path: dict[str, str], tmp_path: Path) -> None:
    def offered(line: str) -> list[str]:
        return completed(line, on_path)

    assert offered("tailo ev") == ["evaluate"]
    assert offered("tailo ") == visible(cli.app)
    assert offered("tailo train env=poi") == ["pointmaze"]  # what follows the =, as bash wants it
    assert {"hopper", "pointmaze"} < set(offered("tailo train method=bc env="))
    assert "env=hopper" in offered("tailo train method=bc en") and "logger=csv" in offered("tailo train ")
    assert "env=hopper" in offered("tailo train env=none ") and "env=hopper" in offered("tailo prepare en")
    assert offered("tailo data in") == ["inspect"]
    assert offered("tailo evaluate --ep") == ["--episodes"]
    files = ["<default>", ""]  # left to the shell's own file names
    assert offered("tailo score lo") == files and offered("tailo train resume=ru") == files
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "mine.yaml").write_text("name: mine\n")
    assert offered(f"tailo train --config-dir {tmp_path} env=mi") == ["mine"]


def test_other_shells_keep_a_choice_in_one_word(on_path: dict[str, str]) -> None:
    asked = {"_TAILO_COMPLETE": "zsh_complete", "COMP_WORDS": "tailo train env=poi", "COMP_CWORD": "2"}
    done = subprocess.run(["tailo"], capture_output=True, text=True, check=True, env={**on_path, **asked})
    assert done.stdout.splitlines() == ["plain", "env=pointmaze", "_"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_TAILO_COMPLETE={shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was written, not read")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_completion_of_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "csh"]) == 2
    assert capsys.readouterr().err == "tailo: completion: 'csh' given, expected one of bash, zsh, fish\n"
