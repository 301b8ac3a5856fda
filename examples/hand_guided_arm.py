"""From hand-guided joint states to a policy: an arm that was shown the way by hand, and a pile of old teleoperation.

    python examples/hand_guided_arm.py            # a few minutes on two cores; writes into ./arm
    python examples/hand_guided_arm.py --small    # the same steps with little data and short training

Somebody takes the arm by the hand and leads it to its goal three times: joint states, no actions. The logs are old
teleoperation with states and actions, one in five of which happened to go to that goal. The script simulates the arm,
writes both as LeRobot data sets, and calls the commands that one would type. `docs/robots.md` walks through it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailo_pl import cli, load_policy

ARM = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast" gravity="0 0 0"/>
  <default><joint type="hinge" axis="0 0 1" damping="0.5" armature="0.02"/><geom type="capsule" size="0.03"/></default>
  <worldbody><body><joint name="q0"/><geom fromto="0 0 0 0.4 0 0"/>
    <body pos="0.4 0 0"><joint name="q1"/><geom fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="q2"/><geom fromto="0 0 0 0.2 0 0"/>
        <site name="tip" pos="0.2 0 0"/></body></body></body></worldbody>
  <actuator><velocity joint="q0" kv="5" ctrlrange="-1 1"/><velocity joint="q1" kv="5" ctrlrange="-1 1"/>
    <velocity joint="q2" kv="5" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
JOINTS = ["q0.pos", "q1.pos", "q2.pos"]
RATE, STEPS = 20, 100  # commands per second, steps per episode
GOAL = np.array([1.2, 0.8, -0.6])  # the joints where the work is
ELSEWHERE = np.array([[-1.2, 0.8, 0.6], [1.2, -1.0, 0.8], [-1.0, -1.0, -0.8], [0.2, 1.4, 1.2]])
REACHED = 0.05  # metres between the tip and its place at the goal
Controller = Callable[[np.ndarray], np.ndarray]


class Arm:
    """Three joints in a plane, moved by their velocities."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(ARM)
        self.data = mujoco.MjData(self.model)
        self.goal = self.tip_at(GOAL)

    def tip_at(self, joints: np.ndarray) -> np.ndarray:
        self.data.qpos[:] = joints
        mujoco.mj_forward(self.model, self.data)
        return np.array(self.data.site("tip").xpos)

    def episode(self, start: np.ndarray, act: Controller) -> tuple[np.ndarray, np.ndarray, bool]:
        """Joint states, actions, and whether the tip ends at the goal."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = start
        states, actions = np.empty((STEPS, 3), np.float32), np.empty((STEPS, 3), np.float32)
        for step in range(STEPS):
            states[step] = self.data.qpos
            actions[step] = np.clip(act(states[step]), -1, 1)
            self.data.ctrl[:] = actions[step]
            mujoco.mj_step(self.model, self.data, nstep=round(1 / (RATE * self.model.opt.timestep)))
        mujoco.mj_forward(self.model, self.data)
        return states, actions, bool(np.linalg.norm(self.data.site("tip").xpos - self.goal) < REACHED)


def start(random: np.random.Generator) -> np.ndarray:
    return random.uniform(-0.3, 0.3, 3)


def hand_guided(random: np.random.Generator) -> np.ndarray:
    """The way a hand leads the joints: smoothly to the goal, with a little tremor. Nobody records an action."""
    time = np.clip(np.arange(STEPS) / (0.7 * STEPS), 0, 1)[:, None]
    smooth = 10 * time**3 - 15 * time**4 + 6 * time**5
    begin = start(random)
    return (begin + smooth * (GOAL - begin) + random.normal(0, 0.01, (STEPS, 3))).astype(np.float32)


def teleoperated(arm: Arm, random: np.random.Generator, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An operator steers towards some place, not very steadily."""
    states, actions, _ = arm.episode(start(random), lambda q: 1.5 * (target - q) + random.normal(0, 0.2, 3))
    return states, actions


def write_lerobot(folder: Path, states: list[np.ndarray], actions: list[np.ndarray] | None) -> None:
    """The episodes as a LeRobot data set, layout v3.0."""
    lengths = np.array([len(one) for one in states])
    ends, episode = np.cumsum(lengths), np.repeat(np.arange(len(lengths)), lengths)
    frame = np.concatenate([np.arange(length) for length in lengths])
    vectors = {"observation.state": np.concatenate(states)}
    if actions is not None:
        vectors["action"] = np.concatenate(actions)
    scalars = {"timestamp": (frame / RATE).astype(np.float32), "frame_index": frame, "episode_index": episode,
               "index": np.arange(len(frame)), "task_index": np.zeros(len(frame), dtype=np.int64)}  # fmt: skip
    features = {name: {"dtype": "float32", "shape": [3], "names": JOINTS} for name in vectors}
    features |= {name: {"dtype": str(one.dtype), "shape": [1], "names": None} for name, one in scalars.items()}
    rows = {name: pa.FixedSizeListArray.from_arrays(pa.array(one.ravel()), 3) for name, one in vectors.items()}
    zeros = np.zeros(len(lengths), dtype=np.int64)
    index = {"episode_index": np.arange(len(lengths)), "tasks": [["reach"]] * len(lengths), "length": lengths,
             "data/chunk_index": zeros, "data/file_index": zeros,
             "dataset_from_index": ends - lengths, "dataset_to_index": ends}  # fmt: skip
    info = {"codebase_version": "v3.0", "robot_type": "three_joints", "fps": RATE, "features": features,
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet", "chunks_size": 1000,
            "total_episodes": len(lengths), "total_frames": len(frame), "total_tasks": 1,
            "splits": {"train": f"0:{len(lengths)}"}}  # fmt: skip
    for name, table in {"data/chunk-000/file-000": {**rows, **scalars}, "meta/episodes/chunk-000/file-000": index,
                        "meta/tasks": {"task_index": [0], "task": ["reach"]}}.items():  # fmt: skip
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), path)
    (folder / "meta/info.json").write_text(json.dumps(info))


def tailo(*arguments: str) -> None:
    """Call a command as it would be typed."""
    print("\n$ tailo " + " ".join(arguments), flush=True)
    if code := cli.main(list(arguments)):
        sys.exit(code)


def success(arm: Arm, policy: Controller, episodes: int) -> float:
    """How often a policy ends at the goal, from starts that nobody has trained on."""
    random = np.random.default_rng(1000)
    return float(np.mean([arm.episode(start(random), policy)[2] for _ in range(episodes)]))


def main(folder: Path, small: bool) -> tuple[float, float]:
    """Success of cloning all logs, and of what the hand-guided states make of them."""
    random, arm = np.random.default_rng(0), Arm()
    logs = [teleoperated(arm, random, target) for target in [GOAL, *ELSEWHERE] * (4 if small else 16)]
    write_lerobot(folder / "hand_guided", [hand_guided(random) for _ in range(3)], None)
    write_lerobot(folder / "teleoperated", [states for states, _ in logs], [actions for _, actions in logs])
    tailo("data", "inspect", str(folder / "hand_guided"))
    data = [f"source.ts={folder / 'hand_guided'}", f"source.ta={folder / 'teleoperated'}"]
    budget = ["preset.pretrain_steps=200", "preset.formal_steps=700", "preset.policy_steps=700"] if small else []
    shares = {}
    for method in ("bc", "tailo"):
        given = [f"runs={folder / 'runs'}", f"name={method}", *budget]
        tailo("train", "source=lerobot", *data, f"method={method}", "env.hints.gamma=0.98", *given)
        run = str(folder / "runs/none/given" / method / method)
        tailo("export", run, "--format", "onnx")
        shares[method] = success(arm, load_policy(f"{run}/export/policy.onnx"), 20 if small else 100)
    table = str(folder / "curation.csv")
    tailo("curate", str(folder / "teleoperated"), "--run", run, "--keep", "0.2", "--write", str(folder / "kept"),
          "--out", table)  # fmt: skip
    print(f"\nsuccess of cloning all logs: {shares['bc']:.0%}")
    print(f"success with the hand-guided states (TAILO): {shares['tailo']:.0%}")
    return shares["bc"], shares["tailo"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="From hand-guided joint states to an exported policy.")
    parser.add_argument("--folder", type=Path, default=Path("arm"))
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    main(given.folder, given.small)
