"""Antmaze's data, made small: who walks where, what is recorded, and what names it."""

from __future__ import annotations

import numpy as np
import pytest

from tailo_pl.data.sources import antmaze
from tailo_pl.data.sources.antmaze import AntMazeRecipe, Walks, make, point_path
from tailo_pl.envs import umaze
from tailo_pl.errors import UserError


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(antmaze, "ROWS", 4)
    monkeypatch.setattr(antmaze, "_TRIES", 3)


def test_the_demonstration_is_one_way_to_the_goal() -> None:
    made = make("stock", Walks("goal", (0.0,), None), seed=0)
    assert len(made) == 1 and made.observations.shape[1] == 29 and made.actions.shape[1] == 8
    assert made.recording.terminals is not None and made.recording.terminals[made.rows.at(np.array([made.steps - 1]))]
    np.testing.assert_allclose(made.first_states[0, :2], [0, 0], atol=0.1)
    assert np.linalg.norm(made.last_states[0, :2] - umaze.GOAL) < 0.8  # the step after it is within 0.5
    again = make("stock", Walks("goal", (0.0,), None), seed=0)
    np.testing.assert_array_equal(made.observations, again.observations)


def test_errands_go_on_with_each_share_of_noise() -> None:
    made = make("stock", Walks("diverse", (0.0, 1.0), 400, "errands", horizon=100), seed=1)
    assert made.steps == 400 and set(made.origins) == {"diverse"}
    assert made.lengths.max() <= 100
    assert np.abs(made.first_states[:, :2]).max() > 2  # from anywhere


def test_random_actions_begin_at_the_start_and_end_with_time_alone() -> None:
    made = make("d4rl", Walks("random", (), 120, horizon=30, reached=0.0), seed=0)
    assert made.lengths.tolist() == [30] * 4
    assert np.abs(made.first_states[:, :2]).max() <= 0.1
    assert made.recording.terminals is not None and not made.recording.terminals.any()
    actions = made.actions
    assert np.abs(actions).max() == 1.0  # clipped
    assert actions.std() == pytest.approx(np.sqrt(1 / 3 + 0.04), abs=0.05)


def test_the_point_goes_the_same_way_in_a_frame_of_its_own() -> None:
    made = point_path(0)
    assert made.observations.shape[1] == 4 and 150 < made.steps < 300
    back = made.observations[:, [1, 0]] * 4 + 4  # swapped, a cell has side 1, the origin in the middle
    assert np.linalg.norm(back[0] - umaze.START) < 0.2 and np.linalg.norm(back[-1] - umaze.GOAL) < 0.6
    assert np.linalg.norm(back - umaze.along(umaze.project(back)), axis=1).max() < 0.6
    assert (np.diff(umaze.project(back)) > -0.01).all()


def test_parts_and_what_names_them() -> None:
    stock, other = AntMazeRecipe().parts, AntMazeRecipe(body="d4rl").parts
    assert set(stock) == {"random", "goal", "diverse", "demonstration", "point"}
    assert set(other) == {"random", "point"}  # the walker does not know that body
    assert stock["random"].identity != other["random"].identity
    assert stock["goal"].identity != AntMazeRecipe(goal_steps=7).parts["goal"].identity
    assert (stock["goal"].body, other["random"].body, stock["point"].body) == ("stock", "d4rl", None)
    with pytest.raises(UserError, match=r"env.data.random_steps"):
        AntMazeRecipe(random_steps=0)
