"""D4RL's and Minari's data from name or path to a trained policy."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from helpers.runs import small

from tailo_pl import cli
from tailo_pl.data.sources.d4rl_datasets import DATASETS, dataset_path
from tailo_pl.envs.kitchen import Kitchen
from tailo_pl.envs.kitchen_tasks import SUBTASKS

SMALL = small(5, "preset.held_out.trajectories=1", "name=a")
WIDTHS = {"hopper": (11, 3), "halfcheetah": (17, 6), "walker2d": (17, 6), "ant": (111, 8)}


def write_d4rl(path: Path, observations: int, actions: int, lengths: list[int], *, timeouts: bool = True) -> None:
    """A file as D4RL publishes them: gzip chunks, infos beside the steps, the last episode cut off."""
    rng = np.random.default_rng(len(path.name))
    rows = sum(lengths)
    ends = np.zeros(rows, dtype=bool)
    ends[np.cumsum(lengths)[:-1] - 1] = True
    states = rng.normal(0, 1, (rows + 1, observations)).astype(np.float32)
    fields = {
        "observations": states[:-1],
        "next_observations": states[1:],
        "actions": rng.uniform(-1, 1, (rows, actions)).astype(np.float32),
        "rewards": rng.normal(0, 1, rows).astype(np.float32),
        "terminals": np.zeros(rows, bool) if timeouts else ends,
        "infos/qpos": rng.normal(0, 1, (rows, 3)),
    }
    if timeouts:
        fields["timeouts"] = ends
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, values in fields.items():
            file.create_dataset(name, data=values, compression="gzip")
        file.create_group("metadata").create_dataset("algorithm", data=np.bytes_("SAC"))


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """D4RL's folder, empty, beside the working directory."""
    monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path / "d4rl"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "d4rl"


def train(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    code = cli.main(["train", *SMALL, *arguments])
    assert code == 0, capsys.readouterr().err
    (summary,) = Path("runs").glob("*/*/tailo/a/summary.json")
    return json.loads(summary.read_text())


@pytest.mark.parametrize("env", WIDTHS)
def test_locomotion_by_name(published: Path, capsys: pytest.CaptureFixture[str], env: str) -> None:
    for part, lengths in (("expert", [30, 25, 20]), ("random", [15] * 8)):
        write_d4rl(dataset_path(f"{env}-{part}-v2"), *WIDTHS[env], lengths)
    summary = train(capsys, f"env={env}", "source=d4rl", "setting.experts=2")
    assert summary["data"]["ts"] == {"trajectories": 1, "states": 30}
    assert summary["data"]["ta"]["trajectories"] == 2 + 8
    assert summary["data"]["ta"]["steps"] == 30 + 25 + 8 * 15
    assert f"{env}-random-v2" in summary["data"]["source"]
    assert summary["score"] is not None


@pytest.mark.parametrize(
    ("dataset", "widths", "timeouts"),
    [
        ("maze2d-umaze-v1", (4, 2), True),
        ("antmaze-umaze-v2", (29, 8), True),
        ("kitchen-mixed-v0", (60, 9), False),
    ],
)
def test_other_tasks_without_an_environment(
    published: Path, capsys: pytest.CaptureFixture[str], dataset: str, widths: tuple[int, int], timeouts: bool
) -> None:
    horizon = DATASETS[dataset].horizon
    # Without timeouts the second episode goes on until the task's episode length ends it.
    lengths = [20, 30, 25, 40] if timeouts else [20, horizon + 30, 25]
    write_d4rl(dataset_path(dataset), *widths, lengths, timeouts=timeouts)
    summary = train(capsys, "env=none", "source=d4rl", "setting=offline_rl", f"setting.dataset={dataset}")
    assert summary["data"]["ta"]["trajectories"] == 4
    assert summary["score"] is None
    assert summary["stages"][-1]["quality"] is not None


def test_the_kitchens_files(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """D4RL's states train in its own layout, are scored in it, and tell which subtasks were done."""
    write_d4rl(dataset_path("kitchen-complete-v0"), 60, 9, [20, 30, 25], timeouts=False)
    write_d4rl(dataset_path("kitchen-mixed-v0"), 60, 9, [20, 30, 25, 40])
    summary = train(capsys, "env=kitchen", "source=d4rl", "setting=kitchen_complete", "preset.rollout.episodes=1")
    assert summary["data"]["ts"] == {"trajectories": 1, "states": 20}
    assert summary["data"]["ta"]["trajectories"] == 4
    assert summary["evaluations"][-1]["episodes"] == 1
    assert set(summary["evaluations"][-1]["subtasks"]) == set(SUBTASKS)
    assert summary["reference"] == {"low": 0.0, "high": 4, "source": Kitchen().reference.source}
    report = Path("report.html")
    assert cli.main(["report", "runs/kitchen/kitchen_complete/tailo/a", "--out", str(report)]) == 0
    page = report.read_text()
    assert "Order of the subtasks" in page
    assert "policy, episode 1" in page
    assert "TA, 1st most weight" in page


def test_d4rl_by_path(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_d4rl(Path("mine/complete.hdf5"), 60, 9, [20, 30, 25], timeouts=False)
    write_d4rl(Path("mine/mixed.hdf5"), 60, 9, [20, 30, 25, 40])
    summary = train(
        capsys, "env=none", "source=d4rl", "setting=given", "setting.ts_trajectories=1",
        "setting.ts=mine/complete.hdf5", "setting.ta=mine/mixed.hdf5",
    )  # fmt: skip
    assert summary["data"]["ts"] == {"trajectories": 1, "states": 20}
    assert summary["data"]["ta"]["trajectories"] == 4


def test_minari_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)
    collector = minari.DataCollector(gymnasium.make("Pendulum-v1", max_episode_steps=30))
    for episode in range(6):
        collector.reset(seed=episode)
        collector.action_space.seed(episode)
        ended = False
        while not ended:
            *_, terminated, truncated, _ = collector.step(collector.action_space.sample())
            ended = terminated or truncated
    collector.create_dataset(
        "test/pendulum-v0", algorithm_name="random", author="us", author_email="", code_permalink=""
    )
    collector.close()
    summary = train(
        capsys, "env=none", "source=minari", "setting=given", "setting.ts_trajectories=1",
        "setting.ts=test/pendulum-v0", "setting.ta=test/pendulum-v0",
    )  # fmt: skip
    assert summary["data"]["ta"] == {
        "trajectories": 6,
        "steps": 180,
        "origins": {"test/pendulum-v0": summary["data"]["ta"]["origins"]["test/pendulum-v0"]},
    }
    config = Path("runs/none/given/tailo/a/policy/config.yaml").read_text()
    assert "action_low:\n    - -2.0" in config  # the dataset's own bounds, not those of the actions it holds
    assert cli.main(["data", "inspect", "minari:test/pendulum-v0"]) == 0
    assert "180" in capsys.readouterr().out
