"""Batches are a pure function of (seed, stage, step)."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.batches.loaders import StepLoader
from tailo_pl.data.draws import ProportionalRows, StepGenerator, rank_share, uniform_rows


def rows(seed: int, stage: str, step: int, size: int = 64) -> list[int]:
    return uniform_rows(10_000, size, StepGenerator(seed, stage).at(step)).tolist()


class TestStepGenerator:
    def test_the_same_step_gives_the_same_rows_whatever_came_before(self) -> None:
        generator = StepGenerator(3, "policy")
        forwards = [uniform_rows(1000, 16, generator.at(step)).tolist() for step in range(5)]
        backwards = [uniform_rows(1000, 16, generator.at(step)).tolist() for step in reversed(range(5))]
        assert forwards == backwards[::-1]
        assert forwards[4] == uniform_rows(1000, 16, StepGenerator(3, "policy").at(4)).tolist()

    def test_seed_stage_and_step_each_matter(self) -> None:
        assert rows(0, "policy", 0) == rows(0, "policy", 0)
        drawn = [
            tuple(rows(seed, stage, step))
            for seed in range(5)
            for stage in ("pretrain", "formal", "policy")
            for step in range(20)
        ]
        assert len(set(drawn)) == len(drawn)

    def test_seed_and_stage_are_told_apart(self) -> None:
        assert rows(1, "1/x", 0) != rows(11, "/x", 0)
        assert rows(1, "x", 0) != rows(-1, "x", 0)

    def test_no_two_steps_of_a_stage_share_their_numbers(self) -> None:
        generator = StepGenerator(0, "policy")
        drawn = {tuple(torch.rand(4, generator=generator.at(step)).tolist()) for step in range(5000)}
        assert len(drawn) == 5000

    def test_the_global_generator_is_left_alone(self) -> None:
        before = torch.random.get_rng_state()
        rows(0, "policy", 0)
        ProportionalRows(torch.ones(3))(10, StepGenerator(0, "policy").at(0))
        assert torch.equal(before, torch.random.get_rng_state())

    @pytest.mark.parametrize("step", [0, 1, 2**31, 2**40])
    @pytest.mark.parametrize("seed", [0, -1, 2**63])
    def test_any_seed_and_step(self, seed: int, step: int) -> None:
        assert rows(seed, "policy", step) == rows(seed, "policy", step)


class TestRows:
    def test_uniform_frequencies(self) -> None:
        generator = StepGenerator(0, "policy").at(0)
        counts = torch.bincount(uniform_rows(8, 80_000, generator), minlength=8)
        # Standard deviation of each count: sqrt(80000 * 1/8 * 7/8) = 94
        assert (counts - 10_000).abs().max() < 5 * 94

    def test_proportional_frequencies(self) -> None:
        weights = torch.tensor([0.0, 0.1, 0.0, 0.4, 0.5, 0.0, 1.0, 0.0])
        drawn = ProportionalRows(weights)(200_000, StepGenerator(0, "policy").at(0))
        shares = torch.bincount(drawn, minlength=8) / 200_000
        # Standard deviation of a share: at most sqrt(0.25/200000) = 0.0011
        torch.testing.assert_close(shares, weights / 2, atol=0.0056, rtol=0)
        assert shares[weights == 0].sum() == 0

    def test_weights_of_very_different_size(self) -> None:
        # One row of weight 1, then 2^20 rows of 2^-26, together 1/64. Above 1, float32 counts in steps of 2^-23:
        # a sum in float32 would grow only at every eighth row and never draw the others.
        weights = torch.full((2**20 + 1,), 2.0**-26)
        weights[0] = 1.0
        drawn = ProportionalRows(weights)(50_000, StepGenerator(0, "policy").at(0))
        small = drawn[drawn > 0]
        assert len(small) / 50_000 == pytest.approx(1 / 65, rel=0.2)  # standard deviation 3.6 %
        assert set((small % 8).tolist()) == set(range(8))
        assert small.double().mean().item() == pytest.approx(2**19, rel=0.1)

    @given(
        st.lists(st.sampled_from([0.0, 0.0, 1e-30, 0.5, 1.0]), min_size=1, max_size=20).filter(any), st.integers(0, 99)
    )
    def test_rows_of_weight_zero_are_never_drawn(self, weights: list[float], step: int) -> None:
        drawn = ProportionalRows(torch.tensor(weights))(256, StepGenerator(0, "policy").at(step))
        assert all(weights[row] > 0 for row in drawn)

    @given(st.integers(1, 400), st.integers(0, 99))
    def test_the_row_is_where_the_point_falls_in_the_sum_of_all(self, count: int, step: int) -> None:
        # Multiples of 1/8 add up exactly, so blocks cannot hide behind rounding.
        weights = torch.randint(0, 9, (count,), generator=torch.Generator().manual_seed(count)) / 8
        weights[count // 2] = 1.0
        drawn = ProportionalRows(weights)(128, StepGenerator(0, "policy").at(step))
        cumulative = weights.double().cumsum(0)
        points = torch.rand(128, generator=StepGenerator(0, "policy").at(step), dtype=torch.float64) * cumulative[-1]
        assert torch.equal(drawn, torch.searchsorted(cumulative, points, right=True))

    def test_points_exactly_on_an_edge(self) -> None:
        # Weights of the smallest float: the points can only be 0, 1 or 2 of it, all of them edges between rows.
        weights = torch.tensor([0, 5e-324, 0, 5e-324], dtype=torch.float64)
        drawn = ProportionalRows(weights)(256, StepGenerator(0, "policy").at(0))
        assert set(drawn.tolist()) == {1, 3}


@given(st.integers(0, 40), st.integers(1, 7))
def test_rank_shares_partition_the_batch(size: int, ranks: int) -> None:
    batch = torch.randperm(size)
    shares = [rank_share(batch, rank, ranks) for rank in range(ranks)]
    assert sorted(torch.cat(shares).tolist()) == list(range(size))
    lengths = [len(share) for share in shares]
    assert max(lengths) - min(lengths) <= 1


def test_loader_starts_where_the_trainer_is() -> None:
    at = 0
    loader = StepLoader(lambda step: 10 * step, lambda: at)
    assert list(islice(loader, 3)) == [0, 10, 20]
    at = 7
    assert list(islice(loader, 3)) == [70, 80, 90]
