"""Make what is missing of the grid.

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
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    logging.basicConfig(format="evidence: %(message)s")
    logging.getLogger(__package__).setLevel(logging.INFO)
    print(sum(1 for _ in make(options.runs, options.seconds)))


if __name__ == "__main__":
    main()
