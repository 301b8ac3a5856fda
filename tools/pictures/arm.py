"""An arm of three joints: what it was shown by hand, what its logs hold, and what is made of them."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tailo_pl import load_policy
from tailo_pl.config.compose import composed_config
from tailo_pl.config.experiment import outline
from tailo_pl.data.fit import check_fit
from tailo_pl.data.likeness import Sample, some_states
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError
from tests.helpers.arm import write_expert, write_logs

from .canvas import ACCENT, OTHER, PALE, ROOT, panels, save

EPISODES = 20
VERDICTS = {"harmful or unrelated": PALE, "useful parts": OTHER, "expert-like": ACCENT}  # those in front last


def hand_guided(folder: Path) -> None:
    """Paths of the tip: shown by hand, in the logs as they were judged, and of what was learnt.

    Args:
        folder: in which `examples/hand_guided_arm.py` has worked.
    """
    example = _example()
    arm = example.Arm()
    figure, axes = panels(3, 3.3)
    shown, logs = (_episodes(folder / name) for name in ("hand_guided", "teleoperated"))
    for states in shown:
        axes[0].plot(*_tips(arm, states), color=ACCENT)
    axes[0].set_title(f"shown by hand {len(shown)} times, no actions", fontsize=9)
    with (folder / "curation.csv").open() as file:
        judged = {int(row["episode"]): row["verdict"] for row in csv.DictReader(file)}
    for verdict, color in VERDICTS.items():
        chosen = [states for number, states in enumerate(logs) if judged[number] == verdict]
        for at, states in enumerate(chosen):
            label = f"{verdict} ({len(chosen)})" if at == 0 else None
            axes[1].plot(*_tips(arm, states), color=color, linewidth=0.8, label=label)
    axes[1].set_title(f"{len(logs)} logs, as tailo curate judges them", fontsize=9)
    axes[1].legend(fontsize=7, loc="center left")
    policy = load_policy(folder / "runs/none/given/tailo/tailo/export/policy.onnx")
    random, reached = np.random.default_rng(1000), 0
    for _ in range(EPISODES):
        states, _, there = arm.episode(example.start(random), policy)
        reached += there
        axes[2].plot(*_tips(arm, states), color=ACCENT if there else OTHER, linewidth=0.8)
    axes[2].set_title(f"learnt: {reached} of {EPISODES} from new starts end there", fontsize=9)
    angle = np.linspace(0, 2 * np.pi, 50)
    for axis in axes:
        goal = arm.goal[:2, None] + example.REACHED * np.stack([np.cos(angle), np.sin(angle)])
        axis.plot(*goal, color="black", linewidth=1.2, zorder=3)
        axis.set_aspect("equal")
        axis.set_xlabel("place of the tip, metres", fontsize=8)
    save(figure, "arm.png")


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hand_guided_arm", ROOT / "examples/hand_guided_arm.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def _episodes(folder: Path) -> list[NDArray[Any]]:
    table = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    states = np.array(table["observation.state"].to_pylist())
    return np.split(states, np.flatnonzero(np.diff(table["episode_index"].to_numpy())) + 1)


def _tips(arm: Any, states: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([arm.tip_at(one)[:2] for one in states]).T


def right_and_wrong(folder: Path) -> None:
    """TS beside TA as it should be and as it should not, and what is said of it before training.

    Args:
        folder: to work in.
    """
    logs, right = write_logs(folder), write_expert(folder, "right")
    degrees, permuted = write_expert(folder, "degrees", unit=180 / np.pi), folder / "permuted.npz"
    with np.load(right) as file:
        np.savez(permuted, observations=np.roll(file["observations"], 1, axis=1), episode=file["episode"])
    experts = {"as it should be": right, "in degrees": degrees, "columns in another order": permuted}
    figure, axes = panels(len(experts), 2.9, shared=False)
    for axis, (title, ts) in zip(axes, experts.items(), strict=True):
        task = outline(composed_config(["source=files", f"source.ts={ts}", f"source.ta={logs}"])).task
        covered = Sample.of(task.ta).covers(some_states(task.ts))
        try:
            said = "a remark" if check_fit(task, trust=False) else "nothing to remark"
        except UserError:
            said = "refused"
        axis.plot(*_states(task.ta)[:, :2].T, ".", color=PALE, markersize=2, label="logs (TA)")
        axis.plot(*_states(task.ts)[:, :2].T, ".", color=ACCENT, markersize=5, label="expert's (TS)")
        axis.set_title(f"{title}:\nlogs near {covered:.0%} of TS, {said}", fontsize=9)
        axis.set_xlabel("joint 0", fontsize=8)
    axes[0].set_ylabel("joint 1", fontsize=8)
    axes[0].legend(fontsize=7, loc="lower left")
    save(figure, "own-data.png")


def _states(trajectories: Trajectories) -> NDArray[Any]:
    return trajectories.recording.observations[trajectories.rows.at(np.arange(trajectories.steps))]
