"""env=gym from recordings to a scored policy, and its mistakes in one line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import gymnasium_robotics  # noqa: F401
import h5py
import minari
import numpy as np
import pytest
from helpers.runs import small

from tailo_pl import cli

SMALL = small(5, "preset.held_out.trajectories=1", "preset.rollout.episodes=2", "name=a")
FILES = ("source=files", "source.ts=expert.npz", "source.ta=logs.npz")


def roll_out(path: Path, id: str, episodes: int, steps: int) -> None:
    """Random actions, recorded as a file; observations in pieces are put side by side, sorted by key."""
    env = gymnasium.make(id, max_episode_steps=steps)
    env.action_space.seed(0)
    rows: list[tuple[Any, ...]] = []
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        ended = False
        while not ended:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = env.step(action)
            state = observation
            if isinstance(observation, dict):
                state = np.concatenate([observation[key] for key in sorted(observation)])
            rows.append((state, action, reward, terminated, truncated))
            observation, ended = after, terminated or truncated
    env.close()
    columns = zip(*rows, strict=True)
    names = ("observations", "actions", "rewards", "terminals", "timeouts")
    np.savez(path, **{name: np.array(column) for name, column in zip(names, columns, strict=True)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TAILO_ALLOW", raising=False)
    return tmp_path


def record(id: str, steps: int = 30) -> None:
    roll_out(Path("expert.npz"), id, 1, steps)
    roll_out(Path("logs.npz"), id, 6, steps)


def train(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    assert cli.main(["train", *SMALL, *arguments]) == 0, capsys.readouterr().err
    (path,) = Path("runs").glob("*/*/tailo/a/summary.json")
    return json.loads(path.read_text()), capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert cli.main(["train", *SMALL, *arguments]) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error and not Path("runs").exists()
    return error.splitlines()[-1].removeprefix("tailo: ")


def test_pendulum_from_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("Pendulum-v1")
    summary, out = train(capsys, "env=gym", "env.id=Pendulum-v1", *FILES)
    assert summary["env"] == "Pendulum-v1" and summary["setting"] == "given"
    assert summary["score"] == pytest.approx(summary["evaluations"][-1]["mean_return"]) and summary["score"] < 0
    assert "returns as they are" in summary["reference"]["source"] and summary["reference"]["source"] in out
    run = "runs/Pendulum-v1/given/tailo/a"
    assert cli.main(["table", run]) == 0
    assert "(return)" in capsys.readouterr().out
    assert cli.main(["evaluate", run, "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_length"] == 200
    assert cli.main(["play", run]) == 2
    error = capsys.readouterr().err
    assert error == f"tailo: {run}: env Pendulum-v1 cannot be filmed, expected one that MuJoCo simulates\n"


def test_a_dictionary_of_gymnasium_robotics_from_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("FetchReach-v4")
    references = ("env.low=-50", "env.high=0", "env.success=info")
    summary, _ = train(capsys, "env=gym", "env.id=FetchReach-v4", *FILES, *references)
    assert summary["reference"] == {"low": -50, "high": 0, "source": "given: env.low and env.high"}
    last = summary["evaluations"][-1]
    assert last["mean_length"] == 50 and last["success"] in (0, 0.5, 1)
    assert summary["score"] == pytest.approx(2 * (last["mean_return"] + 50))


def test_minari_and_the_environment_share_keys_and_order(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    collector = minari.DataCollector(gymnasium.make("FetchReach-v4", max_episode_steps=10))
    for episode in range(5):
        collector.reset(seed=episode)
        for _ in range(10):
            collector.step(collector.action_space.sample())
    collector.create_dataset("test/reach-v0", algorithm_name="random", author="us", author_email="", code_permalink="")
    collector.close()
    both = ("setting.ts=test/reach-v0", "setting.ta=test/reach-v0", "setting.ts_trajectories=1")
    asked = ("env=gym", "env.id=FetchReach-v4", "source=minari", *both)
    message = refused(
        capsys, *asked, "source.keys=[desired_goal,achieved_goal]", "env.keys=[achieved_goal,desired_goal]"
    )
    assert message.startswith("source.keys: ['desired_goal', 'achieved_goal'] given, expected ['achieved_goal'")
    summary, _ = train(capsys, *asked, "env.keys=[observation,desired_goal]", "env.horizon=10")
    assert summary["evaluations"][-1]["mean_length"] == 10
    assert "keys observation, desired_goal" in summary["data"]["source"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["env.id=Pendulm-v1"], "env.id: 'Pendulm-v1' given, expected an id that is registered with gymnasium"),
        (["env.id=CartPole-v1"], "env.id=CartPole-v1: actions: space Discrete(2) found, expected Box"),
        (["env.id=mine:Mine-v0"], "env.id: 'mine:Mine-v0' given, which runs code of mine"),
        (["env.id=MountainCarContinuous-v0"], "env MountainCarContinuous-v0: 2 numbers in a state and 1 in an action"),
        (["env.id=Blackjack-v1"], "env.horizon: not given, expected a number of steps"),
        (["env.id=Pendulum-v1", "env.success=perhaps"], "env.success: "),
        (["env.id=Pendulum-v1", "env.low=-1500"], "env.low, env.high: -1500.0 and None given, expected low < high"),
        ([], "env.id: not given, expected env.id=..."),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    record("Pendulum-v1", steps=10)
    assert refused(capsys, "env=gym", *FILES, *arguments).startswith(message)


def test_no_data_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "env Pendulum-v1: makes no data of its own, expected source=files, d4rl or minari"
    assert refused(capsys, "env=gym", "env.id=Pendulum-v1") == line


def test_files_of_d4rls_layout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roll_out(Path("logs.npz"), "Pendulum-v1", 4, 20)
    with np.load("logs.npz") as arrays, h5py.File("logs.hdf5", "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values)
    both = ("setting.ts=./logs.hdf5", "setting.ta=./logs.hdf5", "setting.ts_trajectories=1")
    summary, _ = train(capsys, "env=gym", "env.id=Pendulum-v1", "source=d4rl", *both)
    assert summary["score"] is not None and summary["data"]["ta"]["trajectories"] == 4
