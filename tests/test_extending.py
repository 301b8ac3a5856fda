"""docs/extending.md works as printed: its files are written to a folder, its commands are run in order.

So a method with an input and a kind of batch of its own, an environment, a head, a callback, a source and a setting are
one file of Python and one of configuration each.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from helpers.runs import small

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
SMALL = small(5, "preset.held_out.trajectories=1", "preset.rollout.episodes=2")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def record(path: Path, episodes: int) -> None:
    """Random actions in gymnasium's pendulum."""
    env = gymnasium.make("Pendulum-v1", max_episode_steps=20)
    env.action_space.seed(0)
    rows = []
    for seed in range(episodes):
        state, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = env.action_space.sample()
            after, reward, _, ended, _ = env.step(action)
            rows.append((state, action, reward, ended))
            state = after
    env.close()
    names = ("observations", "actions", "rewards", "timeouts")
    np.savez(path, **dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page says to write, each block to the file its first line names, and recordings."""
    folder = tmp_path_factory.mktemp("extending")
    for text in (*blocks("python"), *blocks("yaml")):
        found = re.match(r"# ((?:mine|conf)/[\w/]+\.(?:py|yaml))\n", text)
        assert found, text
        path = folder / found.group(1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    record(folder / "expert.npz", 1)
    record(folder / "logs.npz", 6)
    return folder


def tailo(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tailo_pl.cli", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={key: value for key, value in os.environ.items() if key != "TAILO_ALLOW"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_every_command_works(folder: Path) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 7
    for number, line in enumerate(lines):
        program, command, *arguments = shlex.split(line)
        assert program == "tailo"
        code, out = tailo(folder, command, *arguments, *((*SMALL, f"name=run{number}") if command == "train" else ()))
        assert code == 0, f"{line}\n{out}"
    runs = {path.parent.name: path.parent for path in folder.glob("runs/*/*/*/*/summary.json")}
    summaries = {name: json.loads((path / "summary.json").read_text()) for name, path in runs.items()}
    chosen = {
        name: tuple(summary[key] for key in ("env", "source", "setting", "method"))
        for name, summary in summaries.items()
    }
    assert chosen == {
        "run1": ("pendulum", "bundled", "offline_rl", "tailo"),
        "run2": ("Pendulum-v1", "files", "given", "tailo"),
        "run3": ("pendulum", "bundled", "offline_rl", "percent_bc"),
        "run4": ("pendulum", "bundled", "offline_rl", "bc"),
        "run5": ("pendulum", "bundled", "offline_rl", "bc"),
        "run6": ("pendulum", "noise", "last_states", "tailo"),
    }
    assert all(summary["score"] is not None for summary in summaries.values())
    assert summaries["run1"]["data"]["ta"]["trajectories"] == 20
    kept = np.load(runs["run3"] / "policy" / "keep.npy")
    assert kept.sum() == 10 * 200  # half of 20 episodes of 200 steps
    model = json.dumps((runs["run4"] / "policy" / "config.yaml").read_text())
    assert "mine.heads.AbsoluteError" in model
    rows = list(csv.DictReader((runs["run5"] / "policy" / "metrics.csv").open()))
    assert [row["step"] for row in rows if row.get("weight_norm")] == ["2", "4"]
    assert summaries["run6"]["data"]["ts"]["states"] == 30


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["train", "env=pendulum"],
            "env: 'pendulum' given, expected one of ant, antmaze, gym, halfcheetah, hopper, kitchen, none, pointmaze, "
            "walker2d",
        ),
        (
            ["train", "--config-dir", "conf", "env=pendulm", "source=d4rl"],
            "env: 'pendulm' given, expected one of ant, antmaze, gym, halfcheetah, hopper, kitchen, none, pendulum, "
            "pointmaze, walker2d (did you mean pendulum?)",
        ),
        (
            ["train", "--config-dir", "conf", "env=pendulum", "source=d4rl"],
            "env: 'mine.pendulum.Pendulum' given, expected a class of tailo_pl, lightning (or of yours: --allow mine)",
        ),
        (
            ["train", "env=gym", "env.id=Pendulum-v1"],
            "env Pendulum-v1: makes no data of its own, expected source=files, d4rl or minari",
        ),
        (["train", "--config-dir", "nowhere"], "--config-dir: 'nowhere' given, expected a folder"),
        (["train", "--config-dir"], "option '--config-dir' requires an argument"),
        (
            ["data", "make", "pendulm", "--config-dir", "conf"],
            "data make: 'pendulm' given, expected ENV or ENV/PART of ant, antmaze, halfcheetah, hopper, kitchen, "
            "pendulum, pointmaze, walker2d",
        ),
    ],
)
def test_mistakes_are_one_line(folder: Path, arguments: list[str], line: str) -> None:
    assert tailo(folder, *arguments) == (2, f"tailo: {line}\n")


def test_a_name_that_is_taken(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "hopper.yaml").write_text("name: hopper\n")
    code, out = tailo(folder, "train", "--config-dir", str(tmp_path), "env=hopper")
    assert (code, out.count("\n")) == (2, 1)
    assert f"{tmp_path}/env/hopper.yaml: tailo_pl has a file of this name, expected another name" in out


def test_a_sweep_finds_it_too(folder: Path) -> None:
    own = ("--allow", "mine", "--config-dir", "conf", "env=pendulum", "source=files")
    files = ("source.ts=expert.npz", "source.ta=logs.npz", "runs=swept", "method=bc")
    code, out = tailo(folder, "train", "-m", *own, *files, *SMALL, "seed=1,2")
    assert code == 0, out
    assert len(list(folder.glob("swept/pendulum/given/bc/*/summary.json"))) == 2


def test_a_comparison_finds_it_too(folder: Path) -> None:
    own = ("--allow", "mine", "--config-dir", "conf", "env=pendulum", "source=files")
    files = ("source.ts=expert.npz", "source.ta=logs.npz", "runs=compared", "methods=bc", "seeds=1")
    code, out = tailo(folder, "compare", *own, *files, *SMALL)
    assert code == 0, out
    assert len(list(folder.glob("compared/pendulum/given/bc/*/summary.json"))) == 1
