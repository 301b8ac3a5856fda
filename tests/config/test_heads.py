"""The group `head`: who chooses, and one line for what does not fit, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tailo_pl import cli
from tailo_pl.config.compose import composed
from tailo_pl.training.building import check_stages

HEADS = "tailo_pl.models.heads"


@pytest.mark.parametrize(
    ("overrides", "kind", "arguments"),
    [
        ([], "Regression", {"loss": "squared", "std": 0.1, "delta": 0.1}),
        (["preset=paper"], "Gaussian", {"likelihood": "squashed"}),
        (["experiment=standard", "env=hopper"], "Gaussian", {"likelihood": "squashed"}),
        (["head=regression"], "Regression", {"loss": "squared", "std": 0.1, "delta": 0.1}),
        (["preset=paper", "head=censored"], "Gaussian", {"likelihood": "censored"}),
        (["head=gaussian", "experiment=standard", "env=hopper"], "Gaussian", {"likelihood": "squashed"}),
        (
            ["method=bc", "head=regression", "head.loss=huber"],
            "Regression",
            {"loss": "huber", "std": 0.1, "delta": 0.1},
        ),
        (
            ["method=bc", "head=mixture", "head.components=2"],
            "Mixture",
            {"components": 2, "of": {"class_path": f"{HEADS}.Regression", "init_args": {}}},
        ),
    ],
)
def test_the_preset_chooses_unless_one_is_named(overrides: list[str], kind: str, arguments: dict[str, object]) -> None:
    head = composed(overrides).stages["policy"].model["init_args"]["head"]
    assert head == {"class_path": f"{HEADS}.{kind}", "init_args": arguments}


def test_baselines_keep_theirs_where_the_actor_is_their_own() -> None:
    for method in ("smodice", "dwbc", "marwil", "otr", "seabo", "recoil", "dilo"):
        given = (f"method={method}", "preset.baselines.actor=own")
        stages = [composed([*given, *head]).stages for head in ([], ["head=mixture"])]
        assert stages[0]["policy"].model == stages[1]["policy"].model


def test_baselines_that_hand_on_weights_share_the_policy_of_tailo() -> None:
    chosen = ("head=mixture", "preset.network.members=2")
    ours = composed(["method=tailo", *chosen]).stages["policy"]
    for method in ("smodice", "lobsdice", "marwil", "otr", "seabo", "recoil", "dilo"):
        theirs = composed([f"method={method}", *chosen]).stages["policy"]
        assert (theirs.model, theirs.batches, theirs.max_steps) == (ours.model, ours.batches, ours.max_steps)


def test_networks() -> None:
    given = ("preset.network.hidden=[8]", "preset.network.norm=layer", "preset.network.members=2")
    arguments = composed(given).stages["policy"].model["init_args"]
    assert (arguments["hidden"], arguments["norm"], arguments["members"]) == ([8], "layer", 2)


@pytest.mark.parametrize("head", ["gaussian", "censored", "regression", "mixture"])
@pytest.mark.parametrize("method", ["tailo", "marwil"])
def test_every_head_fits_every_method_that_takes_one(head: str, method: str) -> None:
    check_stages(composed([f"method={method}", f"head={head}"]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["head=flow"], "head: 'flow' given, expected one of censored, gaussian, mixture, regression"),
        (["head=regresion"], "did you mean regression?"),
        (["head=mixture", "head.components=0"], "head.components: 0 given, expected a number in [1, inf)"),
        (["head=mixture", "head.components=2.5"], "head.components: expected int. Got value: 2.5"),
        (["head=mixture", f"head.of.class_path={HEADS}.Nothing"], "has no attribute 'Nothing'"),
        (["head=mixture", "head.of.class_path=tailo_pl.models.IQL"], "does not correspond to a subclass of Head"),
        (["head=mixture", "+head.of.components=3"], "option 'components' is not accepted"),
        (["head=regression", "head.components=3"], "head.components: unknown key"),
        (["head=regression", "+head.components=3"], "option 'components' is not accepted"),
        (["head=regression", "head.loss=absolute"], "head.loss: expected one of 'squared', 'huber'"),
        (["head=regression", "head.std=0"], "head.std: 0.0 given"),
        (["method=smodice", "head=mixture", "head.components=0"], "head.components: 0 given"),
        (["preset.network.members=0"], "members: 0 given, expected a number in [1, inf)"),
        (["preset.network.norm=batch"], "norm: expected one of 'none', 'layer'"),
        (["preset.network.hidden=[8,0]"], "hidden: 0 given, expected a number in [1, inf)"),
    ],
)
def test_what_does_not_fit(
    overrides: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", f"runs={tmp_path}", "trainer=cpu", *overrides]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_run_says_which_head_it_has(run_dir: Path) -> None:
    saved = yaml.safe_load((run_dir / "config.yaml").read_text())
    assert saved["head"] == {"class_path": f"{HEADS}.Regression", "loss": "squared", "std": 0.1, "delta": 0.1}
    assert saved["method"]["stages"]["policy"]["model"]["head"] == saved["head"]
