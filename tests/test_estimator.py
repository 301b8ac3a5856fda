"""TAILO on arrays: scikit-learn's conventions, the pipeline's results, and one line for what is wrong."""

from __future__ import annotations

import gc
import inspect
import pickle
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tailo_pl import TAILO, UserError, load_policy
from tailo_pl.data.settings import Task
from tailo_pl.data.sources.arrays import Arrays, keep
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.estimator import NotFittedError
from tailo_pl.runs.scoring import score

EXAMPLE = Path(__file__).parents[1] / "examples/quickstart.py"
Pair = tuple[NDArray[Any], NDArray[Any]]
TINY = {"pretrain_steps": 3, "formal_steps": 3, "policy_steps": 3, "overrides": ["trainer=cpu"]}


@pytest.fixture(scope="module")
def data() -> tuple[NDArray[Any], list[Pair]]:
    """Five expert states, eight trajectories of different lengths."""
    rng = np.random.default_rng(0)
    ta = [(rng.normal(size=(4 + n, 3)), rng.uniform(-1, 1, (4 + n, 2))) for n in range(8)]
    return rng.normal(size=(5, 3)), ta


@pytest.fixture(scope="module")
def fitted(data: tuple[NDArray[Any], list[Pair]], tmp_path_factory: pytest.TempPathFactory) -> TAILO:
    """A model of a few steps, kept in a folder."""
    return TAILO(**TINY, directory=tmp_path_factory.mktemp("runs")).fit(*data)


def test_parameters_follow_scikit_learn() -> None:
    model = TAILO(alpha=2, action_low=[-1.0, -2.0])
    assert list(model.get_params()) == list(inspect.signature(TAILO).parameters)
    assert model.get_params()["alpha"] == 2 and model.get_params(deep=False)["gamma"] == 0.998
    copy = TAILO(**model.get_params())  # what clone does: parameters come back as the very objects that were given
    assert all(copy.get_params()[name] is value for name, value in model.get_params().items())
    assert model.set_params(alpha=3, seed=1) is model and (model.alpha, model.seed) == (3, 1)
    with pytest.raises(ValueError, match="alhpa: no parameter of TAILO, expected one of alpha, beta_1"):
        model.set_params(alhpa=3)
    assert repr(model) == "TAILO(alpha=3, seed=1, action_low=[-1.0, -2.0])"
    for call in (model.predict, model.score_states):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(np.zeros((1, 3)))


def test_what_a_fit_gives(fitted: TAILO, data: tuple[NDArray[Any], list[Pair]]) -> None:
    ts, ta = data
    steps = sum(len(states) for states, _ in ta)
    assert fitted.weights_.shape == fitted.scores_.shape == (steps,) and fitted.weights_.max() == 1
    assert fitted.offsets_.tolist() == np.cumsum([0, *[len(states) for states, _ in ta]]).tolist()
    assert fitted.n_features_in_ == 3
    assert fitted.summary_["method"] == "tailo" and (fitted.run_dir_ / "summary.json").exists()
    actions = fitted.predict(ts)
    assert actions.shape == (5, 2) and np.abs(actions).max() <= 1
    assert np.allclose(fitted.predict(ts[0]), actions[0], atol=1e-6)
    assert np.array_equal(load_policy(fitted.run_dir_)(ts), actions)
    states = np.concatenate([states for states, _ in ta])
    assert np.allclose(fitted.score_states(states), fitted.scores_, atol=1e-5)
    assert fitted.score_states(states[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) given, expected \(rows, 3\)"):
        fitted.score_states(np.zeros((2, 2)))


def test_its_run_is_a_run_like_any_other(fitted: TAILO, data: tuple[NDArray[Any], list[Pair]]) -> None:
    states = np.concatenate([states for states, _ in data[1]]).astype(np.float32)
    new = Trajectories.of(Recording(states, fitted.offsets_[:-1]))
    scored = score(fitted.run_dir_, new)
    assert np.allclose(scored.weight, fitted.weights_, atol=1e-5)


def test_saved_loaded_and_pickled_it_acts_the_same(fitted: TAILO, data: Any, tmp_path: Path) -> None:
    states = data[0]
    folder = fitted.save(tmp_path / "saved")
    loaded = TAILO.load(folder)
    again = pickle.loads(pickle.dumps(fitted))
    for other in (loaded, again):
        assert np.array_equal(other.predict(states), fitted.predict(states))
        assert np.array_equal(other.weights_, fitted.weights_) and np.array_equal(other.offsets_, fitted.offsets_)
        assert np.allclose(other.score_states(states), fitted.score_states(states))
        assert other.policy_steps == fitted.policy_steps
    assert again.run_dir_ != fitted.run_dir_
    with pytest.raises(UserError, match="already there"):
        fitted.save(folder)
    with pytest.raises(UserError, match=r"estimator\.json: cannot be read"):
        TAILO.load(tmp_path)
    assert pickle.loads(pickle.dumps(TAILO(alpha=3))).alpha == 3


def test_a_policy_at_states_that_are_not_finite(fitted: TAILO) -> None:
    broken = [[0.0, np.nan, 0.0]]
    with pytest.raises(ValueError, match="states: nan found in row 0, dimension 1, expected finite numbers"):
        fitted.predict(broken)
    with pytest.warns(UserWarning, match="nan found in row 0"):
        load_policy(fitted.run_dir_, not_finite="warn")(broken)
    assert np.isnan(load_policy(fitted.run_dir_, not_finite="pass")(broken)).any()
    with pytest.raises(UserError, match="not_finite: 'ignore' given"):
        load_policy(fitted.run_dir_, not_finite="ignore")  # type: ignore[arg-type]


def test_both_ways_to_give_the_data_are_one(fitted: TAILO, data: tuple[NDArray[Any], list[Pair]]) -> None:
    ts, ta = data
    mapping = {
        "observations": np.concatenate([states for states, _ in ta]),
        "actions": np.concatenate([actions for _, actions in ta]),
        "offsets": fitted.offsets_,
    }
    again = TAILO(**fitted.get_params()).fit([ts.tolist()], mapping)
    # The same data and configuration: every stage is the first fit's, reused.
    assert all(stage["reused_from"] for stage in again.summary_["stages"])
    assert np.array_equal(again.weights_, fitted.weights_)
    other = TAILO(**fitted.get_params()).set_params(alpha=0.1).fit(ts, ta)
    assert [bool(stage["reused_from"]) for stage in other.summary_["stages"]] == [True, True, False]


def test_a_temporary_folder_goes_with_the_model_and_random_numbers_stay(data: Any) -> None:
    np.random.seed(1)
    torch.manual_seed(1)
    expected = np.random.RandomState(1).random_sample(), torch.rand(1, generator=torch.Generator().manual_seed(1))
    model = TAILO(**TINY).fit(*data)
    assert (np.random.random_sample(), torch.rand(1)) == expected  # the caller's generators
    folder = model.run_dir_
    assert folder.exists()
    del model
    gc.collect()
    assert not folder.exists()


GOOD = np.zeros((4, 3)) + np.arange(4)[:, None]
ACTIONS = np.linspace(-1, 1, 8).reshape(4, 2)
TA = [(GOOD, ACTIONS), (GOOD + 1, ACTIONS)]


@pytest.mark.parametrize(
    ("ts", "ta", "message"),
    [
        (np.zeros(3), TA, r"ts: shape \(3,\) of float64 given, expected numbers \(rows, dim\)"),
        ([], TA, r"ts: shape \(0,\)"),
        ([["a", "b"]], TA, "ts: cannot be read as numbers"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], TA, r"ts: states of \[3, 4\] dimensions given"),
        (np.zeros((2, 4)), TA, "ts: observations: 4 dimensions found, expected 3 as in TA$"),
        (GOOD, GOOD, "ta: expected a list of"),
        (GOOD, [], "ta: expected a list of"),
        (GOOD, [GOOD, GOOD], r"ta\[0\]: ndarray given, expected a pair"),
        (GOOD, [(GOOD, ACTIONS[:2])], r"ta\[0\]: 4 states and 2 actions given"),
        (GOOD, [(GOOD, ACTIONS), (GOOD, ACTIONS[:, :1])], r"ta: actions of \[1, 2\] dimensions given"),
        (
            GOOD,
            [TA[0], (np.where(GOOD > 2, np.nan, GOOD), ACTIONS)],
            r"ta: observations: nan found in ta\[1\], step 3, dim",
        ),
        (
            GOOD,
            [(GOOD, 3 * ACTIONS), TA[1]],
            r"ta: actions: 4 of 8 are outside the bounds, the worst .* in ta\[0\], step 0, dimension 0",
        ),
        (GOOD, TA[:1], "ta: 1 trajectory of 4 steps found, expected at least 2"),
        (GOOD, {"observations": GOOD, "actions": ACTIONS}, "ta: no 'offsets' found"),
        (GOOD, {"observations": GOOD, "actions": ACTIONS, "offsets": [0, 5]}, r"ta\['offsets'\]: expected whole"),
        (GOOD, {"observations": GOOD, "actions": ACTIONS, "offsets": [0, 2, 2, 4]}, r"ta\['offsets'\]: expected"),
    ],
)
def test_wrong_data_is_one_line(ts: Any, ta: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error:
        TAILO(**TINY, action_low=-1, action_high=1, directory=tmp_path).fit(ts, ta)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("summary.json"))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma": 1.0}, r"gamma: 1\.0 given, expected a number in \[0, 1\)"),
        ({"beta_1": 0}, "beta_1: 0.* given"),
        ({"alpha": "much"}, "alpha"),
        ({"preset": "slow"}, "preset: 'slow' given, expected one of fast, paper"),
        ({"overrides": ["method.alhpa=1"]}, r"^method\.alhpa: unknown key \(did you mean alpha\?\)"),
        ({"overrides": ["preset.network.members=0"]}, r"^preset\.network\.members: 0 given"),
        ({"overrides": "env=hopper"}, "overrides: 'env=hopper' given, expected a list"),
        ({"action_low": -1}, "action_low, action_high: only one of them given"),
        ({"action_low": [-1, -1, -1], "action_high": 1}, "action_low: .* expected 2 finite numbers"),
        ({"policy_steps": 0}, "^policy_steps: 0 given"),
        ({"overrides": ["method=bc"]}, "method without weights"),
    ],
)
def test_wrong_parameters_are_one_line(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error:
        TAILO(**{**TINY, "directory": tmp_path, **params}).fit(GOOD, TA)
    assert "\n" not in str(error.value)


def test_kept_arrays_are_written_once_and_found_damaged(tmp_path: Path) -> None:
    task = Task(
        Trajectories.of(Recording(GOOD, np.array([0]))), Trajectories.of(Recording(GOOD, np.array([0, 2]), ACTIONS))
    )
    folder = keep(task, tmp_path)
    assert keep(task, tmp_path) == folder and [path.name for path in tmp_path.iterdir()] == [folder.name]
    source = Arrays(str(folder))
    assert np.array_equal(source.part("ta").actions, ACTIONS) and source.part("ta").offsets.tolist() == [0, 2, 4]
    assert source.fingerprint("ts") != source.fingerprint("ta")
    with pytest.raises(UserError, match="no part 'expert', expected ts or ta"):
        source.part("expert")
    (folder / "ts/observations.npy").write_bytes(b"")
    with pytest.raises(UserError, match="content differs from the manifest"):
        Arrays(str(folder)).part("ts")
    with pytest.raises(UserError, match="cannot be read"):
        Arrays(str(tmp_path / "none")).part("ts")


@pytest.mark.slow
def test_the_example_finds_the_way_left() -> None:
    names = runpy.run_path(str(EXAMPLE))
    assert names["weight"][0] > 0.8 * names["weight"].sum()
    assert names["position"][0] < -1.5 and abs(names["position"][1]) < 0.5
