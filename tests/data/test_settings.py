"""How TS and TA are cut, on small trajectories and on the bundled pointmaze data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tailo_pl.data.settings import Examples, load_task, task_fingerprint
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.pointmaze import PointMazeRecipe
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.pointmaze import GOALS
from tailo_pl.errors import UserError


@pytest.fixture
def directions(trajectories_of: Callable[..., Trajectories]) -> dict[str, Trajectories]:
    """Left: rows 0-4, 7-8 (only two) and 12-16. Right: 5-6 and 9-11."""
    states = np.arange(17)[:, None]
    whole = trajectories_of(states, [5, 2, 2, 3, 5], ["left", "right", "left", "right", "left"])
    return {"directions": whole}


def rows(trajectories: Trajectories) -> list[int]:
    return trajectories.observations[:, 0].astype(int).tolist()


class TestExamples:
    def test_all_candidates_are_the_last_three_of_each(self, directions: dict[str, Trajectories]) -> None:
        task = Examples("left", count=8).cut(directions)
        assert rows(task.ts) == [2, 3, 4, 7, 8, 14, 15, 16]
        assert set(task.ts.origins) == {"left"}

    def test_another_origin_and_another_number_of_last_states(self, directions: dict[str, Trajectories]) -> None:
        assert rows(Examples("right", count=2, last=1).cut(directions).ts) == [6, 11]
        assert rows(Examples("left", count=3, last=1).cut(directions).ts) == [4, 8, 16]
        assert rows(Examples("left", count=12, last=99).cut(directions).ts) == [*range(5), 7, 8, *range(12, 17)]

    def test_draws_without_replacement_from_a_seed(self, directions: dict[str, Trajectories]) -> None:
        draws = [rows(Examples("left", count=4, seed=seed).cut(directions).ts) for seed in range(30)]
        assert draws[0] == rows(Examples("left", count=4, seed=0).cut(directions).ts)
        assert all(len(set(draw)) == 4 for draw in draws)
        assert {row for draw in draws for row in draw} == {2, 3, 4, 7, 8, 14, 15, 16}
        assert len({tuple(draw) for draw in draws}) > 10

    def test_ta_is_everything_and_shares_the_arrays(self, directions: dict[str, Trajectories]) -> None:
        task = Examples("left", count=4).cut(directions)
        assert task.ta is directions["directions"]
        assert task.ts.recording is task.ta.recording

    def test_last_states_are_those_kept(self, directions: dict[str, Trajectories]) -> None:
        shorter = directions["directions"].drop(np.arange(17) == 16)
        assert rows(Examples("left", count=3, last=1).cut({"directions": shorter}).ts) == [4, 8, 15]

    def test_more_examples_than_there_are(self, directions: dict[str, Trajectories]) -> None:
        with pytest.raises(
            UserError, match=r"setting.count: 9 examples asked for, but only 8 .*last 3 of the 3.*'left'"
        ):
            Examples("left", count=9).cut(directions)

    def test_unknown_origin_is_named(self, directions: dict[str, Trajectories]) -> None:
        with pytest.raises(UserError, match="nowhere"):
            Examples("nowhere", count=1).cut(directions)

    @pytest.mark.parametrize("argument", ["count", "last"])
    def test_numbers_out_of_range(self, argument: str) -> None:
        with pytest.raises(UserError, match=f"setting.{argument}"):
            Examples(**{argument: 0})


class TestPointmaze:
    def test_ts(self, pointmaze_data: Trajectories) -> None:
        task = load_task(Bundled("pointmaze", PointMazeRecipe()), Examples())
        assert task.ts.steps == 200
        assert set(task.ts.origins) == {"left"}
        # Three steps before the goal is reached (within 0.17) the point is still close to it.
        distance = np.linalg.norm(task.ts.observations[:, :2] - GOALS["left"], axis=1)
        assert distance.max() < 0.7
        assert task.ta.steps == pointmaze_data.steps
        np.testing.assert_array_equal(task.ta.observations, pointmaze_data.observations)

    def test_fingerprint_names_the_data_without_reading_it(self) -> None:
        # Data of this seed was never made.
        name = task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=123), Examples())
        assert name == task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=123), Examples())
        others = [
            task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=124), Examples()),
            task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=123), Examples(seed=1)),
            task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=123), Examples(count=100)),
            task_fingerprint(Bundled("pointmaze", PointMazeRecipe(), seed=123), Examples(origin="right")),
        ]
        assert len({name, *others}) == 5
