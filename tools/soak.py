"""Kill runs at random moments until enough have been killed, and see that each ends as an undisturbed one.

    python tools/soak.py --kills 50
    python tools/soak.py --kills 50 --processes 2

A small run of all three stages on pointmaze, first left alone, then killed (SIGKILL) again and again, from start-up
to the last rollout, and resumed each time. Weights, optimisers and metrics must be equal bit for bit. With several
processes it is the first one, a rank, the group of either, or a few of them at once that are killed, and 15 seconds
later none may be left. Needs /proc.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

RUN = Path("runs/pointmaze/examples/tailo/a")
STAGES = ("pretrain", "formal", "policy")
LEFT_AFTER = 15.0  # seconds after a kill, nobody may be left
OVERRIDES = [
    "env=pointmaze", "name=a", "trainer=cpu", "checkpoint_every=20", "trainer.log_every_n_steps=10",
    "preset.pretrain_steps=200", "preset.formal_steps=200", "preset.policy_steps=600",
    "preset.held_out.every_n_steps=50", "preset.rollout.episodes=2", "preset.rollout.every_n_steps=150",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    if options.processes > 1:
        OVERRIDES.extend(["trainer=ddp", "trainer.accelerator=cpu", f"trainer.devices={options.processes}"])
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        began = time.monotonic()
        finish(whole)
        lasts = time.monotonic() - began
        kills = rounds = 0
        while kills < options.kills:
            folder = Path(name) / f"round-{rounds}"
            killed = disturbed(folder, rng, min(8, options.kills - kills), lasts)
            differences = compare(whole, folder)
            print(f"round {rounds}: {killed} kills, {differences or 'equal'}", flush=True)
            if differences:
                sys.exit(1)
            kills, rounds = kills + killed, rounds + 1
            shutil.rmtree(folder)
    print(f"{kills} kills in {rounds} runs: all ended as the undisturbed one")


def start(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    run = folder / RUN  # in full: it is by the folder that processes are known
    given = [f"resume={run}"] if (run / "config.yaml").exists() else [*OVERRIDES, f"runs={folder / 'runs'}"]
    command = [sys.executable, "-m", "tailo_pl.cli", "train", *given]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def finish(folder: Path) -> None:
    if start(folder).wait():
        sys.exit(f"{folder}: the run did not end well")


def disturbed(folder: Path, rng: random.Random, kills: int, lasts: float) -> int:
    """Run to the end, killed up to so many times; how often it was."""
    done = 0
    while done < kills:
        process = start(folder)
        try:
            if process.wait(rng.uniform(0.1, 0.8) * lasts):
                sys.exit(f"{folder}: the run ended by itself, and not well")
            return done
        except subprocess.TimeoutExpired:
            print(f"  killed: {kill_some(folder, process, rng)}", flush=True)
            done += 1
            left = left_after(LEFT_AFTER, folder, process)
            if left:
                sys.exit(f"{folder}: {LEFT_AFTER:g} s after the kill there is still {left}")
            if (folder / RUN / "summary.json").exists():  # it had just ended
                return done
    finish(folder)
    return done


def kill_some(folder: Path, process: subprocess.Popen[bytes], rng: random.Random) -> str:
    """Kill the process that was started, others of its run, or whole groups; what was killed."""
    ranks = [one for one in processes_of(folder) if one != process.pid]
    if not ranks:
        os.killpg(process.pid, signal.SIGKILL)
        return "all there was"
    how = rng.choice(["parent", "parent's group", "rank", "rank's group", "some", "all"])
    everyone = [process.pid, *ranks]
    victims = {
        "parent": [process.pid],
        "parent's group": [process.pid],
        "rank": [rng.choice(ranks)],
        "rank's group": [rng.choice(ranks)],
        "some": rng.sample(everyone, rng.randint(2, len(everyone))),
        "all": everyone,
    }[how]
    for victim in victims:
        with suppress(ProcessLookupError):  # the one before has taken it along
            (os.killpg if "group" in how else os.kill)(victim, signal.SIGKILL)
    return how


def processes_of(folder: Path) -> list[int]:
    """Processes of the run in a folder, in the order in which they were started."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{folder}/" in (one / "cmdline").read_text():
                found.append(int(one.name))
    return sorted(found)


def left_after(seconds: float, folder: Path, process: subprocess.Popen[bytes]) -> list[int]:
    """Those that are still there after some seconds; returns as soon as none is."""
    deadline = time.monotonic() + seconds
    while (process.poll() is None or processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return processes_of(folder)


def compare(whole: Path, other: Path) -> str:
    """What differs between two runs; nothing but times may."""
    for stage in STAGES:
        one, two = (folder / RUN / stage for folder in (whole, other))
        states = [torch.load(path / "checkpoints/last.ckpt", weights_only=True) for path in (one, two)]
        for key in ("state_dict", "optimizer_states", "lr_schedulers", "global_step"):
            if not same(states[0][key], states[1][key]):
                return f"{stage}: {key} differs"
        if (one / "metrics.csv").read_text() != (two / "metrics.csv").read_text():
            return f"{stage}: metrics.csv differs"
    return ""


def same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


if __name__ == "__main__":
    main()
