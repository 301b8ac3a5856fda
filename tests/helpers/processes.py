"""Which processes are there, as /proc has it."""

from __future__ import annotations

import time
from pathlib import Path


def processes_of(text: str) -> list[int]:
    """Processes that have this in their command line, in the order in which they were started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in (folder / "cmdline").read_text().replace("\0", " "):
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


def rank_of(process: int) -> int:
    """Which rank of its run a process is."""
    variables = Path(f"/proc/{process}/environ").read_text().split("\0")
    return int(dict(one.split("=", 1) for one in variables if "=" in one)["RANK"])


def left_after(seconds: float, text: str) -> list[int]:
    """Those that are still there after some seconds; returns as soon as none is."""
    deadline = time.monotonic() + seconds
    while (found := processes_of(text)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
