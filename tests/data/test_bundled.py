"""Bundled locomotion data: what it is made of, reproducible, cached, and built in one piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.commands.catalogue import list_data
from tailo_pl.data.progress import listener
from tailo_pl.data.recorder import record
from tailo_pl.data.sources import antmaze, kitchen, locomotion, pointmaze
from tailo_pl.data.sources.bundled import Bundled
from tailo_pl.data.sources.locomotion import LocomotionRecipe, Rollouts, make
from tailo_pl.envs.locomotion import Locomotion
from tailo_pl.errors import UserError

CACHED = {
    "ant/expert": "1616422585d08e9d",
    "ant/medium": "ba49fe7ee362575d",
    "ant/medium-expert": "04a7468516cefbb2",
    "ant/medium-replay": "0362d02a8c91feca",
    "ant/mismatch": "f836982b980eb24a",
    "ant/random": "fc1278cfe1e98fd7",
    "antmaze/demonstration": "0fe8b98669f41fb5",
    "antmaze/diverse": "c09e689f712026a2",
    "antmaze/goal": "b67725c6b327cd9d",
    "antmaze/point": "2a79ba59e9478cdd",
    "antmaze/random": "89dc148ff7fbef08",
    "halfcheetah/expert": "54ddd77df47c340a",
    "halfcheetah/medium": "8406a2c2f325446b",
    "halfcheetah/medium-expert": "0248f12ab8aa59de",
    "halfcheetah/medium-replay": "d94ecaebb5371597",
    "halfcheetah/mismatch": "e0069edb46c9a39d",
    "halfcheetah/random": "4d0d5ff08f34a9ce",
    "hopper/expert": "4948515741f4f3e6",
    "hopper/medium": "053f1d5cd543834b",
    "hopper/medium-expert": "daf3acc48ec90e30",
    "hopper/medium-replay": "942e6c754c3363f7",
    "hopper/random": "74c37fe99e133153",
    "kitchen/complete": "79e094dcf1c43827",
    "kitchen/mixed": "a9d01b1f3f215587",
    "pointmaze/directions": "7d802e9b64d38ee5",
    "walker2d/expert": "5c977ecfac4f08d7",
    "walker2d/medium": "d336ff6fec9839ab",
    "walker2d/medium-expert": "762257c6a9ab6e8a",
    "walker2d/medium-replay": "a4a0dc244932b8a2",
    "walker2d/random": "ed225fd6c0cd7cfd",
}


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
    identity = Bundled("hopper", LocomotionRecipe("hopper")).identity("expert")
    assert identity != Bundled("hopper", LocomotionRecipe("hopper"), seed=1).identity("expert")
    assert identity != Bundled("walker2d", LocomotionRecipe("walker2d")).identity("expert")
    assert "mujoco" in identity and "sha256" in str(identity)


def test_entries_of_the_cache_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """People's data is not made again: names as they were when data was first made with these versions."""
    versions = {"mujoco": "3.10.0", "gymnasium": "1.4.0", "gymnasium-robotics": "1.4.2"}
    for module in (antmaze, kitchen, locomotion, pointmaze):
        monkeypatch.setattr(module, "version_of", versions.__getitem__)
    names = {entry.name: Path(entry.path).name.rsplit("-", 1)[1] for entry in list_data("bundled")}
    assert names == CACHED
    plain = Bundled("ant", LocomotionRecipe("ant"))
    assert plain.folder("expert").name == "ant-expert-227a9b7a8a338a09"


def test_a_smooth_expert_is_data_of_its_own() -> None:
    stock, smooth = (LocomotionRecipe("halfcheetah", smooth=share).parts for share in (0, 3))
    differ = {name for name in stock if stock[name].identity != smooth[name].identity}
    assert differ == {"expert", "medium-expert"}
    few = [replace(one, episodes=2) for one in locomotion.parts("halfcheetah", 3)["expert"]]
    actions = make("halfcheetah", "expert", few, padded=False, seed=0).recording.actions
    clipped = [replace(one, episodes=2) for one in locomotion.parts("halfcheetah")["expert"]]
    others = make("halfcheetah", "expert", clipped, padded=False, seed=0).recording.actions
    assert np.abs(actions).max() <= 1
    # Its own tanh saturates where it is far out; noise behind the tanh is clipped at every second step there.
    inside = [float((np.abs(part) < 1 - 1e-6).mean()) for part in (actions, others)]
    assert inside[0] > inside[1]


@pytest.mark.parametrize(
    ("task", "smooth", "message"),
    [
        ("hopper", 3.0, r"env\.data\.smooth: 3 given, but the expert of hopper has no tanh, expected 0"),
        ("halfcheetah", -1.0, r"env\.data\.smooth: -1"),
    ],
)
def test_a_smooth_expert_that_cannot_be_is_one_line(task: str, smooth: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LocomotionRecipe(task, smooth=smooth)


@pytest.mark.parametrize(
    ("leg", "message"),
    [
        (2, r"leg: 2 given, but no expert.*expected 4 \(tools/train_expert\.py ant --body crippled-leg-2"),
        (5, "leg: 5 given"),
    ],
)
def test_a_leg_without_an_expert_is_one_line(leg: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LocomotionRecipe("ant", leg=leg)


def test_unknown_part_and_task_are_one_line() -> None:
    with pytest.raises(UserError, match="no part 'exprt' for env hopper, expected one of expert"):
        Bundled("hopper", LocomotionRecipe("hopper")).part("exprt")
    with pytest.raises(UserError, match=r"env\.data: task 'hoper' given, expected one of hopper, halfcheetah"):
        LocomotionRecipe("hoper")


def test_an_interrupted_build_leaves_nothing_that_looks_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path))

    def interrupt(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    token = listener.set(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            Bundled("hopper", LocomotionRecipe("hopper")).part("expert")
    finally:
        listener.reset(token)
    assert not list(tmp_path.rglob("manifest.json"))


def test_recording_keeps_the_order_of_the_seeds_whatever_the_rows() -> None:
    recordings = []
    for rows in (1, 3):
        simulator = Locomotion("hopper").simulator(rows)
        recordings.append(record(simulator, lambda states: np.zeros((len(states), 3)), [5, 6, 7, 8]))
        simulator.close()
    assert np.array_equal(recordings[0].observations, recordings[1].observations)
    assert np.array_equal(recordings[0].starts, recordings[1].starts)
