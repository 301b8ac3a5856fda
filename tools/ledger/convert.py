"""Turn the ledger's single files into lines of results/cells/, a file for each figure, and remove them.

python -m tools.ledger.convert            # in the project's folder; may be run again whenever there are single files
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailo_pl.errors import UserError
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import read_figures
from tailo_pl.paper.records import Record, add_record, data_part, read_records, shares_done


def converted(old: Mapping[str, Any]) -> Record:
    """What a single file says, as a line says it."""
    overrides = [one for one in old["overrides"] if not one.startswith("seed=")]
    if not any(one.startswith("setting=") for one in overrides):
        overrides.append(f"setting={old['setting']}")
    stages = old.get("stages", [])  # which the first files did not have
    record: Record = {
        "cell": Cell.of(overrides).text,
        "seed": old["seed"],
        **{key: old[key] for key in ("env", "setting", "method", "preset", "source")},  # type: ignore[typeddict-item]
        "score": round(old["score"], 3),
        "score_std": round(old["score_std"], 3),
        "episodes": old["episodes"],
        "success": old["success"],
        "evaluations": [
            [one["step"], round(one["score"], 2), round(one["score_std"], 2)] for one in old["evaluations"]
        ],
        "failure": old["failure"]["step"] if old["failure"] else None,
        "stages": {one["stage"]: [one["steps"], one["stopped"], one["cpu_seconds"]] for one in stages},
        "cpu_seconds": old["cpu_seconds"],
        "seconds": old["seconds"],
        "data": data_part(old["data"]),
        "config": old["config"],
        "verdict": old["verdict"]["level"] if old.get("verdict") else None,
        "versions": old["versions"],
    }
    if old.get("subtasks"):
        record["subtasks"] = shares_done(old["subtasks"])
    return record


def singles(folder: Path) -> dict[Path, Record]:
    """The single files of a folder, as lines."""
    return {path: converted(json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}


def all_records(folder: Path) -> list[Record]:
    """Everything that was measured, whether it is a line already or a file of its own."""
    found = {(record["cell"], record["seed"]): record for record in singles(folder).values()}
    found |= {(record["cell"], record["seed"]): record for record in read_records(folder / "cells").values()}
    return [found[key] for key in sorted(found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("results"))
    folder = parser.parse_args().folder
    try:
        found = singles(folder)
        for path, record in found.items():
            add_record(folder / "cells", read_figures().values(), record)
            path.unlink()
    except UserError as error:
        sys.stderr.write(f"ledger: {error}\n")
        return 2
    print(f"{len(found)} files turned into lines of {folder / 'cells'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
