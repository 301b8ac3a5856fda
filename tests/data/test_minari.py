"""Minari datasets: what an environment returned is what is read, and every fault of a dataset is one line."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import gymnasium_robotics
import h5py
import numpy as np
import pytest
from gymnasium import spaces

from tailo_pl.config.compose import composed
from tailo_pl.data import cache
from tailo_pl.data.progress import listener
from tailo_pl.data.sources.minari import Minari
from tailo_pl.errors import UserError

minari = pytest.importorskip("minari")
gym.register_envs(gymnasium_robotics)

NESTED = spaces.Dict(
    {
        "goal": spaces.Box(-9, 9, (2,), np.float32),
        "arm": spaces.Dict({"wrist": spaces.Discrete(5), "angles": spaces.Box(-9, 9, (2, 2), np.float64)}),
        "feet": spaces.Tuple([spaces.MultiBinary(2), spaces.MultiDiscrete([7, 7])]),
        "note": spaces.Text(8),
    }
)


class Scripted(gym.Env[Any, Any]):
    """Returns random members of its observation space, and ends by its own rule at the third step."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any] | None = None) -> None:
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Box(-1, 1, (2,), np.float32)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self.observation_space.sample(), float(self._steps), self._steps == 3, False, {}


class Recorded:
    """What an environment said while Minari listened: lists of episodes."""

    def __init__(self) -> None:
        self.observations: list[list[Any]] = []
        self.actions: list[list[Any]] = []
        self.rewards: list[list[float]] = []
        self.terminals: list[list[bool]] = []
        self.timeouts: list[list[bool]] = []

    def states(self, state: Callable[[Any], Any] = np.asarray) -> np.ndarray:
        """The states acted in: all observations but the last of each episode."""
        return np.array([state(one) for episode in self.observations for one in episode[:-1]])

    def column(self, name: str) -> np.ndarray:
        return np.array([value for episode in getattr(self, name) for value in episode])


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setenv("MINARI_REMOTE", "nowhere://at-all")  # no test goes to the network
    return tmp_path / "minari"


def collect(dataset_id: str, env: gym.Env[Any, Any], episodes: int = 3, data_format: str = "hdf5") -> Recorded:
    """Play episodes with random actions under Minari's collector, and make a dataset of them."""
    recorded = Recorded()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari misses an author and a description
        collector = minari.DataCollector(env, data_format=data_format)
        collector.action_space.seed(0)
        for episode in range(episodes):
            observation, _ = collector.reset(seed=episode)
            for field in vars(recorded).values():
                field.append([])
            recorded.observations[-1].append(observation)
            over = False
            while not over:
                action = collector.action_space.sample()
                observation, reward, terminated, truncated, _ = collector.step(action)
                over = terminated or truncated
                values = (observation, action, reward, terminated, truncated)
                for field, value in zip(vars(recorded).values(), values, strict=True):
                    field[-1].append(value)
        collector.create_dataset(dataset_id)
        collector.close()
    return recorded


@pytest.fixture
def scripted(root: Path) -> Path:
    """The folder of a dataset of three episodes of three steps: two numbers of state, two of action."""
    collect("scripted/plain-v0", Scripted(spaces.Box(-1, 1, (2,), np.float32)))
    return root / "scripted" / "plain-v0"


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def refused(dataset_id: str = "scripted/plain-v0", **arguments: Any) -> str:
    """What is said of a dataset that cannot be used. Nothing half-written stays."""
    text = message(lambda: Minari(**arguments).part(dataset_id))
    entries = cache.home() / "data"
    assert not entries.exists() or not list(entries.iterdir())
    prefix = f"source minari: {dataset_id}: "
    assert text.startswith(prefix)
    return text.removeprefix(prefix)


def incomplete(folder: Path) -> str:
    return f"; is the dataset in {folder} complete?"


class TestReading:
    @pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
    @pytest.mark.parametrize(("env", "limit"), [("Pendulum-v1", 20), ("InvertedPendulum-v5", 3)])
    def test_what_the_environment_returned(self, env: str, limit: int, data_format: str) -> None:
        recorded = collect("some/thing-v3", gym.make(env, max_episode_steps=limit), episodes=4, data_format=data_format)
        read = Minari().part("some/thing-v3")
        recording = read.recording
        np.testing.assert_array_equal(recording.observations, recorded.states().astype(np.float32))
        np.testing.assert_array_equal(recording.actions, recorded.column("actions").astype(np.float32))
        np.testing.assert_array_equal(recording.rewards, recorded.column("rewards").astype(np.float32))
        np.testing.assert_array_equal(recording.terminals, recorded.column("terminals"))
        np.testing.assert_array_equal(recording.timeouts, recorded.column("timeouts"))
        assert recording.next_observations is None
        assert read.lengths.tolist() == [len(episode) for episode in recorded.actions]
        assert read.origins.tolist() == ["some/thing-v3"] * 4
        assert isinstance(recording.observations, np.memmap) and recording.observations.dtype == np.float32

    def test_both_ways_to_end_are_kept_apart(self) -> None:
        class Both(Scripted):
            def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
                observation, reward, over, _, info = super().step(action)
                return observation, reward, over, over and reward == 3.0, info

        collect("both-v0", Both(spaces.Box(-1, 1, (2,), np.float32)), episodes=1)
        recording = Minari().part("both-v0").recording
        assert recording.terminals is not None and recording.timeouts is not None
        assert recording.terminals.tolist() == recording.timeouts.tolist() == [False, False, True]

    def test_a_maze_with_all_keys_sorted(self) -> None:
        recorded = collect("maze-v0", gym.make("PointMaze_UMaze-v3", max_episode_steps=10))
        expected = recorded.states(lambda one: np.r_[one["achieved_goal"], one["desired_goal"], one["observation"]])
        np.testing.assert_array_equal(Minari().part("maze-v0").observations, expected.astype(np.float32))

    def test_a_maze_with_chosen_keys_in_the_order_given(self) -> None:
        recorded = collect("maze-v0", gym.make("PointMaze_UMaze-v3", max_episode_steps=10))
        expected = recorded.states(lambda one: np.r_[one["observation"], one["achieved_goal"]])
        source = Minari(keys=["observation", "achieved_goal"])
        np.testing.assert_array_equal(source.part("maze-v0").observations, expected.astype(np.float32))

    @pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
    def test_pieces_within_pieces(self, data_format: str) -> None:
        recorded = collect("nested-v0", Scripted(NESTED), data_format=data_format)
        source = Minari(keys=["feet", "arm", "goal"])
        expected = recorded.states(
            lambda one: np.r_[
                one["feet"][0], one["feet"][1], one["arm"]["angles"].ravel(), one["arm"]["wrist"], one["goal"]
            ]
        )
        np.testing.assert_array_equal(source.part("nested-v0").observations, expected.astype(np.float32))
        inner = Minari(keys=["arm/wrist", "feet/1"]).part("nested-v0").observations
        np.testing.assert_array_equal(inner, recorded.states(lambda one: np.r_[one["arm"]["wrist"], one["feet"][1]]))

    def test_a_discrete_observation_is_one_number(self) -> None:
        recorded = collect("discrete-v0", Scripted(spaces.Discrete(50)))
        np.testing.assert_array_equal(Minari().part("discrete-v0").observations, recorded.states()[:, None])

    def test_actions_of_several_ranks(self) -> None:
        env = Scripted(spaces.Box(-1, 1, (2, 3), np.float32), spaces.Box(-1, 1, (2, 2), np.float32))
        recorded = collect("ranks-v0", env)
        read = Minari().part("ranks-v0")
        np.testing.assert_array_equal(read.observations, recorded.states().reshape(9, 6))
        np.testing.assert_array_equal(read.actions, recorded.column("actions").reshape(9, 4))

    def test_progress_is_told(self, scripted: Path) -> None:
        told: list[tuple[str, int, int]] = []
        token = listener.set(lambda *news: told.append(news))
        try:
            Minari().part("scripted/plain-v0")
        finally:
            listener.reset(token)
        assert told == [("scripted/plain-v0", done, 9) for done in (3, 6, 9)]


class TestIdentity:
    def test_names_of_parts(self, scripted: Path) -> None:
        source = Minari(parts={"expert": "scripted/plain-v0"})
        assert source.part("expert") is source.part("expert")
        assert source.fingerprint("expert") == source.fingerprint("scripted/plain-v0")
        assert source.describe() == "minari: scripted/plain-v0"

    def test_descriptions(self) -> None:
        assert Minari().describe() == "minari: datasets named by the setting"
        source = Minari(parts={"ts": "a-v0", "ta": "b-v0", "other": "a-v0"}, keys=["x", "y/z"])
        assert source.describe() == "minari: a-v0, b-v0 (keys x, y/z)"

    def test_a_second_source_reads_the_cache(self, scripted: Path) -> None:
        first = Minari().fingerprint("scripted/plain-v0")
        (entry,) = (cache.home() / "data").iterdir()
        assert entry.name.startswith("minari-scripted-plain-v0-")
        written = (entry / "observations.npy").stat().st_mtime_ns
        assert Minari().fingerprint("scripted/plain-v0") == first
        assert (entry / "observations.npy").stat().st_mtime_ns == written

    def test_a_changed_dataset_is_read_again(self, scripted: Path) -> None:
        before = Minari()
        before.part("scripted/plain-v0")
        with h5py.File(scripted / "data" / "main_data.hdf5", "a") as file:
            file["episode_1/observations"][2] = [0.25, 0.75]
        after = Minari()
        assert after.part("scripted/plain-v0").observations[5].tolist() == [0.25, 0.75]
        assert after.fingerprint("scripted/plain-v0") != before.fingerprint("scripted/plain-v0")

    def test_the_same_content_has_the_same_name(self, scripted: Path) -> None:
        before = Minari().fingerprint("scripted/plain-v0")
        (scripted / "data" / "main_data.hdf5").touch()
        assert Minari().fingerprint("scripted/plain-v0") == before

    def test_keys_are_part_of_it(self) -> None:
        collect("nested-v0", Scripted(NESTED))
        names = {Minari(keys=keys).fingerprint("nested-v0") for keys in (["goal", "arm"], ["arm", "goal"], ["goal"])}
        assert len(names) == 3


class TestKeys:
    @pytest.fixture(autouse=True)
    def nested(self, root: Path) -> None:
        collect("nested-v0", Scripted(NESTED))

    def test_unknown(self) -> None:
        there = "arm/angles, arm/wrist, feet/0, feet/1, goal, note"
        assert refused("nested-v0", keys=["gaol"]) == (
            f"source.keys: no 'gaol' found, expected some of {there} (did you mean goal?)"
        )
        assert refused("nested-v0", keys=["hand"]) == f"source.keys: no 'hand' found, expected some of {there}"

    def test_twice(self) -> None:
        assert refused("nested-v0", keys=["goal", "arm", "arm/wrist"]) == "source.keys: 'arm/wrist' chosen twice"

    def test_text_is_refused_when_chosen(self) -> None:
        expected = (
            "observations note: space Text found, expected numbers; "
            "choose with source.keys among arm/angles, arm/wrist, feet/0, feet/1, goal"
        )
        assert refused("nested-v0") == expected
        assert refused("nested-v0", keys=["goal", "note"]) == expected

    def test_for_observations_in_one_piece(self, scripted: Path) -> None:
        assert refused(keys=["goal", "arm"]) == "source.keys: goal, arm given, but the observations are one Box"

    def test_empty_list(self) -> None:
        assert message(lambda: Minari(keys=[])) == (
            "source.keys: an empty list given, expected keys of the observations, or null for all"
        )


class TestRefusals:
    def test_without_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "minari", None)
        assert message(lambda: Minari().part("a-v0")) == (
            "source minari: needs the package minari (pip install 'tailo_pl[minari]')"
        )

    def test_discrete_actions(self) -> None:
        collect("cartpole-v0", gym.make("CartPole-v1"))
        assert refused("cartpole-v0") == "actions: space Discrete found, expected Box (continuous actions)"

    def test_unknown_id_without_download(self, root: Path, scripted: Path) -> None:
        assert refused("scripted/plan-v0", download=False) == (
            f"not found in {root}, expected it there as source.download=false (did you mean scripted/plain-v0?)"
        )
        assert refused("else-v7", download=False) == (
            f"not found in {root}, expected it there as source.download=false"
        )

    def test_unknown_id_that_cannot_be_downloaded(self, root: Path, scripted: Path) -> None:
        assert refused("scripted/plain-v1") == (
            f"not found in {root} and cannot be downloaded (KeyError: 'nowhere') (did you mean scripted/plain-v0?)"
        )
        assert not (root / "scripted" / "plain-v1").exists()

    @pytest.mark.parametrize("dataset_id", ["ts", "../other-v0", "/tmp/some-v0", "hf://farama/plain-v0", ""])
    def test_what_is_not_an_id(self, dataset_id: str) -> None:
        assert refused(dataset_id) == "not an id, expected NAMESPACE/NAME-vNUMBER"

    def test_folder_that_cannot_be_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "below"))
        text = message(lambda: Minari().part("a-v0"))
        assert text == f"source minari: {tmp_path / 'file' / 'below'}: cannot be made (Not a directory)"

    def test_dataset_without_episodes(self) -> None:
        collect("scripted/plain-v0", Scripted(spaces.Box(-1, 1, (2,), np.float32)), episodes=0)
        assert refused() == "no episodes found, expected at least one"


class TestDamage:
    def test_cut_short(self, scripted: Path) -> None:
        path = scripted / "data" / "main_data.hdf5"
        path.write_bytes(path.read_bytes()[:2000])
        text = refused()
        assert text.startswith("episode 0 cannot be read (OSError: ") and text.endswith(incomplete(scripted))

    def test_no_hdf5_at_all(self, scripted: Path) -> None:
        (scripted / "data" / "main_data.hdf5").write_bytes(b"not what it says")
        assert refused().startswith("episode 0 cannot be read (OSError: ")

    def test_missing_file(self, scripted: Path) -> None:
        (scripted / "data" / "main_data.hdf5").unlink()
        text = refused()
        assert text.startswith("cannot be read (ValueError: No data found") and text.endswith(incomplete(scripted))

    @pytest.mark.parametrize("content", ["", "{", "[]", "null"])
    def test_broken_metadata(self, scripted: Path, content: str) -> None:
        path = scripted / "data" / "metadata.json"
        path.write_text(content)
        assert refused().startswith(str(path))

    def test_dataset_of_another_time(self, scripted: Path) -> None:
        self.edit(scripted, minari_version="99.0.0")
        assert refused().startswith("cannot be read (ValueError: The installed Minari version")

    @pytest.mark.parametrize("field", ["observations", "actions", "rewards", "terminations", "truncations"])
    def test_missing_field(self, scripted: Path, field: str) -> None:
        with h5py.File(scripted / "data" / "main_data.hdf5", "a") as file:
            del file[f"episode_1/{field}"]
        text = refused()
        assert text.startswith("episode 1 cannot be read (KeyError: ") and f"'{field}' doesn't exist" in text

    def test_missing_episode(self, scripted: Path) -> None:
        with h5py.File(scripted / "data" / "main_data.hdf5", "a") as file:
            del file["episode_2"]
        assert refused().startswith("episode 2 cannot be read (KeyError: ")

    def test_missing_piece(self, root: Path) -> None:
        collect("nested-v0", Scripted(NESTED))
        folder = root / "nested-v0"
        with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
            del file["episode_1/observations/arm/wrist"]
        text = refused("nested-v0", keys=["arm"])
        assert text == f"observations arm/wrist: none found in episode 1{incomplete(folder)}"

    @pytest.mark.parametrize(
        ("field", "values", "said"),
        [
            ("actions", np.zeros((2, 2)), "actions: shape (2, 2) found in episode 1, expected 3 times 2 numbers"),
            ("actions", np.zeros((3, 5)), "actions: shape (3, 5) found in episode 1, expected 3 times 2 numbers"),
            ("observations", np.zeros((5, 2)), "observations: shape (5, 2) found in episode 1, expected 4 times 2"),
            ("observations", np.zeros((4, 3)), "observations: shape (4, 3) found in episode 1, expected 4 times 2"),
            ("truncations", np.zeros(4, bool), "truncations: shape (4,) found in episode 1, expected 3 times 1"),
        ],
    )
    def test_wrong_shape(self, scripted: Path, field: str, values: np.ndarray, said: str) -> None:
        self.replace(scripted, f"episode_1/{field}", values)
        assert refused().startswith(said)

    def test_text_in_place_of_numbers(self, scripted: Path) -> None:
        self.replace(scripted, "episode_1/actions", np.array([[b"a", b"b"]] * 3))
        assert refused() == "actions: type |S1 found in episode 1, expected numbers"

    @pytest.mark.parametrize(
        ("field", "where", "value", "said"),
        [
            ("observations", (2, 1), np.nan, "nan found in episode 1, step 2, dimension 1, expected finite numbers"),
            ("actions", (0, 1), -np.inf, "-inf found in episode 1, step 0, dimension 1, expected finite numbers"),
            ("rewards", (1,), np.nan, "nan found in episode 1, step 1, dimension 0, expected finite numbers"),
            ("rewards", (1,), 1e39, "1e+39 found in episode 1, step 1, dimension 0, expected a number within"),
        ],
    )
    def test_numbers_that_are_none(
        self, scripted: Path, field: str, where: tuple[int], value: float, said: str
    ) -> None:
        with h5py.File(scripted / "data" / "main_data.hdf5", "a") as file:
            file[f"episode_1/{field}"][where] = value
        assert refused().startswith(f"{field}: {said}")

    def test_the_last_observation_does_not_count(self, scripted: Path) -> None:
        with h5py.File(scripted / "data" / "main_data.hdf5", "a") as file:
            file["episode_1/observations"][3] = np.nan
        assert Minari().part("scripted/plain-v0").steps == 9

    def test_fewer_steps_than_promised(self, scripted: Path) -> None:
        self.edit(scripted, total_steps=1234)
        assert refused() == f"9 steps found, expected 1,234 as its metadata says{incomplete(scripted)}"

    def test_episodes_with_a_lost_observation_are_left_out(
        self, scripted: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with h5py.File(scripted / "data" / "main_data.hdf5", "r") as file:
            others = np.concatenate([file["episode_0/observations"][:3], file["episode_2/observations"][:3]])
        self.replace(scripted, "episode_1/observations", np.zeros((3, 2), np.float32))
        with caplog.at_level(logging.WARNING):
            read = Minari().part("scripted/plain-v0")
        np.testing.assert_array_equal(read.observations, others)
        assert read.lengths.tolist() == [3, 3]
        assert [record.getMessage() for record in caplog.records] == [
            "source minari: scripted/plain-v0: 1 of 3 episodes left out, which hold as many observations as actions"
        ]

    def test_all_episodes_with_a_lost_observation(self, scripted: Path) -> None:
        for episode in range(3):
            self.replace(scripted, f"episode_{episode}/observations", np.zeros((3, 2), np.float32))
        assert refused() == "no episode with one more observation than actions found, expected at least one"

    @pytest.mark.parametrize("space", ["observation_space", "action_space"])
    def test_an_environment_named_by_the_file_is_not_made(self, scripted: Path, tmp_path: Path, space: str) -> None:
        spec = gym.spec("Pendulum-v1").to_json()
        harm = {**json.loads(spec), "entry_point": "os:mkdir", "kwargs": {"path": str(tmp_path / "harm")}}
        self.edit(scripted, env_spec=json.dumps(harm), **{space: None})
        path = scripted / "data" / "metadata.json"
        assert refused() == f"{path}: no {space} found, expected the space's description"
        assert not (tmp_path / "harm").exists()

    @staticmethod
    def edit(folder: Path, **values: Any) -> None:
        """Change the metadata; None takes a key out."""
        path = folder / "data" / "metadata.json"
        metadata = json.loads(path.read_text()) | values
        path.write_text(json.dumps({key: value for key, value in metadata.items() if value is not None}))

    @staticmethod
    def replace(folder: Path, field: str, values: np.ndarray) -> None:
        with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
            del file[field]
            file[field] = values


def test_the_config_builds_the_source() -> None:
    source = composed(["env=hopper", "source=minari"]).source
    assert isinstance(source, Minari) and source.describe() == "minari: datasets named by the setting"
