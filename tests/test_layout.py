"""The house is in order: rooms as CONTRIBUTING lists them, small modules, data flowing one way."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tailo_pl"
LONGEST = 300  # lines of a module whose docstring does not say why it is longer
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_symlink())


def test_contributing_lists_every_room_and_nothing_else() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Layout\n")[1].split("\n## ")[0]
    rooms = set(re.findall(r"^      (\w+)/ ", text, re.MULTILINE))
    there = {path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.is_symlink()} - {"__pycache__"}
    assert rooms == there
    for name in re.findall(r"^    (\w+)/ ", text, re.MULTILINE):
        assert (ROOT / name).is_dir(), name
    for name in re.findall(r"(\w+\.py)", text.splitlines()[0]):
        assert (PACKAGE / name).is_file(), name


def test_the_top_level_holds_few_modules() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"} == {
        "cli", "errors", "estimator", "files", "locks", "screen",
    }  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_says_what_it_is_about_and_stays_small(path: Path) -> None:
    text = path.read_text()
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert docstring, "no docstring"
    assert text.count("\n") <= LONGEST or "long because" in docstring.lower()


# What each room may import of the others. Later rooms build on earlier ones, never the other way round.
ORDER = [
    "data",
    "envs",
    "inputs",
    "losses",
    "models",
    "config",
    "training",
    "runs",
    "policies",
    "report",
    "paper",
    "commands",
]


@pytest.mark.parametrize("room", [room for room in ORDER if room != "commands"])
def test_library_code_does_not_import_the_commands(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        assert not re.search(r"(?:from|import) tailo_pl\.(commands|cli)\b", path.read_text()), path


@pytest.mark.parametrize("room", ["losses", "data", "inputs", "models"])
def test_data_and_mathematics_know_nothing_of_runs(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        found = re.search(r"(?:from|import) tailo_pl\.(training|runs|policies|report|paper)\b", path.read_text())
        assert not found, f"{path}: {found.group(0) if found else ''}"
