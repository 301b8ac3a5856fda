"""How TS and TA are cut, on small trajectories and on the bundled pointmaze data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailo_pl.data.batches import TransitionBatches, TripleBatches
from tailo_pl.data.settings import Examples, ExpertsAndOthers, Mismatch, load_task
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.pointmaze import PointMazeRecipe
from tailo_pl.data.sources.recipe import Part, Recipe
from tailo_pl.data.task_names import task_fingerprint, task_recipe
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.pointmaze import GOALS
from tailo_pl.errors import Refusal, UserError
from tailo_pl.inputs import NeighbourRewards, TransportRewards

# What makes rewards or batches of the states of TS, whole.
COMPARING = (TransportRewards(), NeighbourRewards(), TripleBatches(9), TransitionBatches(expert="pairs"))


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


class TestOtherParts:
    """Parts by name: what environments with parts of their own say in their hints."""

    @pytest.fixture
    def parts(self, trajectories_of: Callable[..., Trajectories]) -> dict[str, Trajectories]:
        goal = trajectories_of(np.arange(10)[:, None], [4, 3, 3], "goal")
        terminals = np.zeros(10, dtype=bool)
        terminals[[3, 9]] = True  # the second ran out of time
        goal = replace(goal, recording=replace(goal.recording, terminals=terminals))
        point = trajectories_of(np.array([[0.0, 10.0, 7.0], [5.0, 30.0, 7.0], [10.0, 20.0, 7.0]]), [3], "point")
        return {"goal": goal, "random": trajectories_of(np.arange(20, 26)[:, None], [3, 3], "random"), "point": point}

    def test_examples_without_an_origin_come_from_what_the_task_ended(self, parts: dict[str, Trajectories]) -> None:
        setting = Examples(None, count=4, last=2, part="goal", others=["random"])
        assert setting.parts == ("goal", "random")
        task = setting.cut(parts)
        assert rows(task.ts) == [2, 3, 8, 9]
        assert rows(task.ta) == [*range(10), *range(20, 26)]

    def test_examples_without_an_origin_need_terminals(self, parts: dict[str, Trajectories]) -> None:
        with pytest.raises(UserError, match=r"setting.origin: null given, but part random has no terminals"):
            Examples(None, count=1, part="random").cut(parts)

    def test_all_experts_and_any_trajectory_of_them(self, parts: dict[str, Trajectories]) -> None:
        task = ExpertsAndOthers(None, ["random"], expert="goal", ts_trajectory=1).cut(parts)
        assert rows(task.ts) == [4, 5, 6] and task.ta.steps == 16
        with pytest.raises(UserError, match=r"setting.ts_trajectory: 3 given, but goal has 3"):
            ExpertsAndOthers(None, [], expert="goal", ts_trajectory=3).cut(parts)

    def test_another_body_is_brought_into_the_frame(self, trajectories_of: Callable[..., Trajectories]) -> None:
        """Axes swapped, each from its own extent to TA's, TA's mean in what the other body does not have."""
        ta = trajectories_of(np.array([[0.0, -1, 5], [8, 1, 7], [4, 0, 9]]), [2, 1], "goal")
        point = trajectories_of(np.array([[0.0, 10.0], [5.0, 30.0], [10.0, 20.0]]), [3], "point")
        setting = Mismatch(None, [], "goal", "point", dimensions=[0, 1], ts_dimensions=[1, 0])
        task = setting.cut({"goal": ta, "point": point})
        np.testing.assert_allclose(task.ts.observations, [[0, -1, 7], [8, 0, 7], [4, 1, 7]])
        # TA's mean is no state of the expert: what compares whole states with TS refuses.
        line = "TS: tells numbers 0, 1 of a state alone, expected all: this method compares whole states"
        for part in (*COMPARING, TransitionBatches(expert="states")):
            with pytest.raises(Refusal, match=line):
                part.check(task, setting)
        TransitionBatches().check(task, setting)  # never looks at TS
        given = Mismatch(
            None, [], "goal", "point", [0, 1], [1, 0], extent=[[0, 10], [0, 10]], ts_extent=[[0, 40], [0, 20]]
        )
        moved = given.cut({"goal": ta, "point": point}).ts
        np.testing.assert_allclose(moved.observations[:, :2], [[2.5, 0], [7.5, 2.5], [5, 5]])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"ts_dimensions": [0]}, r"setting.ts_dimensions: \[0\] given, expected 2"),
            ({"ts_dimensions": [0, 3]}, r"setting.ts_dimensions: \[0, 3\] given, expected numbers from 0 to 2"),
            ({"extent": [[0, 1]]}, r"setting.extent: \[\[0, 1\]\] given, expected a lowest and a highest value"),
            ({"ts_extent": [[1, 1], [0, 1]]}, r"setting.ts_extent: .* expected low < high"),
        ],
    )
    def test_frames_that_make_no_sense(
        self, arguments: dict[str, Any], message: str, parts: dict[str, Trajectories]
    ) -> None:
        ta = parts["point"]
        with pytest.raises(UserError, match=message):
            Mismatch(None, [], "point", "point", dimensions=[0, 1], **arguments).cut({"point": ta})


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

    def test_recipe_names_the_data_wherever_it_is_made(
        self, directions: dict[str, Trajectories], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two machines, of which one rounds otherwise."""
        setting = Examples("left", count=8)

        class Machine(Recipe):
            def __init__(self, place: str, maker: int, rounding: float) -> None:
                self.home, self.maker, self.rounding = tmp_path / place, maker, rounding

            @property
            def parts(self) -> dict[str, Part]:
                return {"directions": Part({"maker": self.maker}, self.make)}

            def make(self, seed: int) -> Trajectories:
                made = directions["directions"]
                observations = made.recording.observations + np.float32(self.rounding)
                return replace(made, recording=replace(made.recording, observations=observations))

        def names(machine: Machine) -> tuple[str, str]:
            monkeypatch.setenv("TAILO_HOME", str(machine.home))
            source = Bundled("made_up", machine)
            return task_recipe(source, setting), task_fingerprint(source, setting)

        here, there, later = names(Machine("a", 1, 0)), names(Machine("b", 1, 1e-3)), names(Machine("a", 2, 0))
        assert here[0] == there[0] and here[1] != there[1]
        assert here[0] != later[0] and here[1] == later[1]
