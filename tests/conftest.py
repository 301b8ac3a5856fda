"""What tests share: a data cache of their own, small tasks given by hand, a silent trainer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Tests run side by side, and some start processes of their own: one thread each. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from helpers.runs import small_run
from hypothesis import settings
from jsonargparse.typing import Path_fr
from lightning import Trainer
from numpy.typing import NDArray

from tailo_pl.data.batches import (
    Batches,
    DynamicsBatches,
    PairBatches,
    PathBatches,
    RolloutBatches,
    TransitionBatches,
    TripleBatches,
    WeightedBatches,
)
from tailo_pl.data.datamodule import TaskData
from tailo_pl.data.settings import Setting, Task
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.pointmaze import PointMazeRecipe
from tailo_pl.data.sources.source import Source
from tailo_pl.data.trajectories import Recording, Trajectories

# Wall time on a busy machine says nothing. The same examples every time: a change is judged by what it changed;
# pytest --hypothesis-profile=search looks for new ones.
settings.register_profile("tailo", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("tailo")


class Given(Source):
    """A source whose parts are handed to it."""

    def __init__(self, parts: Mapping[str, Trajectories]) -> None:
        self._parts = parts

    def part(self, name: str) -> Trajectories:
        return self._parts[name]

    def fingerprint(self, name: str) -> str:
        return name

    def describe(self) -> str:
        return "given"


class AsGiven(Setting):
    """TS and TA are two parts of the source, as they are."""

    parts = ("ts", "ta")

    def cut(self, parts: Mapping[str, Trajectories]) -> Task:
        return Task(parts["ts"], parts["ta"])


@pytest.fixture(scope="session", autouse=True)
def tailo_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """TAILO_HOME of this test run, so that no test reads or writes the user's cache."""
    folder = tmp_path_factory.mktemp("tailo_home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAILO_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def pointmaze_data(tailo_home: Path) -> Trajectories:
    """The bundled pointmaze data, made once per test run."""
    return Bundled("pointmaze", PointMazeRecipe()).part("directions")


@pytest.fixture(scope="session")
def run_dir(tailo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished pointmaze run of a few steps, trained once per test run; tests only read it."""
    return small_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def trajectories_of() -> Callable[..., Trajectories]:
    """Makes trajectories of the given lengths around the given states, with random actions in [-0.9, 0.9]."""

    def make(
        states: NDArray[Any], lengths: list[int], origins: Any = "unknown", actions: NDArray[Any] | None = None
    ) -> Trajectories:
        states = np.asarray(states, dtype=np.float32)
        if actions is None:
            actions = np.random.default_rng(len(states)).uniform(-0.9, 0.9, (len(states), 2))
        starts = np.cumsum([0, *lengths[:-1]])
        return Trajectories.of(Recording(states, starts, actions=np.asarray(actions, dtype=np.float32)), origins)

    return make


KINDS: dict[str, type[Batches]] = {
    "pairs": PairBatches,
    "weighted": WeightedBatches,
    "transitions": TransitionBatches,
    "triples": TripleBatches,
    "dynamics": DynamicsBatches,
    "rollouts": RolloutBatches,
    "paths": PathBatches,
}


@pytest.fixture
def task_data(tmp_path: Path) -> Callable[..., TaskData]:
    """Makes a TaskData on the given TS and TA: a kind of batches with its arguments; inputs as arrays, by name."""

    def make(ts: Trajectories, ta: Trajectories, batches: str, **arguments: Any) -> TaskData:
        kind = KINDS[batches]
        inputs = {}
        for name in kind.reads:
            array = arguments.pop(name, None)
            if array is not None:
                path = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}.npy"
                np.save(path, array)
                inputs[name] = Path_fr(str(path))
        own = {key: arguments.pop(key) for key in ("stage", "seed", "std_floor") if key in arguments}
        given = Given({"ts": ts, "ta": ta}), AsGiven(), kind(**arguments)
        return TaskData(*given, **{"stage": "stage", "seed": 0, "inputs": inputs, **own})

    return make


@pytest.fixture
def make_trainer(tmp_path: Path) -> Callable[..., Trainer]:
    """Makes a CPU trainer that writes below the test's folder and shows nothing."""

    def make(**arguments: Any) -> Trainer:
        silent = {"accelerator": "cpu", "devices": 1, "logger": False, "max_epochs": -1, "default_root_dir": tmp_path}
        silent |= {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
        return Trainer(**silent | arguments)

    return make


@pytest.fixture
def seeded() -> Iterator[None]:
    """Networks are initialised from torch's global generator: put it in a known state, and back."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
