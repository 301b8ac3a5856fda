"""The documentation builds without a warning or a download, and what it says of the project is true."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tailo_pl.cli import app
from tailo_pl.paper.figures import read_figures

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=200)


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "zensical", "build", "--clean", "--strict")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the documentation is made from, so that the project's own folder stays as it is, with the pages
    that are made from the project."""
    folder = tmp_path_factory.mktemp("docs")
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("zensical.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("src", "configs", "callbacks", "results"):
        (folder / name).symlink_to(ROOT / name)
    made = run(folder, "tools/docs_pages.py")
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.slow
def test_it_builds_strictly_and_needs_no_network(folder: Path) -> None:
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    site = folder / "site"
    pages = {path.name: path.read_text() for path in site.glob("*.html")}
    assert {page.replace(".md", ".html") for page in PAGES} | {
        "configuration.html",
        "results.html",
        "paper.html",
    } <= set(pages)
    for name, text in pages.items():
        # Anything that a browser would fetch on its own; links are not.
        assert not re.findall(r"<(?:script|img|iframe)[^>]*src=\"https?:", text), name
        assert not re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect|preload)[^>]*https?:", text), name
    for name in ("load_policy", "get_params", "trajectory_weights", "StageModule", "Environment"):
        assert name in pages["api.html"]
    shown = pages["results.html"].replace("\N{NO-BREAK SPACE}", " ")
    table = (ROOT / "docs/numbers.md").read_text().split("<!-- results:begin -->")[1].split("<!-- results:end -->")[0]
    for row in table.strip().splitlines()[2:]:
        assert row.split("|")[5].strip() in shown
    for key in (
        "method.beta_1",
        "preset.averaging",
        "source.columns.observations",
        "setting.every",
        "checkpoint_every",
    ):
        assert f"<code>{key}</code>" in pages["configuration.html"]
    assert "β₁" in pages["configuration.html"]
    assert all(f'id="{name}"' in pages["paper.html"] for name in read_figures())
    drawn = re.findall(r'src="(paper/\w+\.svg)"', pages["paper.html"])
    assert sorted(drawn) == sorted(str(path.relative_to(site)) for path in site.glob("paper/*.svg"))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["See [nothing](none.md).", "::: tailo_pl.nothing.Here"])
def test_a_mistake_fails_the_build(folder: Path, mistake: str) -> None:
    page = folder / "docs/api.md"
    text = page.read_text()
    page.write_text(f"{text}\n{mistake}\n")
    try:
        assert build(folder).returncode != 0
    finally:
        page.write_text(text)


def test_the_front_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900


def test_every_command_named_exists() -> None:
    named = {
        line.split()[1]
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.splitlines()
        if line.startswith("tailo ")
    }
    assert named and named <= app.commands.keys()
