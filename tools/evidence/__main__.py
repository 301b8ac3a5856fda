"""Make what is missing of the grid, and write it into results/evidence.jsonl.

python -m tools.evidence --runs runs/evidence --seconds 400
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from .grid import make


def main() -> None:
    parser = argparse.ArgumentParser(prog="evidence", description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no further run is begun")
    options = parser.parse_args()
    logging.basicConfig(format="evidence: %(message)s")
    logging.getLogger(__package__).setLevel(logging.INFO)
    make(options.runs, options.seconds)


if __name__ == "__main__":
    main()
