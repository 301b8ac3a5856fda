"""The bundled pointmaze data is what the method's table says, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.sources import pointmaze
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.pointmaze import PointMazeRecipe
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.pointmaze import GOALS, REACHED, START, START_NOISE
from tailo_pl.errors import UserError


def test_about_600_trajectories_a_quarter_each_way(pointmaze_data: Trajectories) -> None:
    assert 560 <= len(pointmaze_data) <= 640
    assert 45_000 <= pointmaze_data.steps <= 55_000
    names, counts = np.unique(pointmaze_data.origins, return_counts=True)
    assert set(names) == set(GOALS)
    assert len(set(counts)) == 1


def test_each_way_starts_in_the_middle_and_ends_at_its_goal(pointmaze_data: Trajectories) -> None:
    assert np.abs(pointmaze_data.first_states[:, :2] - START).max() <= START_NOISE + 1e-6
    goals = np.array([GOALS[str(origin)] for origin in pointmaze_data.origins])
    reached = pointmaze_data.returns == 1
    assert reached.mean() > 0.95
    # The last recorded state is the one before the goal was reached: still outside, but less than a step away.
    distances = np.linalg.norm(pointmaze_data.last_states[:, :2] - goals, axis=1)[reached]
    assert distances.min() > REACHED
    assert distances.max() < REACHED + 0.1
    terminals = pointmaze_data.recording.terminals
    assert terminals is not None
    np.testing.assert_array_equal(terminals[pointmaze_data.offsets[1:] - 1], reached)
    assert terminals.sum() == reached.sum()


def test_shapes_and_bounds(pointmaze_data: Trajectories) -> None:
    assert pointmaze_data.observations.shape == (pointmaze_data.steps, 4)
    assert pointmaze_data.actions.shape == (pointmaze_data.steps, 2)
    assert pointmaze_data.observations.dtype == pointmaze_data.actions.dtype == np.float32
    assert np.abs(pointmaze_data.actions).max() <= 1


def test_cached(pointmaze_data: Trajectories, tailo_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointmaze, "record", None)  # a second making would stop here
    again = Bundled("pointmaze", PointMazeRecipe()).part("directions")
    np.testing.assert_array_equal(again.observations, pointmaze_data.observations)
    assert list((tailo_home / "data").glob("pointmaze-directions-*"))


def test_the_seed_decides_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointmaze, "EPISODES", 1)
    monkeypatch.setattr(pointmaze, "ROWS", 1)
    one, again, other = (pointmaze.directions(seed) for seed in (0, 0, 1))
    for name, array in one.recording.arrays().items():
        np.testing.assert_array_equal(array, again.recording.arrays()[name])
    assert not np.array_equal(one.first_states, other.first_states)
    assert len(np.unique(one.first_states, axis=0)) == 4  # each way has starts of its own


def test_identity_holds_what_decides_the_data() -> None:
    one, other = (
        Bundled("pointmaze", PointMazeRecipe(), seed=0).identity("directions"),
        Bundled("pointmaze", PointMazeRecipe(), seed=1).identity("directions"),
    )
    assert one != other
    assert {"env", "part", "seed", "episodes", "noise", "mujoco"} <= one.keys()


def test_no_recipe_and_unknown_part() -> None:
    with pytest.raises(UserError, match="env pendulum: makes no data of its own, expected source=files"):
        Bundled("pendulum")
    with pytest.raises(UserError, match=r"'expert'.*directions"):
        Bundled("pointmaze", PointMazeRecipe()).part("expert")
