"""The bundled kitchen data in small: which sequences there are, what is recorded of them, in both layouts."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import pytest

from tailo_pl.data.progress import listener
from tailo_pl.data.sources.kitchen import (
    EXPERT,
    OTHERS,
    Episode,
    KitchenRecipe,
    complete_episodes,
    mixed_episodes,
)
from tailo_pl.data.sources.kitchen_recording import make
from tailo_pl.envs.kitchen import done, goal_numbers, positions
from tailo_pl.envs.kitchen_tasks import SUBTASKS
from tailo_pl.errors import UserError
from tailo_pl.experts.kitchen.disturbances import CALM, Disturbances


def test_the_sequences_of_the_mixed_part() -> None:
    episodes = mixed_episodes(220, 10, seed=0)
    orders = [episode.order for episode in episodes]
    assert orders[:220] == [EXPERT] * 220
    assert len(orders) == 560
    assert len(set(orders)) == 35
    assert len({episode.seed for episode in episodes}) == 560
    assert {name for order in orders for name in order} == set(SUBTASKS)
    for order in OTHERS:  # the open door of the hinge cabinet is in the slide's way
        assert "hinge cabinet" not in order[:-1]
    assert mixed_episodes(220, 10, seed=1) != episodes


def test_what_is_recorded() -> None:
    told: list[tuple[str, int, int]] = []
    token = listener.set(lambda *progress: told.append(progress))
    try:
        pair = [Episode(("kettle",), 3), Episode(("light switch",), 4)]
        both = make("mixed", pair, "robotics", Disturbances(), 0.1)
    finally:
        listener.reset(token)
    assert told == [("kitchen mixed", 280, 560), ("kitchen mixed", 560, 560)]
    assert both.observations.shape[1] == 59
    assert both.actions.shape[1] == 9
    assert np.abs(both.actions).max() <= 1
    assert both.returns.tolist() == [1, 1]
    assert both.origins.tolist() == ["other", "other"]
    terminals = both.recording.terminals
    assert terminals is not None
    assert np.flatnonzero(terminals).tolist() == (both.offsets[1:] - 1).tolist()
    # An episode is the same whoever plays it, and in whichever layout it is kept.
    alone = make("mixed", pair[1:], "d4rl", Disturbances(), 0.1)
    assert alone.observations.shape[1] == 60
    np.testing.assert_array_equal(alone.observations[:, :30], positions(both.take([1]).observations, "robotics"))
    np.testing.assert_allclose(alone.observations[:, 30:], np.tile(goal_numbers("mixed"), (alone.steps, 1)), rtol=1e-6)
    np.testing.assert_array_equal(alone.actions, both.take([1]).actions)


def test_the_expert_does_its_four_in_order() -> None:
    expert = make("complete", complete_episodes(1, seed=0), "d4rl", CALM, 0.0)
    assert expert.origins.tolist() == ["expert"]
    assert 150 < expert.steps < 220  # the paper's has 184 states
    reached = done(positions(expert.observations, "d4rl"))
    steps = [int(reached[:, SUBTASKS.index(name)].argmax()) for name in EXPERT]
    assert steps == sorted(steps)
    assert steps[0] > 0
    assert not reached[:, [name not in EXPERT for name in SUBTASKS]].any()
    assert expert.returns.tolist() == [4]


def test_the_cache_goes_by_everything_that_decides_the_data() -> None:
    parts = KitchenRecipe().parts
    assert set(parts) == {"mixed", "complete"}
    assert parts["mixed"].identity["mujoco"] == version("mujoco")
    for name, changed in (("mixed", {"others": 9}), ("complete", {"complete": 2}), ("mixed", {"layout": "d4rl"})):
        assert KitchenRecipe(**changed).parts[name].identity != parts[name].identity  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"env\.data\.experts: 0"):
        KitchenRecipe(experts=0)
