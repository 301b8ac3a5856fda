"""D4RL's datasets: where their files are published and how long an episode of their task lasts.

The facts are those of the package d4rl 1.1: the addresses of `infos.py`, and the `max_episode_steps` under which the
tasks are registered. They are for all of its 155 dataset names that have a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

ADDRESS = "http://rail.eecs.berkeley.edu/datasets/offline_rl"


@dataclass(frozen=True)
class Dataset:
    """One published dataset.

    Args:
        location: of its file, below `ADDRESS`.
        horizon: steps after which its task ends an episode.
    """

    location: str
    horizon: int

    @property
    def url(self) -> str:
        """Where the file is published."""
        return f"{ADDRESS}/{self.location}"

    @property
    def file_name(self) -> str:
        """What D4RL calls it in its cache."""
        return self.location.rpartition("/")[2]


_BODIES = ("ant", "halfcheetah", "hopper", "walker2d")
_KINDS = ("random", "medium", "expert", "medium-replay", "medium-expert")
_HANDS = {"pen": 100, "hammer": 200, "relocate": 200, "door": 200}
_MAZES = {"open": 150, "umaze": 300, "medium": 600, "large": 800}
# Name of the dataset; of its maze in the file's name; whether starts and goals vary; episode length.
_ANT_MAZES = (
    ("umaze", "u-maze", False, False, 700),
    ("umaze-diverse", "u-maze", True, True, 700),
    ("medium-play", "big-maze", True, False, 1000),
    ("medium-diverse", "big-maze", True, True, 1000),
    ("large-play", "hardest-maze", True, False, 1000),
    ("large-diverse", "hardest-maze", True, True, 1000),
)

_SINGLE = {
    "ant-random-expert-v0": Dataset("gym_mujoco/ant_random_expert.hdf5", 1000),
    "minigrid-fourrooms-v0": Dataset("minigrid/minigrid4rooms.hdf5", 50),
    "minigrid-fourrooms-random-v0": Dataset("minigrid/minigrid4rooms_random.hdf5", 50),
    "flow-ring-random-v0": Dataset("flow/flow-ring-v0-random.hdf5", 500),
    "flow-ring-controller-v0": Dataset("flow/flow-ring-v0-idm.hdf5", 500),
    "flow-merge-random-v0": Dataset("flow/flow-merge-v0-random.hdf5", 750),
    "flow-merge-controller-v0": Dataset("flow/flow-merge-v0-idm.hdf5", 750),
    "kitchen-complete-v0": Dataset("kitchen/mini_kitchen_microwave_kettle_light_slider-v0.hdf5", 280),
    "kitchen-partial-v0": Dataset("kitchen/kitchen_microwave_kettle_light_slider-v0.hdf5", 280),
    "kitchen-mixed-v0": Dataset("kitchen/kitchen_microwave_kettle_bottomburner_light-v0.hdf5", 280),
    "carla-lane-v0": Dataset("carla/carla_lane_follow_flat-v0.hdf5", 250),
    "carla-town-v0": Dataset("carla/carla_town_subsamp_flat-v0.hdf5", 1000),
    "carla-town-full-v0": Dataset("carla/carla_town_flat-v0.hdf5", 1000),
}


def _locomotion() -> Iterator[tuple[str, Dataset]]:
    for body, kind in product(_BODIES, (*_KINDS, "full-replay")):
        stem = f"{body}_{kind.replace('-', '_')}"
        for version in ("v1", "v2"):
            yield f"{body}-{kind}-{version}", Dataset(f"gym_mujoco_{version}/{stem}-{version}.hdf5", 1000)
        if kind in _KINDS:
            yield f"bullet-{body}-{kind}-v0", Dataset(f"bullet/bullet-{stem}.hdf5", 1000)
            # The first version calls replayed data mixed, and then the walker by half of its name.
            first = f"{'walker' if body == 'walker2d' else body}_mixed" if kind == "medium-replay" else stem
            yield f"{body}-{kind}-v0", Dataset(f"gym_mujoco/{first}.hdf5", 1000)


def _mazes() -> Iterator[tuple[str, Dataset]]:
    for maze, horizon in _MAZES.items():
        yield f"bullet-maze2d-{maze}-v0", Dataset(f"bullet/bullet-maze2d-{maze}-sparse.hdf5", horizon)
        for rewards, label in (("sparse", ""), ("dense", "-dense")):
            if maze == "open":
                yield f"maze2d-open{label}-v0", Dataset(f"maze2d/maze2d-open-{rewards}.hdf5", horizon)
                continue
            for name in (maze, f"eval-{maze}"):
                yield f"maze2d-{name}{label}-v1", Dataset(f"maze2d/maze2d-{name}-{rewards}-v1.hdf5", horizon)


def _ant_mazes() -> Iterator[tuple[str, Dataset]]:
    for name, maze, starts, goals, horizon in _ANT_MAZES:
        stem = f"Ant_maze_{maze}_noisy_multistart_{starts}_multigoal_{goals}_sparse"
        yield f"antmaze-{name}-v0", Dataset(f"ant_maze_new/{stem}.hdf5", horizon)
        yield f"antmaze-{name}-v2", Dataset(f"ant_maze_v2/{stem}_fixed.hdf5", horizon)


def _hands() -> Iterator[tuple[str, Dataset]]:
    for hand, horizon in _HANDS.items():
        for kind, stem in (
            ("human", "v0_demos_clipped"),
            ("cloned", "demos-v0-bc-combined"),
            ("expert", "v0_expert_clipped"),
        ):
            yield f"{hand}-{kind}-v0", Dataset(f"hand_dapg/{hand}-{stem}.hdf5", horizon)
            yield f"{hand}-{kind}-v1", Dataset(f"hand_dapg_v1/{hand}-{kind}-v1.hdf5", horizon)


DATASETS: dict[str, Dataset] = {
    **dict(_locomotion()),
    **dict(_mazes()),
    **dict(_ant_mazes()),
    **dict(_hands()),
    **_SINGLE,
}


def dataset_path(name: str) -> Path:
    """Where D4RL keeps the file of a dataset, whether it is there or not."""
    folder = os.environ.get("D4RL_DATASET_DIR")
    return (Path(folder).expanduser() if folder else Path.home() / ".d4rl" / "datasets") / DATASETS[name].file_name
