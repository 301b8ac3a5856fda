"""Whether TS and TA fit together: mistakes are named with numbers, right data is left alone, samples are enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailo_pl.data import likeness
from tailo_pl.data.fit import check_fit
from tailo_pl.data.likeness import Sample, nearest, some_states
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError
from tailo_pl.models.yardsticks import weight_numbers


def trajectories(states: Any, length: int) -> Trajectories:
    return Trajectories.of(Recording(np.asarray(states), np.arange(0, len(states), length)))


@pytest.fixture(scope="module")
def walks() -> np.ndarray:
    """A hundred walks of thirty steps from one place to as many others, in five numbers of quite different sizes."""
    rng = np.random.default_rng(0)
    ends = rng.uniform(0.2, 1, (100, 1, 5)) * [1, -1, 2, 0.3, -3]
    return (np.linspace(0, 1, 30)[None, :, None] * ends + rng.normal(0, 0.02, (100, 30, 5))).reshape(-1, 5)


@pytest.fixture(scope="module")
def ta(walks: np.ndarray) -> Trajectories:
    return trajectories(walks, 30)


def refused(ts: Any, ta: Trajectories) -> str:
    with pytest.raises(UserError) as caught:
        check_fit(Task(trajectories(ts, len(ts)), ta), trust=False)
    text = str(caught.value)
    assert "\n" not in text and text.endswith("; source.trust=true trains on it all the same")
    assert check_fit(Task(trajectories(ts, len(ts)), ta), trust=True)[0] == text.rpartition("; source.trust")[0]
    return text


def test_what_ta_has_seen_is_worth_no_remark(walks: np.ndarray, ta: Trajectories) -> None:
    assert check_fit(Task(trajectories(walks[300:330], 30), ta), trust=False) == []
    assert check_fit(Task(trajectories(walks[329:330], 1), ta), trust=False) == []  # a single state
    ahead = walks[300:330] + np.random.default_rng(1).normal(0, 0.02, (30, 5))  # the same walk another time
    assert check_fit(Task(trajectories(ahead, 30), ta), trust=False) == []


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (np.degrees, "degrees where TA has radians in all dimensions"),
        (
            lambda s: s * [1, 1000, 1, 1000, 1],
            "thousandths of TA's unit (mm for m, ms for s) in 2 of 5 dimensions (1, 3)",
        ),
        (lambda s: s * [-1, 1, -1, 1, 1], "the other sign in 2 of 5 dimensions (0, 2)"),
        (lambda s: s[:, [4, 0, 1, 2, 3]], "another order of all dimensions"),
    ],
)
def test_a_mistake_is_named(mistake: Any, words: str, walks: np.ndarray, ta: Trajectories) -> None:
    text = refused(mistake(walks[315:330]), ta)
    assert text.startswith("TS: TA comes near 0% of its states, expected most (half are farther than ")
    assert f"it would be 100% if TS had {words}: is that so" in text


def test_where_nobody_has_been(walks: np.ndarray, ta: Trajectories) -> None:
    far = refused(walks[320:330] + np.array([4.0, 7.0, 0.0, 0.0, 9.0]), ta)
    assert "an offset in 3 of 5 dimensions (0, 1, 4): is that so, or do the logs not show what TS shows?" in far
    (line,) = check_fit(Task(trajectories(walks[320:330] * 1.6, 10), ta), trust=False)  # off the way, and not by far
    assert line.startswith("TS: TA comes near ") and "expected most" in line


def test_an_offset_is_named_and_not_refused(walks: np.ndarray, ta: Trajectories) -> None:
    """It may be one, or something that the logs never do."""
    ts = walks[315:330] + np.array([0.0, 0.0, 0.0, 0.8, 0.0])
    (line,) = check_fit(Task(trajectories(ts, 15), ta), trust=False)
    assert line.startswith("TS: TA comes near 0% of its states")
    assert "it would be 100% if TS had an offset in 1 of 5 dimensions (3): is that so, or do the logs not" in line


def test_too_little_of_ta_to_say_anything(walks: np.ndarray) -> None:
    assert check_fit(Task(trajectories(np.degrees(walks[:30]), 30), trajectories(walks[:90], 30)), trust=False) == []


def test_another_sampling_rate(walks: np.ndarray, ta: Trajectories) -> None:
    ts = np.concatenate([walks[300:330:10], walks[600:630:10], walks[900:930:10], walks[1200:1230:10]] * 2)
    (line,) = check_fit(Task(trajectories(ts, 3), ta), trust=False)
    assert line.endswith("recorded at another rate, or in no order?")


def test_constant_dimensions_do_not_count(walks: np.ndarray) -> None:
    wide = np.concatenate([walks, np.zeros((len(walks), 3))], axis=1)
    ts = wide[315:330].copy()
    assert check_fit(Task(trajectories(ts, 15), trajectories(wide, 30)), trust=False) == []
    ts[:, :5] = np.degrees(ts[:, :5])
    assert "degrees where TA has radians in all dimensions" in refused(ts, trajectories(wide, 30))


def test_only_what_the_method_compares(walks: np.ndarray, ta: Trajectories) -> None:
    """An expert with another body may tell two numbers of a state; the others mean nothing."""
    ts = walks[315:330].copy()
    ts[:, 2:] = 1e3
    assert check_fit(Task(trajectories(ts, 15), ta, compared=(0, 1)), trust=False) == []
    assert "TA comes near 0%" in refused(ts, ta)


def test_a_policy_is_judged_by_what_the_method_compares(walks: np.ndarray, ta: Trajectories) -> None:
    ts = walks[300:330].copy()
    ts[:, 2:] = 1e3
    task, weights = Task(trajectories(ts, 30), ta), np.repeat(np.arange(100) == 10, 30).astype(np.float32)
    everything, two = weight_numbers(task, weights), weight_numbers(replace(task, compared=(0, 1)), weights)
    assert (everything["covered"], everything["followed"]) == (0, 0)
    assert (two["covered"], two["followed"]) == (1, 1)


def test_weight_where_logs_begin_is_told_apart(walks: np.ndarray, ta: Trajectories) -> None:
    """A state that only the right log visits late weighs most: at first all logs weigh the same, whichever is right."""
    task, weights = Task(trajectories(walks[300:330], 30), ta), np.full((100, 30), 1e-4, np.float32)
    weights[10, 20:] = 1
    late = weight_numbers(task, weights.ravel())
    weights[10] = 1
    whole = weight_numbers(task, weights.ravel())
    assert late["followed"] > 0.9 and late["followed_at_first"] < 0.1  # one log of a hundred
    assert whole["followed"] > 0.9 and whole["followed_at_first"] > 0.9


ODD: dict[str, Any] = {
    "a single state of TS": lambda walks: (walks[329:330], walks, 30),
    "two logs": lambda walks: (walks[:30], walks[:60], 30),
    "steps that are all the same": lambda walks: (walks[:30], np.tile(walks[0], (600, 1)), 30),
    "one number, constant": lambda walks: (np.zeros((30, 1)), np.zeros((600, 1)), 30),
    "one dimension that varies": lambda walks: (walks[:30] * [1, 0, 0, 0, 0], walks * [1, 0, 0, 0, 0], 30),
    "numbers near the end of float32": lambda walks: (walks[:30] * 1e37, walks * 1e37, 30),
    "logs of one step": lambda walks: (walks[:30], walks, 1),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("carrying", ["all alike", "one step", "nothing"])
@pytest.mark.filterwarnings("error")
def test_odd_data_has_numbers_too(odd: str, carrying: str, walks: np.ndarray) -> None:
    ts, states, length = ODD[odd](walks)
    task = Task(trajectories(ts.astype(np.float32), len(ts)), trajectories(states.astype(np.float32), length))
    weights = np.full(len(states), 1.0 if carrying == "all alike" else 0.0, np.float32)
    weights[5] = float(carrying != "nothing")
    numbers = weight_numbers(task, weights)
    assert all(np.isfinite(value) for value in numbers.values())
    assert all(0 <= numbers[name] <= 1 for name in ("covered", "followed", "followed_at_first"))
    assert all("\n" not in line for line in check_fit(task, trust=True))


def test_repeated_logs_are_not_infinitely_close(walks: np.ndarray) -> None:
    """TA that holds one walk a hundred times has no spacing of its own; a walk beside it is still one of its kind."""
    ta = trajectories(np.tile(walks[300:330], (100, 1)), 30)
    ts = walks[300:330] + 0.01 * walks[300:330].std(0)
    assert check_fit(Task(trajectories(ts, 30), ta), trust=False) == []


def test_a_sample_is_enough(walks: np.ndarray, ta: Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Sample.of(ta).covers(some_states(trajectories(walks[300:330], 30)))
    part = Sample.of(ta, count=1000)
    assert len(part.states) == 1000
    assert abs(part.covers(walks[300:330]) - whole) < 0.1
    monkeypatch.setattr(likeness, "_BLOCK", 2000)  # a row at a time
    assert Sample.of(ta, count=1000).covers(walks[300:330]) == part.covers(walks[300:330])


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(2, 40), st.integers(1, 6), st.integers(0, 1000))
def test_nearest_is_the_nearest(queries: int, points: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    few, many = (rng.normal(3, 1, (count, width)).astype(np.float32) for count in (queries, points))
    own, groups = rng.integers(0, 3, queries), rng.integers(0, 3, points)
    apart = np.sqrt(np.square(few[:, None].astype(float) - many[None]).sum(-1))
    distances, at = nearest(few, many)
    np.testing.assert_allclose(distances, apart.min(1), atol=1e-3)
    np.testing.assert_allclose(distances, apart[np.arange(queries), at], atol=1e-6)
    others, _ = nearest(few, many, own, groups)
    np.testing.assert_allclose(others, np.where(own[:, None] == groups, np.inf, apart).min(1), atol=1e-3)
