"""Safe negatives and trajectory weights, against numbers worked out by hand and against a direct sum."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tailo_pl.errors import UserError
from tailo_pl.inputs import weights
from tailo_pl.inputs.negatives import safe_negatives
from tailo_pl.inputs.weights import trajectory_weights


def direct_weights(
    terms: NDArray[np.float64], offsets: NDArray[np.int64], gamma: float, *, repeats: int | None = None
) -> NDArray[np.float64]:
    """the method's sum spelt out: each later term discounted, the last repeated for ever (or `repeats` times)."""
    weights = np.empty(len(terms))
    for start, end in pairwise(offsets):
        for t in range(start, end):
            tail = 1 / (1 - gamma) if repeats is None else math.fsum(gamma**k for k in range(repeats))
            parts = [gamma ** (k - t) * terms[k] for k in range(t, end - 1)]
            weights[t] = math.fsum([*parts, gamma ** (end - 1 - t) * terms[end - 1] * tail])
    return weights / weights.max()


def offsets_of(lengths: list[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *lengths])


@st.composite
def scored_trajectories(draw: st.DrawFn, bound: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    score = st.floats(-bound, bound, allow_nan=False)
    scores = draw(st.lists(score, min_size=sum(lengths), max_size=sum(lengths)))
    return np.array(scores), offsets_of(lengths)


gammas = st.one_of(st.just(0.0), st.floats(0, 0.999), st.sampled_from([5e-324, 1e-12, 0.98, 0.998]))


class TestSafeNegatives:
    def test_quantile_interpolates_between_order_statistics(self) -> None:
        # Sorted means 0, 1, 2, 3, 10. The 0.8-quantile sits at position 0.8*(5-1) = 3.2, i.e. 3 + 0.2*(10-3) = 4.4.
        means = np.array([10.0, 3.0, 0.0, 2.0, 1.0])
        assert safe_negatives(means, 0.8).tolist() == [False, True, True, True, True]
        # The 0.7-quantile sits at 2.8: 2 + 0.8*(3-2) = 2.8, so 3 is not below it.
        assert safe_negatives(means, 0.7).tolist() == [False, False, True, True, True]
        # The 0.75-quantile is the order statistic 3 itself, and "below" is strict.
        assert safe_negatives(means, 0.75).tolist() == [False, False, True, True, True]

    def test_interpolated_value_itself_decides(self) -> None:
        # Sorted -1, 0, 0, 4: the 0.7-quantile is at 2.1, 0 + 0.1*4 = 0.4; "lower" interpolation would give 0 and
        # mark only the first, "higher" or "nearest" rules would agree only by accident at other beta_1.
        assert safe_negatives(np.array([0.0, -1.0, 4.0, 0.0]), 0.7).tolist() == [True, True, False, True]

    def test_ties_at_the_quantile_are_not_safe(self) -> None:
        # Sorted 0, 1, 1, 1, 1: the 0.5-quantile is 1, and only 0 is below it.
        assert safe_negatives(np.array([1.0, 1, 0, 1, 1]), 0.5).tolist() == [False, False, True, False, False]

    @pytest.mark.parametrize("means", [[1.5], [0.1] * 7, [0.0, 0.0, 0.0, 1.0]])
    def test_none_left_is_an_error_that_names_beta_1(self, means: list[float]) -> None:
        # One trajectory; all ties; ties at the bottom (the 0.3-quantile of 0, 0, 0, 1 is 0).
        with pytest.raises(UserError, match=r"beta_1.*no safe negatives"):
            safe_negatives(np.array(means), 0.3)

    @pytest.mark.parametrize("beta_1", [0.0, 1.0, -0.1, 1.5, math.nan])
    def test_beta_1_out_of_range(self, beta_1: float) -> None:
        with pytest.raises(UserError, match="beta_1"):
            safe_negatives(np.arange(5.0), beta_1)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_diverged_scores(self, bad: float) -> None:
        with pytest.raises(UserError, match="not finite"):
            safe_negatives(np.array([0.0, bad, 1.0]), 0.8)

    @given(st.lists(st.integers(-999, 999), min_size=2, max_size=30, unique=True), st.floats(0.01, 0.99))
    def test_share_and_order(self, means: list[int], beta_1: float) -> None:
        values = np.array(means, dtype=np.float64)
        safe = safe_negatives(values, beta_1)
        # Position beta_1*(n-1) in the sorted means: those at smaller positions are below, those at larger are not.
        position = beta_1 * (len(values) - 1)
        assert abs(safe.sum() - math.ceil(position)) <= (abs(position - round(position)) < 1e-6)
        assert values[safe].max() < values[~safe].min()


class TestTrajectoryWeights:
    def test_by_hand(self) -> None:
        # alpha*R = ln of 1, 2, 3 | 4 with gamma 1/2, each last term divided by 1 - 1/2:
        # W_2 = 3*2 = 6, W_1 = 2 + 6/2 = 5, W_0 = 1 + 5/2 = 3.5; the trajectory of one step: 4*2 = 8, the largest.
        scores = np.log([1, 2, 3, 4.0]) / 1.25
        weights = trajectory_weights(scores, np.array([0, 3, 4]), alpha=1.25, gamma=0.5)
        np.testing.assert_allclose(weights, [3.5 / 8, 5 / 8, 6 / 8, 1], rtol=1e-6)
        assert weights.dtype == np.float32

    def test_last_state_is_repeated_for_ever(self) -> None:
        scores = np.array([0.3, -1.0, 0.7, 0.2, 0.1])
        offsets = np.array([0, 3, 5])
        truly_repeated = direct_weights(np.exp(1.25 * scores), offsets, 0.9, repeats=1000)
        weights = trajectory_weights(scores, offsets, alpha=1.25, gamma=0.9)
        np.testing.assert_allclose(weights, truly_repeated, rtol=1e-6)

    def test_a_trajectory_of_equal_scores_has_equal_weights(self) -> None:
        # exp(a)/(1-gamma) = exp(a) + gamma*exp(a)/(1-gamma): nothing is lost at the end of a trajectory.
        weights = trajectory_weights(np.full(6, 0.4), np.array([0, 4, 6]), alpha=2.0, gamma=0.97)
        np.testing.assert_allclose(weights, 1, rtol=1e-6)

    @given(scored_trajectories(bound=4.0), gammas, st.floats(0, 2))
    def test_equal_to_a_direct_sum(
        self, scored: tuple[NDArray[np.float64], NDArray[np.int64]], gamma: float, alpha: float
    ) -> None:
        scores, offsets = scored
        weights = trajectory_weights(scores, offsets, alpha=alpha, gamma=gamma)
        expected = direct_weights(np.exp(alpha * scores), offsets, gamma)
        np.testing.assert_allclose(weights, expected, rtol=1e-5)

    @given(scored_trajectories(bound=800.0), gammas)
    def test_runaway_scores_stay_finite(
        self, scored: tuple[NDArray[np.float64], NDArray[np.int64]], gamma: float
    ) -> None:
        scores, offsets = scored  # alpha*R up to +-1000: exp overflows and underflows float64
        weights = trajectory_weights(scores, offsets, alpha=1.25, gamma=gamma)
        assert np.isfinite(weights).all()
        assert weights.max() == 1
        assert weights.min() >= 0
        # The common factor exp(max) cancels, which makes the direct sum possible.
        expected = direct_weights(np.exp(1.25 * (scores - scores.max())), offsets, gamma)
        np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-12)

    def test_gamma_0_is_each_state_alone(self) -> None:
        scores = np.array([0.0, 1.0, 2.0, -1.0])
        weights = trajectory_weights(scores, np.array([0, 2, 4]), alpha=0.5, gamma=0.0)
        np.testing.assert_allclose(weights, np.exp(0.5 * (scores - 2)), rtol=1e-6)

    def test_trajectories_do_not_leak_into_each_other(self) -> None:
        one = trajectory_weights(np.array([0.0, 1.0, 5.0, 5.0]), np.array([0, 2, 4]), alpha=1, gamma=0.9)
        two = trajectory_weights(np.array([0.0, 1.0, 5.0, 5.0]), np.array([0, 2, 3, 4]), alpha=1, gamma=0.9)
        np.testing.assert_array_equal(one[:2], two[:2])

    @given(scored_trajectories(bound=20.0), gammas, st.floats(0.1, 3))
    def test_probability_sums_c_itself(
        self, scored: tuple[NDArray[np.float64], NDArray[np.int64]], gamma: float, alpha: float
    ) -> None:
        scores, offsets = scored
        weights = trajectory_weights(scores, offsets, alpha=alpha, gamma=gamma, kind="probability")
        expected = direct_weights(10 / (1 + np.exp(-scores)), offsets, gamma)  # whatever alpha is
        np.testing.assert_allclose(weights, expected, rtol=1e-5)

    def test_probability_of_runaway_scores(self) -> None:
        weights = trajectory_weights(
            np.array([-1000.0, 1000.0]), np.array([0, 1, 2]), alpha=1, gamma=0.5, kind="probability"
        )
        assert weights.tolist() == [0, 1]

    def test_float32_scores_are_summed_in_float64(self) -> None:
        scores = np.random.default_rng(0).normal(0, 3, 2000).astype(np.float32)
        offsets = np.array([0, 2000])
        weights = trajectory_weights(scores, offsets, alpha=1.25, gamma=0.998)
        expected = trajectory_weights(scores.astype(np.float64), offsets, alpha=1.25, gamma=0.998)
        np.testing.assert_array_equal(weights, expected)

    @pytest.mark.parametrize("gamma", [1.0, 1.5, -0.01, math.nan])
    def test_gamma_out_of_range(self, gamma: float) -> None:
        with pytest.raises(UserError, match=r"gamma.*\[0, 1\)"):
            trajectory_weights(np.zeros(2), np.array([0, 2]), alpha=1.0, gamma=gamma)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_diverged_scores(self, bad: float) -> None:
        with pytest.raises(UserError, match="not finite"):
            trajectory_weights(np.array([0.0, bad]), np.array([0, 2]), alpha=1.0, gamma=0.9)


@pytest.mark.parametrize("group", [1, 3, 7, 20])
def test_a_few_trajectories_at_a_time(monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    rng = np.random.default_rng(0)
    offsets = np.array([0, 4, 5, 13, 20])
    scores = rng.normal(0, 20, 20)
    whole = trajectory_weights(scores, offsets, alpha=1.25, gamma=0.9)
    monkeypatch.setattr(weights, "GROUP_STEPS", group)
    np.testing.assert_allclose(trajectory_weights(scores, offsets, alpha=1.25, gamma=0.9), whole, rtol=1e-6)
