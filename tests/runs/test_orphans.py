"""Processes that die: none of a run's others is left behind, and none works on a run beside another set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.processes import left_after, processes_of, rank_of
from helpers.small_runs import RUN, SMALL, finish, start

from tailo_pl.errors import UserError
from tailo_pl.locks import no_one_else

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
TWO = ("trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu")
LONG = (*SMALL, *TWO, "preset.policy_steps=1000000", "preset.rollout.every_n_steps=0")
PATIENCE = 15.0  # seconds after which nobody may be left
CHECKPOINT = RUN / "policy/checkpoints/last.ckpt"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where one run is begun, killed, and gone on with from test to test; whatever is left at the end is ended."""
    made = tmp_path_factory.mktemp("orphans")
    yield made
    for process in processes_of(str(made)):
        os.kill(process, signal.SIGKILL)


def begin(folder: Path, command: list[str] | None = None) -> subprocess.Popen[str]:
    """The long run, begun or gone on with by a command, in a process group of its own."""
    run = folder / RUN  # in full: it is by this that its processes are known
    given = [f"resume={run}"] if (run / "config.yaml").exists() else [*LONG, f"runs={folder / 'runs'}"]
    return subprocess.Popen(
        command or [sys.executable, "-m", "tailo_pl.cli", "train", *given],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, finish(process)[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def at_work(folder: Path, command: list[str] | None = None) -> tuple[subprocess.Popen[str], list[int]]:
    """The run, once it has saved something new; its ranks in order."""
    before = (folder / CHECKPOINT).stat().st_mtime_ns if (folder / CHECKPOINT).exists() else 0
    process = begin(folder, command)
    until(lambda: (folder / CHECKPOINT).exists() and (folder / CHECKPOINT).stat().st_mtime_ns > before, process)
    ranks = sorted(ranks_of(folder), key=rank_of)
    assert len(ranks) == 2
    return process, ranks


def ranks_of(folder: Path) -> list[int]:
    """The processes that train: torchrun's command ends like theirs, and it is the parent of them."""
    found = processes_of(f"-m tailo_pl.cli run {folder / RUN}")
    return [process for process in found if process not in processes_of("-m torch.distributed.run")]


@pytest.mark.slow
def test_a_second_set_is_refused_and_a_dead_parent_leaves_nobody(folder: Path) -> None:
    process, ranks = at_work(folder)
    code, out = finish(begin(folder))
    assert (code, out.splitlines()[-1]) == (2, f"tailo: {folder / RUN}: another process is at work on it")
    assert "Traceback" not in out
    assert sorted(ranks_of(folder)) == sorted(ranks)
    process.kill()
    assert left_after(PATIENCE, str(folder)) == []


@pytest.mark.slow
def test_a_group_that_dies_while_its_processes_start_leaves_nobody(folder: Path) -> None:
    process = begin(folder)
    until(lambda: bool(ranks_of(folder)), process)
    os.killpg(process.pid, signal.SIGKILL)
    assert left_after(PATIENCE, str(folder)) == []


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_dead_rank_ends_the_run_in_one_line(folder: Path, rank: int) -> None:
    process, ranks = at_work(folder)
    os.kill(ranks[rank], signal.SIGKILL)
    code, out = finish(process)
    assert code == 2
    run = folder / RUN
    said = [line for line in out.split(f"\nrun {run}\n")[1].splitlines() if line.strip() and " steps " not in line]
    log = run / f"rank-{rank}.log"
    assert said == [
        f"tailo: {run}: rank {rank} was ended by SIGKILL, and the others with it ({log}); "
        f"`tailo train resume={run}` goes on"
    ]
    # Kept, for who wants to know; the other one's is empty where it was ended before it missed the dead one.
    assert log.exists() and (run / f"rank-{1 - rank}.log").exists()
    assert left_after(PATIENCE, str(folder)) == []


@pytest.mark.slow
def test_a_dead_torchrun_leaves_nobody(folder: Path) -> None:
    """Who starts the processes otherwise, as a cluster does, is no reason to stay."""
    if not (folder / RUN / "config.yaml").exists():
        code, out = finish(start(folder, *LONG, f"runs={folder / 'runs'}", command="prepare"))
        assert code == 0, out
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*torchrun, "-m", "tailo_pl.cli", "run", str(folder / RUN)]
    process, _ = at_work(folder, command)
    process.kill()
    assert left_after(PATIENCE, str(folder)) == []


@pytest.mark.slow
def test_an_error_of_the_users_is_said_once(folder: Path) -> None:
    """Each process finds it, but the one that started them does not."""
    checkpoint, run = folder / CHECKPOINT, folder / RUN
    if not checkpoint.exists():
        at_work(folder)[0].kill()
        assert left_after(PATIENCE, str(folder)) == []
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: len(content) // 2])
    code, out = finish(begin(folder))
    checkpoint.write_bytes(content)
    assert code == 2
    said = out.split(f"\nrun {run}\n")[1].splitlines()
    assert len(said) == 1 and said[0].startswith(f"tailo: {checkpoint}: cannot be read"), out
    assert left_after(PATIENCE, str(folder)) == []


CHILD = """
import sys, time
sys.platform = sys.argv[1]
from tailo_pl.runs.launch import end_with_parent
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]])
"""


@pytest.mark.parametrize("system", ["linux", "another"])
@pytest.mark.parametrize("variable", ["RANK", "SLURM_PROCID"])
def test_a_process_of_several_ends_with_its_parent(tmp_path: Path, system: str, variable: str) -> None:
    mark = str(tmp_path)
    command = [sys.executable, "-c", PARENT, CHILD, system, mark]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, variable: "1"}) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        parent.kill()
        assert left_after(10, mark) == []


def test_a_process_on_its_own_may_outlive_its_parent(tmp_path: Path) -> None:
    """Such as `nohup tailo run RUN &` before the user logs out."""
    command = [sys.executable, "-c", PARENT, CHILD, sys.platform, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        parent.kill()
        left = left_after(3, str(tmp_path))
        assert len(left) == 1
        os.kill(left[0], signal.SIGKILL)


def test_a_parent_that_is_gone_already() -> None:
    environment = {**os.environ, "RANK": "0", "TAILO_PARENT": "1"}
    done = subprocess.run([sys.executable, "-c", CHILD, sys.platform], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


HOLDER = """
import subprocess, sys
from pathlib import Path
from tailo_pl.locks import no_one_else
with no_one_else(Path(sys.argv[1]), "it") as lock:
    child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,), stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_held_as_long_as_anyone_lives_who_was_handed_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        holder.kill()
        holder.wait()
        with pytest.raises(UserError, match="it: another process is at work on it"), no_one_else(path, "it"):
            pass
        os.kill(child, signal.SIGKILL)
    assert free_within(5, path)


def free_within(seconds: float, path: Path) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with no_one_else(path, "it"):
                return True
        except UserError:
            time.sleep(0.05)
    return False
