"""The baselines as methods: each trains, scores and refuses as the others do, and goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from tailo_pl import cli, run
from tailo_pl.errors import UserError
from tailo_pl.experiment import read_experiment
from tailo_pl.models.policy import PolicyModule
from tailo_pl.trusted import import_class

SMALL = (
    "env=pointmaze",
    "name=a",
    "preset.pretrain_steps=10",
    "preset.formal_steps=10",
    "preset.baselines.discriminator_steps=10",
    "preset.baselines.steps=60",
    "preset.baselines.dwbc_steps=110",
    "preset.baselines.batch=64",
    "preset.rollout.episodes=1",
    "preset.rollout.every_n_steps=0",
    "trainer=cpu",
    "trainer.log_every_n_steps=15",
    "checkpoint_every=20",
)
TRAJECTORY = ("setting=given", "setting.ts=directions", "setting.ta=directions", "setting.ts_trajectories=1")


def composed(*overrides: str) -> dict[str, Any]:
    with initialize_config_module("tailo_pl.configs", version_base="1.3"):
        config: Any = OmegaConf.to_container(compose("train", overrides=list(overrides)), resolve=True)
    return dict(config)


METHODS = {
    "smodice": ("reward", "policy"),
    "lobsdice": ("policy",),
    "oril": ("reward", "policy"),
    "rce": ("policy",),
    "dwbc": ("policy",),
    "marwil": ("reward", "policy"),
    "otr": ("policy",),
}


@pytest.mark.parametrize("method", METHODS)
def test_trains_and_plays(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    setting = TRAJECTORY if method == "lobsdice" else ()
    assert cli.main(["train", *SMALL, f"method={method}", *setting]) == 0, capsys.readouterr().err
    folder = Path("runs/pointmaze") / ("given" if setting else "examples") / method / "a"
    summary = json.loads((folder / "summary.json").read_text())
    assert tuple(stage["stage"] for stage in summary["stages"]) == METHODS[method]
    assert summary["failure"] is None and summary["episodes"] == 1
    _, evaluation = run.evaluate(folder, 1)
    assert np.isfinite(evaluation.score)
    header = (folder / "policy/metrics.csv").read_text().splitlines()[0]
    if method != "dwbc":  # which has no value
        assert all(f"value_{number}" in header for number in ("min", "max", "mean"))


def test_refuses_what_it_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("ts.npz", observations=np.random.default_rng(0).normal(size=(9, 4)), episode=np.zeros(9, dtype=int))
    rng = np.random.default_rng(1)
    np.savez("ta.npz", observations=rng.normal(size=(50, 4)), actions=rng.uniform(-1, 1, (50, 2)),
             terminals=np.arange(50) % 10 == 9)  # fmt: skip
    own = ("env=none", "source=files", "source.ts=ts.npz", "source.ta=ta.npz")
    for arguments, line in (
        (("method=lobsdice",), "method lobsdice: needs consecutive states of the expert, but TS of setting examples has no order"),  # noqa: E501
        (("method=dwbc", *own), "method dwbc, setting given: TS: states only found, expected their actions too: this method clones what the expert does"),  # noqa: E501
        (("method=oril", "trainer=ddp"), "trainer.devices: 2 given, but stage policy (TD3BC) trains in one process"),
        (("method=dwbc", "trainer=ddp"), "trainer.devices: 2 given, but stage policy (DWBC) trains in one process"),
        (("method=otr", "method.stages.policy.transport.epsilon=0"), "transport.epsilon: 0.0 given, expected a number in [0.01, inf)"),  # noqa: E501
        (("method=oril", "method.pu=three_step"), "method.pu_stages: 'three_step' asked for, expected one of one_step, two_step"),  # noqa: E501
    ):  # fmt: skip
        assert cli.main(["train", *SMALL, *arguments]) == 2, arguments
        err = capsys.readouterr().err
        assert err.strip().splitlines()[-1] == f"tailo: {line}"
        assert "Traceback" not in err and not Path("runs").exists()


class TestPaperPreset:
    """BASELINES.md's numbers, read from the composed configuration."""

    @pytest.mark.parametrize("method", METHODS)
    def test_budget(self, method: str) -> None:
        stages = composed("env=hopper", "preset=paper", f"method={method}")["method"]["stages"]
        policy = stages["policy"]
        assert policy["max_steps"] == (500_000 if method == "dwbc" else 1_000_000)
        assert policy["data"]["batch_size"] == (256 if method in ("dwbc", "otr") else 512)
        arguments = policy["model"]["init_args"]
        assert float(arguments["learning_rate"]) == (1e-4 if method == "dwbc" else 3e-4)
        assert arguments.get("discount", 0.99) == 0.99 and arguments.get("likelihood", "squashed") == "squashed"
        if "reward" in stages:
            assert (stages["reward"]["passes"], stages["reward"]["max_steps"]) == (1000, None)
            assert stages["reward"]["data"]["batch_size"] == 256

    @pytest.mark.parametrize(
        ("overrides", "divergence", "absorbing"),
        [
            (("env=hopper",), "kl", (True, True)),
            (("env=ant", "setting=mismatch"), "kl", (False, False)),
            (("env=pointmaze",), "chi2", (False, False)),
            (("env=walker2d", "method.absorbing=discriminator", "method.divergence=chi2"), "chi2", (True, False)),
        ],
    )  # fmt: skip
    def test_smodice(self, overrides: tuple[str, ...], divergence: str, absorbing: tuple[bool, bool]) -> None:
        stages = composed("method=smodice", *overrides)["method"]["stages"]
        assert stages["policy"]["model"]["init_args"]["divergence"] == divergence
        assert [stages[name]["model"]["init_args"]["absorbing"] for name in ("reward", "policy")] == list(absorbing)
        assert [stages[name]["data"]["absorbing"] for name in ("reward", "policy")] == list(absorbing)

    @pytest.mark.parametrize("score", ["probability", "logit"])
    @pytest.mark.parametrize(("pu", "objectives"), [
        ("one_step", ["debiased_unbounded"]), ("two_step", ["debiased", "mixed"]),
    ])  # fmt: skip
    def test_four_variants_of_oril(self, score: str, pu: str, objectives: list[str]) -> None:
        stages = read_experiment(composed("method=oril", f"method.score={score}", f"method.pu={pu}")).stages
        assert [stage.model["init_args"]["objective"] for stage in list(stages.values())[:-1]] == objectives
        assert stages["policy"].rewards is not None and stages["policy"].rewards.kind == score

    def test_passes_are_over_ts(self, pointmaze_data: Any) -> None:
        experiment = read_experiment(composed("env=pointmaze", "preset=paper", "method=smodice"))
        assert experiment.max_steps("reward") == 1000  # 200 states are one batch


def test_the_absorbing_state_reaches_value_and_discriminator(tmp_path: Path) -> None:
    config = composed(*SMALL, f"runs={tmp_path}", "method=smodice", "method.absorbing=full")
    folder = run.prepare(read_experiment(config))
    run.execute(folder)
    states, rewards = np.load(folder / "reward/scores.npy"), np.load(folder / "policy/rewards.npy")
    assert len(rewards) == len(states) + 1
    assert rewards[-1] == pytest.approx(np.load(folder / "reward/absorbing_score.npy")[0])
    weights = torch.load(folder / "policy/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert weights["value.0.weight"].shape[1] == 5 and weights["actor.network.0.weight"].shape[1] == 4


def test_only_the_packages_own_modules_are_loaded_from_a_run() -> None:
    assert import_class("tailo_pl.models.IQL", PolicyModule).__name__ == "IQL"
    for path in ("os.system", "tailo_pl.models.PUDiscriminator", "tailo_pl.models.Nothing", "tailo_plus.models.IQL"):
        with pytest.raises(UserError, match="found, expected a PolicyModule of tailo_pl"):
            import_class(path, PolicyModule)


@pytest.mark.parametrize("method", ["oril", "smodice"])
def test_a_run_that_stopped_ends_as_if_it_had_not(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several networks, targets, rhythms (ORIL's actor learns at every second step) and optimiser groups."""
    monkeypatch.chdir(tmp_path)
    arguments = [*SMALL, f"method={method}"]
    folders = [Path("runs/pointmaze/examples") / method / name for name in ("whole", "stopped")]
    assert cli.main(["train", *arguments, "name=whole"]) == 0
    assert cli.main(["train", *arguments, "name=stopped", "preset.baselines.steps=31"]) == 0
    more = "method.stages.policy.max_steps=60"
    assert cli.main(["train", f"resume={folders[1]}", more]) == 0, capsys.readouterr().err
    one, two = (torch.load(folder / "policy/checkpoints/last.ckpt", weights_only=True) for folder in folders)
    assert one["global_step"] == two["global_step"] == 60
    assert all(torch.equal(value, two["state_dict"][name]) for name, value in one["state_dict"].items())
    for number, state in one["optimizer_states"][0]["state"].items():
        theirs = two["optimizer_states"][0]["state"][number]
        assert all(torch.equal(value, theirs[key]) for key, value in state.items())
