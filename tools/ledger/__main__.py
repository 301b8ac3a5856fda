"""Fill the ledger, then write the tables that are made from it.

python -m tools.ledger --only env=hopper      # in the project's folder; `make results` calls it
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tailo_pl.errors import UserError

from .cells import run_missing
from .documents import write_tables


def main() -> int:
    parser = argparse.ArgumentParser(prog="ledger", description="Fill the ledger and write the tables made from it.")
    parser.add_argument("--cells", type=Path, default=Path("results/cells.yaml"), help="list of cells")
    parser.add_argument("--only", default="", help="run only cells whose command contains this")
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    options = parser.parse_args()
    try:
        if not options.tables:
            run_missing(options.cells, options.only)
        write_tables(options.cells)
    except UserError as error:
        sys.stderr.write(f"ledger: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("ledger: interrupted; the next time it goes on\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
