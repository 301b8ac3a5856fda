"""What is seen on the screen: a terminal of 80 columns, and the report in a browser."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from contextlib import chdir
from io import StringIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.findings import find, trajectory_figures
from tailo_pl.report.reading import read_run
from tests.helpers.terminal import on_terminal

from .canvas import OUT, ROOT

# As rich draws a terminal, but with the reader's own fonts: nothing is fetched to look at it.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
COLUMNS = 80


def terminal(name: str, line: str, place: Path) -> None:
    """What a command shows on a terminal, typed in a folder."""
    code = f"from tailo_pl.cli import main; main({shlex.split(line)[1:]!r})"
    with chdir(place):
        shown = on_terminal(code, columns=COLUMNS).replace("\r\n", "\n").rstrip()
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {line}", style="bold"), Text.from_ansi(shown), sep="\n")
    drawn = console.export_svg(title="", code_format=_SVG, unique_id=name)
    (OUT / f"{name}.svg").write_text(drawn)
    print(f"written {(OUT / f'{name}.svg').relative_to(ROOT)}")


def tutorial(run_dir: Path) -> None:
    """Where the weight went in the tutorial's run, and the page that reports on it."""
    found = find(read_run(run_dir))
    assert not isinstance(found, str), found
    for path in draw_figures(trajectory_figures(found, "tutorial", 300)[1:], OUT):
        path.unlink() if path.suffix == ".svg" else path.replace(OUT / "tutorial-weight.png")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        page = Path(folder) / "report.html"
        subprocess.run(["tailo", "report", str(run_dir), "--out", str(page)], check=True)
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1100, "height": 1000})
        shown.goto(page.as_uri())
        shown.screenshot(path=OUT / "report.png")
        browser.close()


def screens(folder: Path) -> None:
    """Runs of several methods and seeds in a table, and logs as they are inspected.

    Args:
        folder: of the runs.
    """
    terminal("table", f"tailo table {folder.name}", folder.parent)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["tailo", "data", "convert", "pointmaze/directions", "logs.parquet"], cwd=scratch, check=True)
        terminal("inspect", "tailo data inspect logs.parquet", Path(scratch))
