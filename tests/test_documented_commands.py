"""What README and documentation tell people to type: commands and options exist, configurations compose, and the
tutorial runs from its first line to its last."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from helpers.runs import SMALL

from tailo_pl.cli import app
from tailo_pl.config.compose import composed_config

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = ("configuration.md", "results.md")  # by `make docs`, from the project itself
# What a line needs that a test has not; a line that begins or goes on like this is not looked at further.
NEEDS = {
    "hydra/launcher=": "another launcher, or a cluster",
    "...": "a name of the reader's own",
    "conf ": "the reader's own folder of configurations",
    "--allow ": "the reader's own package",
    "--config-dir": "the reader's own folder of configurations",
    "resume=": "a run of the reader's own",
    "--cfg": "nothing: Hydra shows what is composed",
}


def lines_of(path: Path) -> list[str]:
    """The commands of a page: whole lines of indented and fenced blocks that begin with `tailo`."""
    text = re.sub(r"<!-- output:begin -->.*?<!-- output:end -->", "", path.read_text(), flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    found = re.findall(r"^(?: {4})?\$? ?(tailo .*)$", text, re.MULTILINE)
    return [re.sub(r"\s+#.*$", "", line).strip() for line in found]


COMMANDS = sorted({(path.name, line) for path in PAGES if path.name not in MADE for line in lines_of(path)})


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.parametrize(("page", "line"), [pair for pair in COMMANDS if pair[1].split()[1] != "train"])
def test_command_and_options_exist(page: str, line: str) -> None:
    _, *words = shlex.split(line)
    words = [word for word in words if word not in ("…",)]
    command: click.Command = app
    while isinstance(command, click.Group) and words:
        name = words.pop(0)
        assert name in command.commands, f"{page}: {line}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    if command.name in ("fit", "validate"):  # Lightning CLI's options stand behind them
        known |= {word.split("=")[0] for word in words if word.startswith(("--trainer.", "--model.", "--data."))}
        known |= {"--config", "--ckpt_path", "--print_config", "--options"}
    for word in words:
        if word.startswith("--"):
            assert word.split("=")[0] in known, f"{page}: {line}"


@pytest.mark.parametrize(("page", "line"), [pair for pair in COMMANDS if pair[1].split()[1] == "train"])
def test_what_is_to_be_trained_composes(page: str, line: str) -> None:
    if any(mark in line for mark in NEEDS):
        pytest.skip(next(reason for mark, reason in NEEDS.items() if mark in line))
    _, _, *words = shlex.split(line)
    sweep = "-m" in words
    overrides = [word for word in words if not word.startswith("-")]
    if sweep:  # its first job
        overrides = [word if word.split("=")[1][:1] == "[" else word.split(",")[0] for word in overrides]
    if "hoper" in line:  # the page shows what is said of it
        return
    assert composed_config(overrides)["method"]["stages"]


def blocks(path: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(sh|python)\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    for language, block in blocks(ROOT / "docs/tutorial.md"):
        if language == "python":
            subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, timeout=300)
            continue
        for line in block.strip().splitlines():
            _, command, *words = shlex.split(line)
            if command == "train":
                words += [one for one in SMALL if not one.startswith("preset.rollout.ep")]
            if command == "fit":
                words += ["--trainer.max_steps=5"]
            if command == "play":
                words += ["--width=64", "--height=48"]
            done = subprocess.run(
                [sys.executable, "-m", "tailo_pl.cli", command, *words],
                cwd=tmp_path, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            if command in ("play", "export") and done.returncode == 2 and "renderer" in done.stderr:
                continue  # a machine that cannot draw
            assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (tmp_path / "report.html").exists() and (tmp_path / "fits").is_dir()
