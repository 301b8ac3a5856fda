"""Writing a report: from run folders to one HTML file, and to figures for papers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tailo_pl.errors import UserError
from tailo_pl.files import write_text
from tailo_pl.report.contents import contents_of
from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.groups import only_once
from tailo_pl.report.page import render_page
from tailo_pl.report.reading import RunRecord, read_run

log = logging.getLogger(__name__)


class Written(NamedTuple):
    """What came of a report: the page, the figures, and a line for everything that was missing."""

    page: Path
    figures: list[Path]
    missing: list[str]


def write_report(
    runs: Sequence[Path], out: Path, *, title: str = "", figures: Path | None = None, video: Path | None = None
) -> Written:
    """Write the report of these runs.

    Args:
        runs: their folders; the same run twice counts once.
        out: the page, replaced if it is there.
        title: of the page; empty: what the runs are about.
        figures: folder for the figures as PNG and SVG; None: none.
        video: an episode to embed; None: none.
    """
    require_writable(out)
    records = only_once(_readable({path.resolve(): path for path in runs}.values()))
    contents = contents_of(records, title)
    page = render_page(contents, video)
    drawn = draw_figures(contents.figures, figures, contents.file_names) if figures is not None else []
    try:
        write_text(out, page)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror or error})") from error
    return Written(out, drawn, [f"{record.path}: {line}" for record in records for line in record.missing])


def require_writable(out: Path) -> None:
    """Whether a page can be written there, asked before anything is spent on it."""
    if out.is_dir():
        raise UserError(f"{out}: cannot be written (Is a directory)")
    if not out.parent.is_dir():
        raise UserError(f"{out}: cannot be written (No such file or directory)")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise UserError(f"{out}: cannot be written (Permission denied)")


def _readable(runs: Iterable[Path]) -> list[RunRecord]:
    """All runs but those that cannot be read, of which each is named in a line; none at all is an error."""
    records: list[RunRecord] = []
    broken: list[UserError] = []
    for path in runs:
        try:
            records.append(read_run(path))
        except UserError as error:
            broken.append(error)
    for line in broken if records else broken[1:]:
        log.warning("%s; this run is left out", line)
    if not records:
        raise broken[0]
    return records
