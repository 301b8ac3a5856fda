"""The processes of a run on this machine: started together, ended together, none left when the one above them ends.

Without torch at the top: a process sees to its own end before it imports anything large.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tailo_pl.errors import UserError

PARENT = "TAILO_PARENT"  # set for the processes started here: who started them, and holds the run's lock with them
_TERMINAL = "TAILO_TERMINAL"  # set for the first of them: the descriptor of what its user reads
_COMPLAINTS = "TAILO_COMPLAINTS"  # the descriptor of the pipe to the process that started them
_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_POLL = 0.1  # seconds
_GRACE = 10.0  # seconds in which a process may end by itself once it is asked to
_LOOK = 1.0  # seconds between two looks at who the parent is


def launch(run_dir: Path, processes: int, lock: int) -> None:
    """Work on a prepared run in several processes; return when all have ended well.

    The first one's output is shown; whatever else they say goes to `rank-N.log` in the run's folder. When one fails,
    or this process is interrupted, all are ended.

    Args:
        run_dir: the run.
        processes: how many.
        lock: descriptor of the run's lock. Each process holds it too, so it is not free while any of them lives.
    """
    import torch.distributed as dist

    # Where they find each other; here, so that its port is free for certain.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    ranks: list[subprocess.Popen[bytes]] = []
    reading, writing = os.pipe()
    try:
        try:
            for rank in range(processes):
                ranks.append(_start(run_dir, rank, processes, store.port, lock, writing))
            failed = _wait(ranks)
        finally:
            end_all(ranks)
        os.set_blocking(reading, False)
        with suppress(BlockingIOError):  # nobody complained
            raise UserError(os.read(reading, 65536).decode(errors="replace").splitlines()[0])
    finally:
        os.close(reading)
        os.close(writing)
    if failed:
        raise UserError(_ending(run_dir, failed))


def _log(run_dir: Path, rank: int) -> Path:
    return run_dir / f"rank-{rank}.log"


def _start(run_dir: Path, rank: int, processes: int, port: int, lock: int, complaints: int) -> subprocess.Popen[bytes]:
    """One process, with the variables that torchrun would give it, to torch and to Lightning."""
    environment = {
        "OMP_NUM_THREADS": "1",  # as torchrun does: the processes share the machine's cores
        **os.environ,
        PARENT: str(os.getpid()),
        _COMPLAINTS: str(complaints),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": run_dir.name,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is here, not in the first process
    }
    log = _log(run_dir, rank)
    log.unlink(missing_ok=True)
    shown = os.dup(2)
    try:
        with log.open("xb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "tailo_pl.cli", "run", str(run_dir)],
                env=environment | ({_TERMINAL: str(shown)} if rank == 0 else {}),
                stdout=None if rank == 0 else said,
                stderr=said,
                pass_fds=(lock, complaints, *([shown] if rank == 0 else [])),
                start_new_session=True,  # Ctrl-C comes here alone
            )
    finally:
        os.close(shown)


def _wait(ranks: list[subprocess.Popen[bytes]]) -> dict[int, int]:
    """Wait until all have ended well, or one has not: those that failed, with their status."""
    while True:
        running = [rank for rank in ranks if rank.poll() is None]
        failed = {number: rank.returncode for number, rank in enumerate(ranks) if rank.returncode}
        if failed or not running:
            return failed
        time.sleep(_POLL)


def end_all(processes: Sequence[subprocess.Popen[Any]]) -> None:
    """End those that still run: asked first, then killed; a second Ctrl-C kills at once."""
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _ending(run_dir: Path, failed: dict[int, int]) -> str:
    """How the run ended. Those that lose another one fail too, but not by a signal."""
    rank, status = min(failed.items(), key=lambda one: one[1] > 0)
    how = f"was ended by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
    return (
        f"{run_dir}: rank {rank} {how}, and the others with it ({_log(run_dir, rank)}); "
        f"`tailo train resume={run_dir}` goes on"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def terminal() -> TextIO:
    """Where this process says what goes on: to its user, even where standard error is a log."""
    return _given(_TERMINAL)


def complain(error: UserError) -> None:
    """Say what the user did wrong: on standard error, or to the process that started this one, which says it once."""
    if _COMPLAINTS in os.environ:
        _given(_COMPLAINTS).write(f"{error}\n")
    else:
        sys.stderr.write(f"tailo: {error}\n")


def _given(name: str) -> TextIO:
    """The stream whose descriptor a variable has, or standard error."""
    found = os.environ.get(name)
    return sys.stderr if found is None else open(int(found), "w", buffering=1, closefd=False)


def end_with_parent() -> None:
    """Let this process end, at once and without a word, when the one that started it does.

    Only where it is one of several: the others would wait for it, or it for them, with nobody to end them.
    """
    if "RANK" in os.environ or "SLURM_PROCID" in os.environ:
        end_with(int(os.environ.get(PARENT, os.getppid())))


def end_with(parent: int) -> None:
    """Let this process end, at once and without a word, when `parent`, which has started it, does."""
    if sys.platform == "linux":
        # When the *thread* that started this process ends, in fact; that thread waits for us.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os.kill(os.getpid(), signal.SIGKILL)

    if os.getppid() != parent:  # it ended before we could ask to be told
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=look, name="end-with-parent", daemon=True).start()
