"""Bundled locomotion data: what it is made of, reproducible, cached, and built in one piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.progress import listener
from tailo_pl.data.recorder import record
from tailo_pl.data.sources import locomotion
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.locomotion import Rollouts, make
from tailo_pl.envs.locomotion import LocomotionTask
from tailo_pl.errors import UserError


def test_random_rollouts_fill_the_asked_number_of_steps_with_whole_episodes_but_the_last() -> None:
    told: list[tuple[str, int, int]] = []
    token = listener.set(lambda *what: told.append(what))
    try:
        made = make("hopper", "random", [Rollouts(None, 1.0, "random", steps=2000)], False, seed=0)
    finally:
        listener.reset(token)
    assert made.steps == 2000
    recording = made.recording
    assert recording.terminals is not None
    ends = made.offsets[1:] - 1
    assert recording.terminals[ends[:-1]].all()  # random hoppers fall
    assert recording.terminals.sum() - recording.terminals[-1] == len(made) - 1  # and nothing else ends an episode
    assert np.abs(made.actions).max() <= 1 and np.abs(made.actions).max() > 0.99
    assert told[-1][0] == "hopper random" and told[-1][1] >= 2000 and told[-1][2] == 2000


def test_same_seed_same_data_other_seed_other_data() -> None:
    part = [Rollouts("hopper", 0.4, "expert", episodes=2)]
    one, two, other = (make("hopper", "expert", part, False, seed) for seed in (0, 0, 1))
    assert np.array_equal(one.observations, two.observations) and np.array_equal(one.actions, two.actions)
    assert not np.array_equal(one.observations[:100], other.observations[:100])
    assert one.origins.tolist() == ["expert", "expert"]


def test_an_expert_walks_and_its_rewards_are_recorded() -> None:
    made = make("hopper", "expert", [Rollouts("hopper", 0.0, "expert", episodes=1)], False, seed=0)
    assert made.returns[0] > 3000


def test_padded_ant_has_111_numbers_of_which_84_are_zero() -> None:
    part = [Rollouts(None, 1.0, "random", steps=50)]
    padded, plain = make("ant", "random", part, True, 0), make("ant", "random", part, False, 0)
    assert padded.observations.shape == (50, 111) and plain.observations.shape == (50, 27)
    assert (padded.observations[:, 27:] == 0).all()
    assert np.array_equal(padded.observations[:, :27], plain.observations)


def test_parts_of_a_task() -> None:
    for task in locomotion.TASKS:
        assert {"expert", "medium", "medium-replay", "medium-expert", "random"} <= set(locomotion.parts(task))
    replay = locomotion.parts("hopper")["medium-replay"]
    assert len({(one.policy, one.noise_share) for one in replay}) >= 3


def test_identity_follows_seed_policy_and_simulator() -> None:
    identity = Bundled("hopper").identity("expert")
    assert identity != Bundled("hopper", seed=1).identity("expert")
    assert identity != Bundled("walker2d").identity("expert")
    assert "mujoco" in identity and "sha256" in str(identity)


def test_unknown_part_and_env_are_one_line() -> None:
    with pytest.raises(UserError, match="no part 'exprt' for env hopper, expected one of expert"):
        Bundled("hopper").part("exprt")
    with pytest.raises(UserError, match="env 'hoper' given, expected one of pointmaze, hopper"):
        Bundled("hoper")


def test_an_interrupted_build_leaves_nothing_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path))

    def interrupt(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    token = listener.set(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            Bundled("hopper").part("expert")
    finally:
        listener.reset(token)
    assert not list(tmp_path.rglob("manifest.json"))


def test_recording_keeps_the_order_of_the_seeds_whatever_the_rows() -> None:
    recordings = []
    for rows in (1, 3):
        simulator = LocomotionTask("hopper").simulator(rows)
        recordings.append(record(simulator, lambda states: np.zeros((len(states), 3)), [5, 6, 7, 8]))
        simulator.close()
    assert np.array_equal(recordings[0].observations, recordings[1].observations)
    assert np.array_equal(recordings[0].starts, recordings[1].starts)
