"""A process that measures cells one after the other: told which on standard input, it answers on standard output.

Without torch at the top: it sees to its own end before it imports anything large.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from tailo_pl.errors import Refusal, UserError
from tailo_pl.runs.launch import end_with

log = logging.getLogger("tailo_pl")


def main() -> int:
    """Answer every line of standard input, a cell, with one of standard output, its result or what went wrong."""
    end_with(int(sys.argv[1]))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    answers = _own_output()
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
    log.setLevel(logging.INFO)
    try:
        for line in sys.stdin:
            answers.write(json.dumps(answer(json.loads(line))) + "\n")
            answers.flush()
    except KeyboardInterrupt:  # what was begun has been saved
        return 130
    return 0


def _own_output() -> TextIO:
    """Standard output, for answers alone: whatever else is printed goes to standard error, which is a log."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The result of a cell, or what went wrong."""
    from tailo_pl.callbacks.progress import shown
    from tailo_pl.config.choices import use_folder
    from tailo_pl.paper.cells import Cell
    from tailo_pl.paper.figures import read_figures
    from tailo_pl.paper.measure import measure

    shown.set(False)
    for folder in asked["folders"]:
        use_folder(Path(folder))
    cell = Cell(tuple(asked["overrides"]), asked["seed"])
    log.info("%s", cell.command)
    try:
        figures = read_figures(Path(asked["list"])).values()
        return {"record": measure(cell, figures, asked["runs"], asked["episodes"])}
    except Refusal as error:
        return {"refused": str(error)}
    except UserError as error:
        return {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.exit(main())
