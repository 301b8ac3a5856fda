"""Which runs are the same but for the seed."""

from __future__ import annotations

from typing import Any

import pytest

import tailo_pl.callbacks
from tailo_pl.config.compose import composed_config
from tailo_pl.runs.grouping import CALLBACKS_WITHOUT_EFFECT, group_key, in_short, outcome, seeds, telling_names, told


def config(*overrides: str) -> dict[str, Any]:
    return composed_config(["env=pointmaze", "trainer.precision=32-true", *overrides])


@pytest.mark.parametrize(
    "override",
    [
        "seed=1",
        "discriminator_seed=1",
        "name=other",
        "runs=elsewhere",
        "logger=csv",
        "threads=2",
        "preset.threads=2",
        "checkpoint_every=5",
        "trainer=cpu",
        "trainer=ddp",
        "trainer.devices=2",
        "trainer.log_every_n_steps=7",
        "callbacks.progress=null",
    ],
)
def test_what_does_not_decide_the_outcome(override: str) -> None:
    assert group_key(config(), "d0") == group_key(config(override, "trainer.precision=32-true"), "d0")


@pytest.mark.parametrize(
    "override",
    [
        "trainer.precision=bf16-mixed",
        "source.seed=1",
        "setting.seed=1",
        "method.alpha=2",
        "preset.policy_steps=7",
        "preset.rollout.episodes=3",
        "compile=true",
        "callbacks.rollout=null",
    ],
)
def test_what_decides_the_outcome(override: str) -> None:
    assert group_key(config(), "d0") != group_key(config(override), "d0")


def test_other_data_is_another_group() -> None:
    assert group_key(config(), "d0") != group_key(config(), "d1")


def test_overrides_are_grouped_as_the_configurations_they_make() -> None:
    given = {"env": "hopper", "seed": "0", "trainer.devices": "2", "threads": "1", "trainer.precision": "32-true"}
    assert outcome(given) == {"env": "hopper", "trainer.precision": "32-true"}


def test_seeds_are_equal_for_a_run_done_twice() -> None:
    assert seeds(config("name=a")) == seeds(config("name=b"))
    assert len({seeds(config()), seeds(config("seed=1")), seeds(config("discriminator_seed=1"))}) == 3


def test_a_knob_is_named_once() -> None:
    members = [outcome(config(override)) for override in ("method.alpha=1", "method.alpha=2")]
    assert telling_names(members) == ["method.alpha"]
    members = [outcome(config(override)) for override in ("preset.rollout.episodes=1", "preset.rollout.episodes=2")]
    assert telling_names(members) == ["preset.rollout.episodes"]
    members = [outcome(config()), outcome(config("callbacks.rollout.episodes=3"))]
    assert telling_names(members) == ["callbacks.rollout.episodes"]


def test_a_class_is_named_and_not_the_arguments_that_come_with_it() -> None:
    members = [outcome(config(f"head={name}")) for name in ("regression", "censored", "mixture")]
    names = telling_names(members)
    assert names == ["head.class_path"]
    assert [told(names[0], member[names[0]], in_short(names)) for member in members] == [
        "head=Regression",
        "head=Gaussian",
        "head=Mixture",
    ]
    members.append(outcome(config("head=gaussian")))  # the same class, with another argument
    assert telling_names(members) == ["head.class_path", "head.likelihood"]


def test_short_names_are_told_apart() -> None:
    names = ["method.alpha", "setting.alpha", "preset.network.hidden", "callbacks.mine.class_path"]
    assert list(in_short(names).values()) == ["method.alpha", "setting.alpha", "network.hidden", "mine"]


def test_the_callbacks_without_effect_are_those_that_say_so() -> None:
    kinds = [getattr(tailo_pl.callbacks, name) for name in tailo_pl.callbacks.__all__]
    said = {kind.__name__ for kind in kinds if getattr(kind, "without_effect", False)}
    assert said == set(CALLBACKS_WITHOUT_EFFECT)


@pytest.mark.parametrize("callbacks", [None, 3, [], {"threads": 7}, {"threads": {"class_path": 3}}])
def test_a_strange_configuration_is_grouped_all_the_same(callbacks: Any) -> None:
    assert group_key({1: 2, "1": "x", "callbacks": callbacks, "trainer": None}, None)  # type: ignore[dict-item]
