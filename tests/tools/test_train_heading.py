"""Training the heading policy, very small: all phases run, and a run that was stopped goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailo_pl.experts import NpzPolicy, load_expert
from tools.train_heading import Drill, Phase, main, train


def test_phases_run_and_go_on_after_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = [Phase("jump", 60), Phase("turn", 20)]
    half = train(tmp_path, first, rows=2, steps=10, seed=0)
    assert len(capsys.readouterr().out.splitlines()) == 4
    whole = train(tmp_path, [*first, Phase("maze", 60)], rows=2, steps=10, seed=0)
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told] == ["maze 5/7", "maze 6/7", "maze 7/7"]
    saved = NpzPolicy.load(tmp_path / "heading.npz")
    np.testing.assert_array_equal(saved.weights[0], whole.weights[0])
    assert not np.array_equal(half.weights[0], whole.weights[0])
    start = load_expert("ant")
    assert (saved.observation_dim, saved.action_dim) == (start.observation_dim, start.action_dim)


def test_nothing_is_left_to_do_when_all_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path), "--share", "0.00001", "--rows", "2", "--steps", "4"]
    main(arguments)
    capsys.readouterr()
    main(arguments)
    assert capsys.readouterr().out == ""


def test_headings_turn_slowly_where_they_should() -> None:
    drill = Drill("turn", 8, np.random.default_rng(0))
    for _ in range(20):
        before = drill.headings.copy()
        drill.act(np.zeros((8, 8), dtype=np.float32))
        drill.command()
        assert np.abs(drill.headings - before).max() <= 0.15 + 1e-9
    drill.close()


def test_walking_ahead_is_worth_more_than_aside() -> None:
    """Hand-computed: 1 m/s ahead is worth 1, aside -0.3, and standing upright 1."""
    drill = Drill("turn", 2, np.random.default_rng(0))
    drill.headings = np.array([0.0, np.pi / 2])
    pose = drill.model.qpos0.copy()
    pose[2] = 2.0  # in the air, so that nothing slows it down
    for row in (0, 1):
        drill._begin(row, pose, np.array([1.0] + [0.0] * 13))
    rewards, ended, _ = drill.act(np.zeros((2, 8), dtype=np.float32))
    np.testing.assert_allclose(rewards, [2.0, 0.7], atol=0.02)
    assert not ended.any()
    drill.close()
