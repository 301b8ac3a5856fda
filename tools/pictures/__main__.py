"""Draw pictures of the README and the documentation, in the project's folder.

python -m tools.pictures ledger                     # scores, from the ledger
python -m tools.pictures data                       # the tasks antmaze and kitchen, from their data
python -m tools.pictures walker RUN                 # of `tailo train env=walker2d`
python -m tools.pictures tutorial RUN               # of the tutorial's own commands
python -m tools.pictures arm FOLDER                 # in which `python examples/hand_guided_arm.py` has worked
python -m tools.pictures checks                     # right and wrong data
python -m tools.pictures verdicts FOLDER            # in which `python -m tools.evidence` has worked
python -m tools.pictures heads                      # an obstacle, passed on both sides
python -m tools.pictures screens FOLDER             # runs of several methods and seeds, as a terminal shows them
"""

from __future__ import annotations

import argparse
import tempfile
from importlib import import_module
from pathlib import Path

ALONE = {"ledger": ["ledger.comparison"], "data": ["tasks.maze", "tasks.kitchen"], "heads": ["heads.obstacle"]}
OF_A_FOLDER = {
    "walker": ["tasks.strip", "tasks.weights"],
    "tutorial": ["screens.tutorial"],
    "arm": ["arm.hand_guided"],
    "verdicts": ["verdicts.verdicts"],
    "screens": ["screens.screens"],
}
IN_A_FOLDER = {"checks": ["arm.right_and_wrong"]}  # one that goes again


def draw(names: list[str], *folder: Path) -> None:
    for name in names:
        module, function = name.split(".")
        getattr(import_module(f"{__package__}.{module}"), function)(*folder)  # others need much that is not needed here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*ALONE, *OF_A_FOLDER, *IN_A_FOLDER])
    parser.add_argument("folder", type=Path, nargs="?", help="a run, or a folder of runs")
    given = parser.parse_args()
    if (given.folder is not None) != (given.what in OF_A_FOLDER):
        parser.error(f"{', '.join(OF_A_FOLDER)} take a folder, the others none")
    if given.what in ALONE:
        draw(ALONE[given.what])
    elif given.what in OF_A_FOLDER:
        draw(OF_A_FOLDER[given.what], given.folder)
    else:
        with tempfile.TemporaryDirectory() as folder:
            draw(IN_A_FOLDER[given.what], Path(folder))


if __name__ == "__main__":
    main()
