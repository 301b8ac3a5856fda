"""What is counted of the kitchen's demonstrations, by hand."""

from __future__ import annotations

import json

import numpy as np

from tailo_pl.data.sources.kitchen import Episode
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs.kitchen_tasks import SUBTASKS
from tools.measure_kitchen import PATH, success

MICROWAVE, SLIDE = 22 + 9, 19 + 9  # columns


def test_subtasks_asked_done_and_how_long_they_took() -> None:
    states = np.zeros((9, 59), dtype=np.float32)
    states[3:6, MICROWAVE] = -0.75  # first episode: rows 0 to 5
    states[5:6, SLIDE] = 0.37
    states[8:, MICROWAVE] = -0.75  # second: rows 6 to 8
    trajectories = Trajectories.of(Recording(states, np.array([0, 6])))
    order = ("microwave", "slide cabinet")
    found = success(trajectories, [Episode(order, 0), Episode(order, 1)])
    assert (found["episodes"], found["sequences_done"]) == (2, 1)
    assert found["subtasks"]["microwave"] == {"asked": 2, "done": 2, "median_steps": 2.5}
    assert found["subtasks"]["slide cabinet"] == {"asked": 2, "done": 1, "median_steps": 2.0}
    assert found["subtasks"]["kettle"] == {"asked": 0, "done": 0, "median_steps": None}


def test_the_manifest_has_every_subtask() -> None:
    manifest = json.loads(PATH.read_text())
    assert set(manifest["subtasks"]) == set(SUBTASKS)
    for name, counts in manifest["subtasks"].items():
        assert 0.5 * counts["asked"] < counts["done"] <= counts["asked"], name
