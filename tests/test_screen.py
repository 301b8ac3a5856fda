"""What the command line shows: frames and colours on a terminal, plain text elsewhere, JSON, completion, help."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tailo_pl import cli
from tailo_pl.completion import SHELLS, overrides

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


def on_terminal(**environment: str) -> str:
    """What the table looks like on a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **environment}
    env = {name: value for name, value in env.items() if value}
    process = subprocess.Popen([sys.executable, "-c", TABLE], stdout=theirs, env=env)
    os.close(theirs)
    content = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        content += part
    os.close(ours)
    assert process.wait() == 0
    return content.decode()


def test_a_terminal_gets_frames_and_colours() -> None:
    shown = on_terminal(NO_COLOR="")
    assert "┏" in shown and "\x1b[" in shown


@pytest.mark.parametrize("terminal", [True, False])
def test_plain_text_without_a_terminal_or_with_no_color(terminal: bool) -> None:
    if terminal:
        shown = on_terminal(NO_COLOR="1").replace("\r\n", "\n")
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


def test_help_fits_on_a_screen_and_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 120
    assert {"train", "fit", "evaluate", "data", "score", "export", "play", "results"} <= set(cli.COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from tailo_pl.cli import main; main(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "lightning", "hydra", "rich", "mujoco"} & set(loaded)


def completed(line: str) -> list[str]:
    """What bash offers behind a line."""
    script = f"""
    eval "$({sys.executable} -m tailo_pl.cli completion bash)"
    COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
    words=($COMP_LINE); case "$COMP_LINE" in *" ") words+=("");; esac
    COMP_WORDS=("${{words[@]}}"); COMP_CWORD=$((${{#words[@]}} - 1))
    _tailo; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes() -> None:
    assert completed("tailo ev") == ["evaluate"]
    assert set(completed("tailo ")) == set(cli.COMMANDS)
    assert completed("tailo train env=poi") == ["pointmaze"]  # what follows the =, as bash wants it
    assert "env=hopper" in completed("tailo train method=bc en") and "logger=csv" in completed("tailo train ")
    assert completed("tailo data in") == ["inspect"]
    assert completed("tailo score lo") == []  # left to the shell's own file names


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(command in script for command in cli.COMMANDS) and "env=pointmaze" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was written, not read")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_completion_of_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "csh"]) == 2
    assert capsys.readouterr().err == "tailo: completion: 'csh' given, expected one of bash, zsh, fish\n"
    assert set(SHELLS) == {"bash", "zsh", "fish"} and "setting=given" in overrides()
