"""Any environment of gymnasium by its id: spaces, order of observations, success, references, and what is refused."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray

from tailo_pl.envs.evaluation import Actor, run_episodes, summarise
from tailo_pl.envs.gym import GymEnvironment
from tailo_pl.envs.observations import pieces, state
from tailo_pl.envs.pointmaze import PointMaze
from tailo_pl.envs.reference_scores import RAW
from tailo_pl.envs.simulator import Drawn
from tailo_pl.errors import UserError

SEEDS = np.array([3, 4, 5])

OWN = '''
import gymnasium
import numpy as np
from pathlib import Path

Path("imported").touch()


class Corridor(gymnasium.Env):
    """One step right a time: done at 3; info tells success at 2 only; time runs out by itself after `patience`."""

    observation_space = gymnasium.spaces.Dict({
        "where": gymnasium.spaces.Box(-9, 9, (1,)),
        "door": gymnasium.spaces.Discrete(4),
        "map": gymnasium.spaces.Box(0, 1, (2, 2)),
    })

    def __init__(self, patience=9, unbounded=False, shape=(2, 1)):
        self.patience = patience
        bound = np.inf if unbounded else 1.0
        self.action_space = gymnasium.spaces.Box(-bound, bound, shape)

    def observe(self):
        return {"where": np.array([self.at], np.float32), "door": 3, "map": np.array([[1, 2], [3, 4]]) / 4}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.steps = 0
        return self.observe(), {}

    def step(self, action):
        assert action.shape == (2, 1)
        self.at, self.steps = self.at + 1, self.steps + 1
        info = {"success": np.float32(self.at == 2)} if self.at > 1 else {}
        return self.observe(), 1.0, self.at == 3, self.steps >= self.patience, info


gymnasium.register("corridors/Corridor-v0", entry_point="corridors:Corridor", max_episode_steps=20)
gymnasium.register("Endless-v0", entry_point="corridors:Corridor")
'''


@pytest.fixture
def corridors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's that registers environments, in the working directory; not allowed yet."""
    (tmp_path / "corridors.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("TAILO_ALLOW", raising=False)
    monkeypatch.delitem(sys.modules, "corridors", raising=False)
    for name in ("corridors/Corridor-v0", "Endless-v0", "Registered-v0"):
        gymnasium.registry.pop(name, None)
    return tmp_path


def still(width: int) -> Actor:
    return lambda states: np.zeros((len(states), width))


def played(environment: GymEnvironment, rows: int = 2) -> Any:
    simulator = environment.simulator(rows)
    try:
        return run_episodes(simulator, still(len(environment.action_low)), SEEDS)
    finally:
        simulator.close()


class TestObservations:
    space = spaces.Dict(
        {
            "z": spaces.Box(0, 1, (2,)),
            "a": spaces.Dict({"y": spaces.Discrete(3), "b": spaces.Box(0, 1, (2, 2))}),
            "t": spaces.Tuple([spaces.Box(0, 1, (1,)), spaces.MultiBinary(2)]),
        }
    )
    observation: ClassVar[Any] = {
        "z": np.array([10, 11]),
        "a": {"y": 12, "b": np.array([[13, 14], [15, 16]])},
        "t": (np.array([17]), np.array([18, 19])),
    }

    def laid_out(self, keys: list[str] | None) -> list[float]:
        return state(self.observation, pieces(self.space, keys, "keys")).tolist()

    def test_sorted_by_key_on_every_level(self) -> None:
        assert self.laid_out(None) == [13, 14, 15, 16, 12, 17, 18, 19, 10, 11]

    def test_in_the_order_of_the_keys_given(self) -> None:
        assert self.laid_out(["z", "a/y", "t"]) == [10, 11, 12, 17, 18, 19]

    def test_one_box_is_itself(self) -> None:
        (piece,) = pieces(spaces.Box(0, 1, (3,)), None, "keys")
        assert piece.width == 3 and state(np.array([1.0, 2.0, 3.0]), [piece]).tolist() == [1, 2, 3]


def test_pendulum_by_its_id() -> None:
    environment = GymEnvironment("Pendulum-v1")
    assert (environment.observation_dim, environment.action_low, environment.action_high) == (3, (-2.0,), (2.0,))
    assert environment.horizon == 200 and not environment.knows_success
    env = gymnasium.make("Pendulum-v1")
    expected, ended = 0.0, False
    env.reset(seed=3)
    while not ended:
        _, reward, terminated, truncated, _ = env.step(np.zeros(1))
        expected, ended = expected + float(reward), terminated or truncated
    episodes = played(environment)
    assert episodes.returns[0] == pytest.approx(expected) and (episodes.lengths == 200).all()


def test_without_references_a_score_is_a_return_and_says_so() -> None:
    environment = GymEnvironment("Pendulum-v1", horizon=10)
    evaluation = summarise(played(environment), environment, 1)
    assert evaluation.score == pytest.approx(evaluation.mean_return) and evaluation.mean_length == 10
    assert environment.reference == RAW and "returns as they are" in RAW.source
    given = GymEnvironment("Pendulum-v1", low=-1000, high=-100).reference
    assert given.normalise([-1000, -100]).tolist() == [0, 100] and "env.low" in given.source


def test_dictionaries_of_gymnasium_robotics_and_success_in_info() -> None:
    """FetchReach: 3 numbers of the achieved goal, 3 of the desired one, 10 of the observation; `is_success`."""
    environment = GymEnvironment("FetchReach-v4", success="info")
    assert environment.observation_dim == 16 and len(environment.action_low) == 4 and environment.knows_success
    simulator = environment.simulator(1)
    assert isinstance(simulator, Drawn)
    first = simulator.reset(np.array([0]), np.array([7]))[0]
    env = gymnasium.make("FetchReach-v4")
    expected, _ = env.reset(seed=7)
    np.testing.assert_array_equal(
        first, np.concatenate([expected[key] for key in ("achieved_goal", "desired_goal", "observation")])
    )

    def reach(states: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.append(np.clip(10 * (states[:, 3:6] - states[:, :3]), -1, 1), np.zeros((len(states), 1)), axis=1)

    assert run_episodes(simulator, reach, SEEDS[:1]).success.all()
    assert not run_episodes(simulator, still(4), SEEDS[:1]).success.any()
    simulator.close()
    env.close()


def test_keys_choose_and_order() -> None:
    keys = ["observation", "desired_goal"]
    environment = GymEnvironment("PointMaze_UMaze-v3", keys=keys)
    assert environment.observation_dim == 6
    simulator = environment.simulator(1)
    env = gymnasium.make("PointMaze_UMaze-v3")
    expected, _ = env.reset(seed=7)
    first = simulator.reset(np.array([0]), np.array([7]))[0]
    np.testing.assert_array_equal(first, np.concatenate([expected[key] for key in keys]))
    assert isinstance(simulator, Drawn) and simulator.model.nq == len(simulator.pose(0))
    simulator.close()
    env.close()


def test_what_mujoco_does_not_simulate_cannot_be_drawn() -> None:
    simulator = GymEnvironment("Pendulum-v1").simulator(1)
    assert not isinstance(simulator, Drawn)
    simulator.close()


def test_mazes_leave_no_files_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for environment in (PointMaze(), GymEnvironment("PointMaze_Open-v3")):
        environment.simulator(2).close()
    assert not list(tmp_path.iterdir())


class TestOnesOwn:
    def test_runs_only_what_was_allowed(self, corridors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UserError, match="which runs code of corridors; where you trust it: --allow corridors"):
            GymEnvironment("corridors:corridors/Corridor-v0")
        assert not (corridors / "imported").exists()
        # Registered by someone already, but its code is not imported yet.
        gymnasium.register("Registered-v0", entry_point="corridors:Corridor")
        with pytest.raises(UserError, match="'Registered-v0' given, which runs code of corridors"):
            GymEnvironment("Registered-v0", horizon=5)
        assert not (corridors / "imported").exists()
        monkeypatch.setenv("TAILO_ALLOW", "corridors")
        environment = GymEnvironment("corridors:corridors/Corridor-v0")
        assert (corridors / "imported").exists()
        assert environment.observation_dim == 6 and environment.action_low == (-1.0, -1.0)

    def test_order_success_and_ends(self, corridors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TAILO_ALLOW", "corridors")
        named = "corridors:corridors/Corridor-v0"
        simulator = GymEnvironment(named).simulator(1)
        first = simulator.reset(np.array([0]), np.array([1]))
        assert first.tolist() == [[3, 0.25, 0.5, 0.75, 1, 0]]  # door, map row by row, where
        by_info, by_end = GymEnvironment(named, success="info"), GymEnvironment(named, success="termination")
        for environment in (by_info, by_end):
            episodes = played(environment)
            assert episodes.success.all() and episodes.terminated.all() and (episodes.lengths == 3).all()
        # Success at the second step counts, though the episode goes on; so does an end that the environment sets.
        short = {"kwargs": {"patience": 2}}
        assert played(GymEnvironment(named, success="info", **short)).success.all()
        cut = played(GymEnvironment(named, success="termination", **short))
        assert not cut.success.any() and (cut.lengths == 2).all()
        assert (played(GymEnvironment(named, horizon=1)).lengths == 1).all()
        assert summarise(played(GymEnvironment(named)), GymEnvironment(named), 1).success is None

    def test_horizon_and_bounds_must_be_known(self, corridors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TAILO_ALLOW", "corridors")
        with pytest.raises(UserError, match=r"env\.horizon: not given, expected a number of steps"):
            GymEnvironment("corridors:Endless-v0")
        assert GymEnvironment("corridors:Endless-v0", horizon=7).horizon == 7
        with pytest.raises(UserError, match=r"actions: .* found, expected finite bounds"):
            GymEnvironment("corridors:Endless-v0", horizon=7, kwargs={"unbounded": True})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "Pendulm-v1"}, r"env\.id: 'Pendulm-v1' given, expected .* \(did you mean Pendulum-v1\?\)"),
        ({"id": "not an id"}, r"env\.id: 'not an id' given"),
        ({"id": "CartPole-v1"}, r"env\.id=CartPole-v1: actions: space Discrete\(2\) found, expected Box"),
        ({"id": "Blackjack-v1"}, r"env\.horizon: not given"),
        ({"id": "Pendulum-v1", "horizon": 0}, r"env\.horizon: 0 given"),
        ({"id": "Pendulum-v1", "keys": ["angle"]}, r"env\.keys: angle given, but the observations are one Box"),
        ({"id": "FetchReach-v4", "keys": ["goal"]}, r"env\.keys: no 'goal' found, expected some of achieved_goal"),
        ({"id": "Pendulum-v1", "low": 1.0}, r"env\.low, env\.high: 1.0 and None given, expected low < high"),
        ({"id": "Pendulum-v1", "low": 1.0, "high": 1.0}, "expected low < high"),
        ({"id": "Pendulum-v1", "kwargs": {"size": 3}}, r"cannot be made with env\.kwargs \(TypeError: .*'size'"),
        ({"id": "Pendulum-v1", "kwargs": {"max_episode_steps": 3}}, r"expected it as env\.horizon"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        GymEnvironment(**arguments)
    assert str(caught.value).isprintable()
