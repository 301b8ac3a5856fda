"""Every experiment config composes to a checked experiment of the cell its name says."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from tailo_pl.experiment import read_experiment

ROOT = Path(str(files("tailo_pl.configs"))) / "experiment"
NAMES = sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.yaml"))


def read(*overrides: str) -> Any:
    with initialize_config_module("tailo_pl.configs", version_base="1.3"):
        return read_experiment(OmegaConf.to_container(compose("train", overrides=list(overrides)), resolve=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_composes_to_its_cell_with_the_papers_preset(name: str) -> None:
    experiment = read(f"experiment={name}")
    setting, cell = name.split("/")
    assert experiment.names["setting"] == setting
    assert experiment.names["env"] == cell.split("_")[0]
    assert experiment.names["preset"] == "paper"
    parameters = vars(experiment.setting)
    if setting == "incomplete_ta":
        assert parameters["every"] == int(cell.split("_")[1])
    if setting == "incomplete_ts":
        assert [parameters["first"], parameters["last"]] == [int(part) for part in cell.split("_")[1:]]
    if setting == "offline_rl":
        assert parameters["dataset"] == "-".join(cell.split("_")[1:])


def test_the_nine_offline_rl_cells_are_there() -> None:
    assert sum(name.startswith("offline_rl/") for name in NAMES) == 9


def test_the_command_line_wins_over_an_experiment() -> None:
    experiment = read("experiment=incomplete_ta/hopper_3", "preset=fast", "setting.every=5")
    assert experiment.names["preset"] == "fast" and experiment.setting.every == 5


def test_paper_preset_is_the_papers_numbers() -> None:
    stages = read("experiment=standard/hopper").stages
    assert [(name, stage.max_steps) for name, stage in stages.items()] == [
        ("pretrain", 10_000),
        ("formal", 40_000),
        ("policy", 1_000_000),
    ]
    assert [stage.data["batch_size"] for stage in stages.values()] == [512, 512, 8192]
    policy = stages["policy"]
    assert policy.model["init_args"] == {
        "likelihood": "squashed",
        "learning_rate": 1e-4,
        "weight_decay": 1e-5,
        "schedule": "constant",
        "averaging": 0,
    }
    assert policy.data["sampling"] == "uniform" and policy.hold_out is None
    assert (policy.weights.alpha, policy.weights.gamma) == (1.25, 0.998)
    assert stages["formal"].negatives.beta_1 == 0.8
    for name, objective in (("pretrain", "debiased"), ("formal", "mixed")):
        arguments = stages[name].model["init_args"]
        assert arguments["objective"] == objective and arguments["learning_rate"] == 3e-4
        assert (arguments["eta_p"], arguments["lipschitz"]) == (0.2, 10)
    assert stages["formal"].model["init_args"]["beta_2"] == 0


def test_mismatch_uses_the_debiased_loss() -> None:
    assert read("experiment=mismatch/ant").stages["formal"].model["init_args"]["beta_2"] == 1
