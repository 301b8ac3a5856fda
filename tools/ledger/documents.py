"""The ledger's tables in the documents that show them, and what `tailo advise` knows of it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tailo_pl.files import write_text
from tailo_pl.paper.records import read_records
from tailo_pl.runs.measured import FILE

from .cells import read_cells
from .tables import budget_table, comparison_tables, equal_time_table, markdown_table, measured_rows

DOCUMENTS = ("docs/numbers.md", "docs/comparison.md")


def write_tables(listed: Path, root: Path = Path()) -> None:
    """Rewrite the parts of the documents that stand between markers, from the folder `cells` beside a list of cells.

    Those of docs/numbers.md are TAILO's and plain cloning's of the list, with every seed that was measured, as in
    docs/results.md, which has all of them. Beside them the file of what methods came to, for `tailo advise`.
    """
    records, asked = read_records(listed.parent / "cells"), read_cells(listed).listed
    cells = list(records.values())
    wanted = {cell.overrides for cell in asked}
    own = [
        record for cell, record in records.items() if cell.overrides in wanted and record["method"] in ("tailo", "bc")
    ]
    tables = {
        "results": markdown_table(own),
        "comparison": comparison_tables(cells, asked),
        "equal-time": equal_time_table(cells),
        "budgets": budget_table(cells),
    }
    for name in DOCUMENTS:
        path = root / name
        if not path.exists():
            continue
        text = path.read_text()
        for marker, table in tables.items():
            pattern = re.compile(rf"(<!-- {marker}:begin -->\n).*?(<!-- {marker}:end -->)", re.DOTALL)
            text = pattern.sub(partial(_between_markers, table), text)
        write_text(path, text)
    package = root / "src" / "tailo_pl" / "runs"
    if package.exists():
        lines = (json.dumps(asdict(row)) for row in measured_rows(cells))
        write_text(package / FILE, "".join(f"{line}\n" for line in lines))


def _between_markers(table: str, found: re.Match[str]) -> str:
    return f"{found.group(1)}{table}{found.group(2)}"
