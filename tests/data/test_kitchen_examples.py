"""Examples of a subtask: which states qualify, in both layouts, and when subtasks were done in trajectories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.kitchen_examples import KitchenExamples
from tailo_pl.data.settings import Task
from tailo_pl.data.timeline import Timeline
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs.kitchen import Kitchen, laid_out
from tailo_pl.envs.kitchen_tasks import SUBTASKS, Layout
from tailo_pl.errors import UserError

KETTLE, MICROWAVE = 23 + 9, 22 + 9  # columns of FrankaKitchen's layout
KETTLE_GOAL = [-0.23, 0.75, 1.62, 0.99, 0.0, 0.0, -0.06]


def data(layout: Layout) -> Trajectories:
    """Two trajectories of 5 states. In the first the kettle is done from state 2 on, in the second from the start;
    the microwave is done at the last state of the second only, and only just."""
    states = np.zeros((10, 59), dtype=np.float32)
    states[:, 0] = np.arange(10)  # tells them apart
    for row in (2, 3, 4, 5, 6, 7, 8, 9):
        states[row, KETTLE : KETTLE + 7] = KETTLE_GOAL
    states[1, KETTLE : KETTLE + 7] = [-0.23, 0.44, 1.62, 0.99, 0.0, 0.0, -0.06]  # 0.31 away
    states[9, MICROWAVE] = -0.46  # 0.29 away
    return Trajectories.of(Recording(laid_out(states, layout, "mixed"), np.array([0, 5])), ["expert", "other"])


@pytest.mark.parametrize("layout", ["robotics", "d4rl"])
def test_examples_are_the_states_before_one_that_is_done(layout: Layout) -> None:
    task = KitchenExamples("kettle", layout, count=7).cut({"mixed": data(layout)})
    # The last state of a trajectory has none behind it, even where the next trajectory begins done.
    assert sorted(task.ts.observations[:, 0].tolist()) == [1, 2, 3, 5, 6, 7, 8]
    assert task.ta.steps == 10
    one = KitchenExamples("microwave", layout, count=1).cut({"mixed": data(layout)})
    assert one.ts.observations[:, 0].tolist() == [8]


def test_the_draw_is_the_seeds() -> None:
    def drawn(seed: int) -> list[float]:
        setting = KitchenExamples("kettle", count=3, seed=seed)
        return setting.cut({"mixed": data("robotics")}).ts.observations[:, 0].tolist()

    assert drawn(0) == drawn(0)
    assert len({tuple(drawn(seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subtask": "oven"}, "setting.subtask: 'oven' given, expected one of microwave"),
        ({"subtask": "kettle", "count": 8}, "setting.count: 8 examples of kettle asked for, but only 7 states"),
        ({"subtask": "kettle", "layout": "d4rl"}, "setting.layout: d4rl given, of 60 numbers, but states have 59"),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        KitchenExamples(**arguments).cut({"mixed": data("robotics")})  # type: ignore[arg-type]


def test_when_subtasks_were_done(tmp_path: Path) -> None:
    whole = data("robotics")
    timeline = Timeline.of(Task(ts=whole.take([1]), ta=whole), Kitchen())
    expected = np.full((2, len(SUBTASKS)), -1)
    expected[:, SUBTASKS.index("kettle")] = [2, 0]
    expected[1, SUBTASKS.index("microwave")] = 4
    np.testing.assert_array_equal(timeline.ta, expected)
    np.testing.assert_array_equal(timeline.ts, expected[1:])
    timeline.write(tmp_path / "subtasks.npz")
    again = Timeline.read(tmp_path / "subtasks.npz")
    assert again.names.tolist() == list(SUBTASKS)
    np.testing.assert_array_equal(again.ta, expected)
    (tmp_path / "subtasks.npz").write_bytes(b"PK\x03\x04 damaged")
    with pytest.raises(UserError, match=r"subtasks\.npz: cannot be read as the subtasks"):
        Timeline.read(tmp_path / "subtasks.npz")
