"""Comparing methods with few runs: values worked out by hand, and what must hold for any scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.report.statistics import (
    interquartile_estimate,
    interquartile_mean,
    probability_of_improvement,
)

numbers = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6).map(np.array)
tasks = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3)


def test_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([8.0, 1, 2, 7, 3, 6, 4, 5])) == 4.5  # of 3, 4, 5, 6
    assert interquartile_mean(np.array([-1000.0, 1, 2, 1000])) == 1.5
    assert interquartile_mean(np.array([0.0, 10, 50])) == 20  # too few to leave any out
    assert interquartile_mean(np.array([[0.0, 1, 2, 9], [5, 5, 5, 5]])).tolist() == [1.5, 5]


def test_interval_is_that_of_all_draws_of_the_seeds() -> None:
    # Draws of two seeds from {0, 1}: means 0, 1/2, 1 with chances 1/4, 1/2, 1/4: 95 % reaches from 0 to 1.
    assert interquartile_estimate([np.array([0.0, 1.0])]) == (0.5, (0.0, 1.0))
    # Stratified: a task with one outcome stays what it is, however the other is drawn.
    value, interval = interquartile_estimate([np.array([0.0, 1.0]), np.array([4.0, 4.0])])
    assert value == 2.5 and interval == (2.0, 2.5)  # the middle two of (0 or 1, 0 or 1, 4, 4)


def test_one_seed_per_task_gives_no_interval() -> None:
    assert interquartile_estimate([np.array([3.0]), np.array([5.0])]) == (4.0, None)
    assert probability_of_improvement([np.array([3.0])], [np.array([2.0])]) == (1.0, None)


def test_probability_of_improvement_counts_pairs_and_half_of_ties() -> None:
    ours, theirs = np.array([1.0, 3.0]), np.array([2.0, 3.0])
    assert probability_of_improvement([ours], [theirs]).value == 1.5 / 4
    sure = np.array([9.0, 9.0])
    assert probability_of_improvement([ours, sure], [theirs, theirs]).value == pytest.approx((1.5 / 4 + 1) / 2)
    assert probability_of_improvement([sure], [theirs]).interval == (1.0, 1.0)


@given(tasks)
def test_estimates_lie_where_they_can(scores: list[tuple[np.ndarray, np.ndarray]]) -> None:
    ours, theirs = [one for one, _ in scores], [other for _, other in scores]
    everything = np.concatenate(ours)
    value, interval = interquartile_estimate(ours, replicates=50)
    for number in (value, *(interval or ())):
        assert everything.min() - 1e-9 <= number <= everything.max() + 1e-9
    forth, back = (probability_of_improvement(*pair, replicates=50) for pair in ((ours, theirs), (theirs, ours)))
    assert forth.value + back.value == pytest.approx(1)
    assert forth.interval is None or 0 <= forth.interval[0] <= forth.interval[1] <= 1 + 1e-9
