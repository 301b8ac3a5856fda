"""The experiment configs compose to checked experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tailo_pl.config.choices import choices
from tailo_pl.config.compose import composed


@pytest.mark.parametrize("name", choices("experiment"))
def test_an_experiment_is_a_setting_with_the_papers_preset(name: str) -> None:
    setting, _, own = name.partition("mismatch_")  # those name their environment, and want a file
    env = own or {"examples": "pointmaze", "mismatch": "ant"}.get(name, "kitchen" if "kitchen" in name else "hopper")
    given = [f"experiment={name}", "source.parts.mismatch=ts.pt"] if own else [f"experiment={name}", f"env={env}"]
    names = composed(given).names
    assert (names["setting"], names["preset"], names["env"]) == (setting or "mismatch", "paper", env)


@pytest.mark.parametrize("setting", ["smodice", "incomplete_ta", "incomplete_ts", "recoil_me"])
def test_walker2d_takes_half_as_many_experts_as_others(setting: str) -> None:
    many = {
        env: composed([f"env={env}", f"setting={setting}"]).config["setting"]["experts"] for env in ("walker2d", "ant")
    }
    assert many == {"walker2d": 100, "ant": 200}


def test_the_command_line_wins_over_an_experiment() -> None:
    experiment = composed(["experiment=incomplete_ta", "env=hopper", "preset=fast", "setting.every=5"])
    assert experiment.names["preset"] == "fast" and experiment.setting.every == 5


def test_paper_preset_is_the_papers_numbers() -> None:
    stages = composed(["experiment=standard", "env=hopper"]).stages
    assert [(name, stage.max_steps) for name, stage in stages.items()] == [
        ("pretrain", 10_000),
        ("formal", 40_000),
        ("policy", 1_000_000),
    ]
    assert [stage.kind.batch_size for stage in stages.values()] == [512, 512, 8192]
    policy = stages["policy"]
    assert policy.model["init_args"] == {
        "head": {"class_path": "tailo_pl.models.heads.Gaussian", "init_args": {"likelihood": "squashed"}},
        "learning_rate": 1e-4,
        "weight_decay": 1e-5,
        "schedule": "constant",
        "averaging": 0,
        "hidden": [256, 256],
        "norm": "none",
        "members": 1,
    }
    assert policy.batches["init_args"] == {"batch_size": 8192, "sampling": "uniform", "held_out": 0}
    assert (policy.inputs["weights"].alpha, policy.inputs["weights"].gamma) == (1.25, 0.998)
    assert stages["formal"].inputs["negatives"].beta_1 == 0.8
    for name, objective in (("pretrain", "debiased"), ("formal", "mixed")):
        arguments = stages[name].model["init_args"]
        assert arguments["objective"] == objective and arguments["learning_rate"] == 3e-4
        assert (arguments["eta_p"], arguments["lipschitz"]) == (0.2, 10)
    assert stages["formal"].model["init_args"]["beta_2"] == 0


def test_mismatch_uses_the_debiased_loss() -> None:
    assert composed(["experiment=mismatch", "env=ant"]).stages["formal"].model["init_args"]["beta_2"] == 1


@pytest.mark.parametrize(
    ("overrides", "setting"),
    [
        ([], "examples"),
        (["env=hopper"], "standard"),
        (["env=hopper", "source=d4rl"], "standard"),
        (["env=hopper", "setting=smodice"], "smodice"),
        (["setting=smodice", "env=hopper"], "smodice"),
        (["env=hopper", "source=files", "source.ts=a.csv", "source.ta=b.csv"], "given"),
        (["source=files", "source.ts=a.csv", "source.ta=b.csv"], "given"),
        (["env=hopper", "source=files", "source.ts=a.csv", "source.ta=b.csv", "setting=standard"], "standard"),
        (["env=none", "source=d4rl"], "given"),
        (["env=gym", "env.id=Pendulum-v1", "source=d4rl"], "given"),
        (["experiment=smodice", "env=hopper"], "smodice"),
    ],
)
def test_an_environment_has_a_setting_unless_one_is_named(overrides: list[str], setting: str) -> None:
    assert composed(overrides).names["setting"] == setting


CONFIGS = Path(__file__).parents[2] / "configs"


def leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name


@pytest.mark.parametrize("group", ["env", "setting", "source"])
def test_every_hint_is_read_by_somebody(group: str) -> None:
    """A hint is found by its name alone: one that is misspelt, or was moved, changes nothing and nobody complains."""
    text = "".join(path.read_text() for path in CONFIGS.rglob("*.yaml"))
    later = r"\$\{[^}]*\}"  # a name that is only known when it is read, as in hints.mopo.${setting.dataset}.length
    read = [re.split(later, one) for one in re.findall(rf"{group}\.hints\.((?:[\w.-]|{later})+)", text)]
    known = [*("[^.]+".join(map(re.escape, pieces)) for pieces in read), "std_floor"]
    whole_or_above = re.compile(rf"(?:{'|'.join(known)})(?:\..*)?")
    for path in sorted((CONFIGS / group).glob("*.yaml")):
        for hint in leaves(yaml.safe_load(path.read_text()).get("hints") or {}):
            assert whole_or_above.fullmatch(hint), f"{path.name}: nobody reads hints.{hint}"
