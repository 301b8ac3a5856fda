"""Running the cells that are missing: several processes at once, each result kept as soon as it is there."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tailo_pl.config.choices import folders
from tailo_pl.errors import UserError, one_line
from tailo_pl.locks import no_one_else
from tailo_pl.paper.cells import Cell
from tailo_pl.paper.figures import read_figures
from tailo_pl.paper.plan import Asked, Times, next_cell
from tailo_pl.paper.records import Record, add_record, read_records
from tailo_pl.runs.launch import end_all

_LOOK = 0.5  # seconds between two looks at what is running


@dataclass
class State:
    """How far it is.

    Args:
        waiting: cells that are not begun.
        records: what is known, by cell.
        jobs: how many cells at once.
        times: how long cells take.
        running: cells at work, with when they were begun.
        done: what was measured now.
        failed: cells with what went wrong.
        began: when.
    """

    waiting: list[Cell]
    records: dict[Cell, Record]
    jobs: int
    times: Times
    running: dict[Cell, float] = field(default_factory=dict)
    done: list[Record] = field(default_factory=list)
    failed: dict[Cell, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> int:
        """Cells without a result."""
        return len(self.waiting) + len(self.running)

    @property
    def expected(self) -> float:
        """Seconds until all are done."""
        now = time.monotonic()
        ahead = sum(map(self.times.expected, self.waiting))
        ahead += sum(max(0.0, self.times.expected(cell) + since - now) for cell, since in self.running.items())
        return ahead / self.jobs


Watch = Callable[[State, str | None], None]
"""Is shown how far it is, now and then, and with a line whenever something has happened."""


class Worker:
    """A process that measures one cell at a time.

    Args:
        runs: folder of the runs.
        number: of the worker; its log is named by it.
        options: what it is told beside its cell.
    """

    def __init__(self, runs: Path, number: int, options: Mapping[str, Any]) -> None:
        self._log = runs / f"reproduce-{number}.log"
        self._options = options
        self.process: subprocess.Popen[str] | None = None
        self.cell: Cell | None = None

    @property
    def output(self) -> IO[str]:
        """Where its answers come from."""
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout

    def begin(self, cell: Cell) -> None:
        """Let it measure a cell, in a new process where the last one has ended."""
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        self.cell = cell
        asked = {"overrides": cell.overrides, "seed": cell.seed, **self._options}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What came of its cell; a process that has ended without a word is an answer too."""
        line = self.output.readline()
        self.cell = None
        if line:
            return dict(json.loads(line))
        assert self.process is not None
        return {"error": f"its process ended with status {self.process.wait()} ({self._log})"}

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("a") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "tailo_pl.paper.worker", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env={"OMP_NUM_THREADS": "1", **os.environ},
                start_new_session=True,  # Ctrl-C comes to us alone
            )


def reproduce(
    asked: Asked, results: Path, runs: Path, *, jobs: int, hours: float | None, episodes: int, watch: Watch
) -> State:
    """Run the cells that are missing.

    Args:
        asked: which.
        results: folder in which results are kept.
        runs: folder of the runs.
        jobs: cells at once.
        hours: after which no cell is begun; None: until all are done.
        episodes: that each trained policy plays.
        watch: is shown how far it is.

    Returns:
        How far it came.
    """
    state = beginning(asked, results, jobs)
    if not state.waiting:
        return state
    end = None if hours is None else state.began + 3600 * hours
    with _workers(runs, min(jobs, len(state.waiting)), worker_options(asked, runs, episodes)) as workers:
        while state.left:
            for worker in workers:
                if worker.cell is None and (cells := _in_time(state, end)):
                    _begin(worker, state, next_cell(cells, list(state.running)))
            if not state.running:
                break
            watch(state, None)
            for worker in _ready(workers):
                watch(state, _finish(worker, state, asked, results))
    return state


def beginning(asked: Asked, results: Path, jobs: int) -> State:
    """Nothing measured yet: what is missing waits."""
    records = read_records(results)
    missing = asked.missing(records)
    unknown = {cell: f"there is no method {cell.unknown_method} yet" for cell in missing if cell.unknown_method}
    waiting = [cell for cell in missing if cell not in unknown]
    return State(waiting, records, jobs, Times(records.values()), failed=unknown)


def worker_options(asked: Asked, runs: Path, episodes: int) -> dict[str, Any]:
    """What whoever measures is told beside the cell."""
    own = [str(folder) for folder in folders()[1:]]
    return {"runs": str(runs), "list": str(asked.path.resolve()), "folders": own, "episodes": episodes}


def keep(
    answer: Mapping[str, Any], cell: Cell, state: State, asked: Asked, results: Path, seconds: float | None = None
) -> str:
    """Write down what came of a cell, which took so long; what there is to say of it."""
    if "record" not in answer:
        state.failed[cell] = one_line(answer.get("refused") or answer["error"])
        return f"{cell.called(asked.common)}: {state.failed[cell]}"
    record: Record = answer["record"]
    add_record(results, read_figures(asked.path).values(), record)
    state.records[cell] = record
    state.done.append(record)
    state.times.add(record, seconds)
    took = "" if seconds is None else f" in {seconds:.0f} s"
    return f"{cell.called(asked.common)}: {record['score']:.1f}{took}"


def _in_time(state: State, end: float | None) -> list[Cell]:
    """What waits and will be done in time. Where nothing was begun yet, one may take as long as it does."""
    now = time.monotonic()
    if end is None or (now < end and not (state.done or state.running or state.failed)):
        return state.waiting
    return [cell for cell in state.waiting if now + state.times.expected(cell) <= end]


def _begin(worker: Worker, state: State, cell: Cell) -> None:
    state.waiting.remove(cell)
    state.running[cell] = time.monotonic()
    worker.begin(cell)


def _ready(workers: list[Worker]) -> list[Worker]:
    """Those that have an answer, after a moment's wait for one."""
    outputs = {worker.output.fileno(): worker for worker in workers if worker.cell is not None}
    found, _, _ = select.select(list(outputs), [], [], _LOOK)
    return [outputs[one] for one in found]


def _finish(worker: Worker, state: State, asked: Asked, results: Path) -> str:
    """Keep what a worker answers; a line that says it."""
    cell = worker.cell
    assert cell is not None
    answer, began = worker.answer(), state.running.pop(cell)
    return keep(answer, cell, state, asked, results, time.monotonic() - began)


@contextmanager
def _workers(runs: Path, jobs: int, options: Mapping[str, Any]) -> Iterator[list[Worker]]:
    """Processes that measure; none is left behind."""
    with alone_in(runs):
        workers = [Worker(runs, number, options) for number in range(jobs)]
        try:
            yield workers
        finally:
            end_all([worker.process for worker in workers if worker.process is not None])


@contextmanager
def alone_in(runs: Path) -> Iterator[None]:
    """Meanwhile nobody else measures cells in a folder of runs, which is made where there is none, and goes again where
    nothing came into it."""
    lock, new = runs / ".reproduce.lock", not runs.exists()
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{runs}: cannot be written ({error.strerror}); runs=... says where else") from error
    try:
        with no_one_else(lock, f"{runs}: tailo reproduce"):
            yield
    finally:
        if new and list(runs.iterdir()) == [lock]:
            lock.unlink()
            runs.rmdir()
