"""Values of overrides: what is refused at once is what the classes refuse; what people write is read."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf

from tailo_pl.config.compose import composed_config
from tailo_pl.config.experiment import read_experiment
from tailo_pl.config.overrides import readable
from tailo_pl.config.values import LIMITS, require_values
from tailo_pl.errors import UserError
from tailo_pl.training.building import check_stages

NOT_USUAL = {  # what else has to be chosen for a value to be there
    "method.discount": ("method=marwil",),
    "setting.every": ("env=hopper", "setting=incomplete_ta"),
    "setting.experts": ("env=hopper", "setting=standard"),
    "setting.first": ("env=hopper", "setting=incomplete_ts"),
    "setting.last": ("env=hopper", "setting=incomplete_ts"),
    "setting.ts_trajectory": ("env=hopper", "setting=standard"),
}


def put(name: str, value: float) -> Any:
    """What sets a value past all that looks at overrides."""

    def change(tree: Any) -> None:
        *path, last = name.split(".")
        for part in path:
            tree = tree[part]
        tree[last] = value

    return change


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_refused_at_once_the_classes_refuse_too(name: str) -> None:
    limit, overrides = LIMITS[name], NOT_USUAL.get(name, ())
    beyond = [limit.low if limit.closed[0] == "(" else limit.low - 1]
    if math.isfinite(limit.high):
        beyond.append(limit.high if limit.closed[1] == ")" else limit.high + 1)
    for value in beyond:
        given = DictConfig({})
        OmegaConf.update(given, name, int(value), force_add=True)
        with pytest.raises(UserError, match=f"^{name}: {value:.0f} given, expected a number in "):
            require_values(given, {name: None})
    with pytest.raises(UserError):
        check_stages(read_experiment(composed_config(overrides, put(name, int(beyond[-1])))))


def test_what_is_allowed_the_classes_take() -> None:
    lowest = [f"{name}={limit.low:g}" for name, limit in LIMITS.items() if limit.closed[0] == "["]
    check_stages(read_experiment(composed_config([one for one in lowest if one.split("=")[0] not in NOT_USUAL])))


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("preset.policy_steps=1e4", "preset.policy_steps=10000"),
        ("preset.policy_steps=2.5e3", "preset.policy_steps=2500"),
        ("preset.policy_learning_rate=1e-3", "preset.policy_learning_rate=1e-3"),
        ("method.alpha=1.25e0", "method.alpha=1.25e0"),
        ("source.ts=run1e4/a.csv", "source.ts=run1e4/a.csv"),
        ("source.ts=données.csv", "source.ts='données.csv'"),
        ("source.ts=it's (1).csv", "source.ts='it\\'s (1).csv'"),
        ("source.ts=[a.csv,données.csv]", "source.ts=[a.csv,'données.csv']"),
        ("source.ts='a,b.csv'", "source.ts='a,b.csv'"),
        ("source.columns.observations=[x, y, \"joint_*\"]", "source.columns.observations=[x, y, \"joint_*\"]"),
        ("name=a=b", "name='a=b'"),
    ],
)  # fmt: skip
def test_what_people_write(typed: str, read: str) -> None:
    assert readable([typed]) == [read]
    assert readable([read]) == [read]


def test_values_of_a_sweep() -> None:
    assert readable(["-m", "seed=range(1,4)", "env=hopper,ant", "preset.policy_steps=1e3,2e3"], sweep=True) == [
        "-m", "seed=range(1,4)", "env=hopper,ant", "preset.policy_steps=1000,2000",
    ]  # fmt: skip


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1))
def test_any_name_of_a_file_arrives(name: str) -> None:
    if name[:1] in "'\"[{" or "${" in name or "\\" in name or set("([{,") & set(name):
        return  # Hydra's own language
    (override,) = readable([f"source.ta=a{name}.csv"])
    assert OverridesParser.create().parse_override(override).value() == f"a{name}.csv"
