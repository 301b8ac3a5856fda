"""The policies of the package: what their files hold, how they act, and that the manifest tells the truth."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.envs.bodies import TASKS, bodies
from tailo_pl.envs.evaluation import episode_seeds, run_episodes
from tailo_pl.envs.locomotion import LocomotionRows
from tailo_pl.envs.reference_scores import normalised_score
from tailo_pl.errors import UserError
from tailo_pl.experts import CLIPPED, SQUASHED, NpzPolicy, expert_facts, expert_names, load_expert

FOLDER = resources.files("tailo_pl.experts")
WANTED = {"hopper": 100, "walker2d": 90, "halfcheetah": 65, "ant": 60}


def tiny(kind: str) -> NpzPolicy:
    """One number in, one out, worked out by hand below."""
    one = np.ones((1, 1), np.float32)
    return NpzPolicy(
        kind=kind,
        weights=(2 * one, one, 0.5 * one),
        biases=(one[0], 0 * one[0], 0.25 * one[0]),
        obs_mean=3 * one[0],
        obs_std=4 * one[0],
        noise_std=0.5 * one[0],
    )


def test_every_task_and_body_has_its_policies() -> None:
    expected = {*TASKS, *(f"{task}-medium" for task in TASKS)}
    expected |= {f"{task}-{body}" for task in TASKS for body in bodies(task) if body != "stock"}
    expected -= {f"ant-crippled-leg-{leg}" for leg in (1, 2, 3)}  # nobody has learnt with these
    assert set(expert_names()) == {*expected, "ant-heading"}


def test_manifest_matches_the_files() -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text())["policies"]
    assert set(manifest) == set(expert_names())
    for name, facts in manifest.items():
        content = (FOLDER / f"{name}.npz").read_bytes()
        assert len(content) < 500_000
        assert facts["sha256"] == hashlib.sha256(content).hexdigest()
        assert facts == expert_facts(name)
        task = facts["environment"]
        walked = "ant" if task == "antmaze" else task  # through the maze by where it heads, without seeing where it is
        simulator, policy = LocomotionRows(walked, 1, body=facts["body"]), load_expert(name)
        assert (policy.observation_dim, policy.action_dim) == (simulator.observation_dim, simulator.action_dim)
        assert facts["episodes"] == 100
        assert facts["noisy"]["return_mean"] > 0.9 * facts["noiseless"]["return_mean"]
        for measured in (facts["noiseless"], facts["noisy"]):
            dataset = "antmaze-umaze-v2" if task == "antmaze" else f"{task}-expert-v2"
            score = normalised_score(dataset, measured["return_mean"])
            assert measured["normalised_score"] == pytest.approx(float(score), abs=0.06)


@pytest.mark.parametrize("task", TASKS)
def test_experts_are_as_good_as_wanted_and_medium_ones_between(task: str) -> None:
    expert, medium = (expert_facts(name)["noiseless"] for name in (task, f"{task}-medium"))
    assert expert["normalised_score"] >= WANTED[task]
    assert 0.2 < medium["return_mean"] / expert["return_mean"] < 0.7


@pytest.mark.parametrize("name", ["ant", "halfcheetah", "hopper"])
def test_returns_are_those_of_the_manifest(name: str) -> None:
    """A few of the episodes the manifest was made of, with and without noise."""
    facts, policy = expert_facts(name), load_expert(name)
    simulator, seeds = LocomotionRows(facts["environment"], 8), episode_seeds(0, "experts", 8)
    noisy_actor = partial(policy.act, noise_share=facts["noise_share"], rng=np.random.default_rng(0))
    for actor, measured in ((policy.act, facts["noiseless"]), (noisy_actor, facts["noisy"])):
        difference = run_episodes(simulator, actor, seeds).returns.mean() - measured["return_mean"]
        assert abs(difference) < 4 * measured["return_std"] / np.sqrt(8) + 1


def test_clipped_policy_by_hand() -> None:
    # (5 - 3) / 4 = 0.5; tanh(2 * 0.5 + 1); tanh; half of it + 0.25. The second observation is clipped to 10 deviations.
    actions = tiny(CLIPPED).act(np.array([[5.0], [1e6]]))
    expected = [0.5 * np.tanh(np.tanh(2 * x + 1)) + 0.25 for x in (0.5, 10.0)]
    np.testing.assert_allclose(actions[:, 0], expected, rtol=1e-6)


def test_squashed_policy_by_hand() -> None:
    # the observation is taken as it is: relu(2 * 0.5 + 1) = 2; relu; tanh(0.5 * 2 + 0.25)
    actions = tiny(SQUASHED).act(np.array([[0.5], [-7.0]]))
    np.testing.assert_allclose(actions[:, 0], np.tanh([1.25, 0.25]), rtol=1e-6)
    assert actions.dtype == np.float32


@pytest.mark.parametrize("kind", [CLIPPED, SQUASHED])
def test_noise(kind: str) -> None:
    policy, observations = tiny(kind), np.zeros((20_000, 1))
    mean = policy.act(observations[:1])[0, 0]
    noisy = policy.act(observations, 0.1, np.random.default_rng(0))
    assert noisy.mean() == pytest.approx(mean, abs=2e-3)
    assert noisy.std() == pytest.approx(0.1 * 0.5, rel=0.03)
    np.testing.assert_array_equal(noisy, policy.act(observations, 0.1, np.random.default_rng(0)))
    wild = policy.act(observations, 10.0, np.random.default_rng(0))
    assert (wild.min(), wild.max()) == (-1, 1)
    with pytest.raises(ValueError, match="generator"):
        policy.act(observations, 0.1)


def test_noise_before_the_tanh_by_hand() -> None:
    observations, noise = np.full((1000, 1), 0.5), np.random.default_rng(0).standard_normal((1000, 1), dtype=np.float32)
    actions = tiny(SQUASHED).act(observations, 2.0, np.random.default_rng(0), before_tanh=True)
    np.testing.assert_allclose(actions, np.tanh(1.25 + 2.0 * 0.5 * noise), rtol=1e-5)
    assert np.abs(actions).max() < 1  # bounded without being clipped
    np.testing.assert_array_equal(tiny(SQUASHED).act(observations, before_tanh=True), tiny(SQUASHED).act(observations))
    with pytest.raises(ValueError, match="tanh"):
        tiny(CLIPPED).act(observations, 2.0, np.random.default_rng(0), before_tanh=True)


def test_padding_is_not_looked_at() -> None:
    policy, observations = load_expert("ant"), np.random.default_rng(0).normal(size=(4, 27))
    np.testing.assert_array_equal(policy.act(np.pad(observations, ((0, 0), (0, 84)))), policy.act(observations))


def test_save_and_load(tmp_path: Path) -> None:
    policy, observations = load_expert("hopper"), np.random.default_rng(0).normal(size=(4, 11))
    policy.save(tmp_path / "copy.npz")
    np.testing.assert_array_equal(NpzPolicy.load(tmp_path / "copy.npz").act(observations), policy.act(observations))


def test_unknown_expert_lists_near_ones() -> None:
    with pytest.raises(UserError, match=r"'hopper-mediun'.*hopper-medium"):
        load_expert("hopper-mediun")


def test_bad_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.npz"

    def refused(message: str) -> None:
        with pytest.raises(UserError, match=rf"bad\.npz: .*{message}"):
            NpzPolicy.load(file)

    refused("not a readable")  # missing
    good = (FOLDER / "hopper.npz").read_bytes()
    file.write_bytes(good[: len(good) // 2])
    refused("not a readable")
    file.write_bytes(b"")
    refused("not a readable")
    damaged = bytearray(good)
    damaged[len(good) // 2] ^= 0xFF
    file.write_bytes(damaged)
    refused("not a readable")

    with np.load(FOLDER / "hopper.npz") as npz:
        arrays = dict(npz)
    for change, message in (
        ({"extra": np.zeros(1)}, "extra"),
        ({"kind": np.array("linear")}, "kind 'linear'"),
        ({"w0": arrays["w0"].astype(np.float64)}, "w0 .float64"),
        ({"b1": np.full_like(arrays["b1"], np.nan)}, "b1"),
        ({"w1": arrays["w1"][:-1]}, "shapes"),
        ({"noise_std": arrays["noise_std"][:-1]}, "shapes"),
        ({"w2": arrays["w2"][0]}, "shapes"),
    ):
        np.savez(file, **(arrays | change))
        refused(message)
    np.savez(file, **(arrays | {"kind": np.array({"a": "pickle"}, dtype=object)}))
    refused("not a readable")
