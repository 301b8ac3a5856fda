"""The baselines as methods: each trains, scores and refuses as the others do, and goes on where it was stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.runs import small

from tailo_pl import cli
from tailo_pl.config.compose import composed, composed_config
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.models import LobsDICE
from tailo_pl.runs.evaluate import evaluate
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare

SMALL = small(
    10,
    "env=pointmaze",
    "name=a",
    "preset.baselines.steps=60",
    "preset.baselines.td_steps=60",
    "preset.baselines.dwbc_steps=110",
    "preset.baselines.recoil_steps=60",
    "preset.baselines.dilo_steps=60",
    "preset.baselines.batch=64",
    "preset.baselines.recoil_batch=64",
    "preset.baselines.dilo_batch=64",
    "trainer.log_every_n_steps=15",
    "checkpoint_every=20",
)
TRAJECTORY = ("setting=given", "setting.ts=directions", "setting.ta=directions", "setting.ts_trajectories=1")


METHODS = {
    "smodice": ("reward", "value", "policy"),
    "lobsdice": ("value", "policy"),
    "oril": ("reward", "policy"),
    "rce": ("policy",),
    "dwbc": ("policy",),
    "marwil": ("reward", "value", "policy"),
    "otr": ("value", "policy"),
    "seabo": ("value", "policy"),
    "recoil": ("value", "policy"),
    "dilo": ("value", "policy"),
}
NEED_AN_ORDER = ("lobsdice", "seabo", "dilo")


@pytest.mark.parametrize("method", METHODS)
def test_trains_and_plays(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    setting = TRAJECTORY if method in NEED_AN_ORDER else ()
    assert cli.main(["train", *SMALL, f"method={method}", *setting]) == 0, capsys.readouterr().err
    folder = Path("runs/pointmaze") / ("given" if setting else "examples") / method / "a"
    summary = json.loads((folder / "summary.json").read_text())
    assert tuple(stage["stage"] for stage in summary["stages"]) == METHODS[method]
    assert summary["failure"] is None and summary["episodes"] == 1
    _, evaluation = evaluate(folder, 1)
    assert np.isfinite(evaluation.score)
    judging = METHODS[method][-2] if "value" in METHODS[method] else "policy"
    header = (folder / judging / "metrics.csv").read_text().splitlines()[0]
    assert ("rollout/score" in header) == (judging == "policy")  # what only weighs steps is not played
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
        (("method=lobsdice",), "method lobsdice, setting examples: TS: states in no order found, expected consecutive states of the expert"),  # noqa: E501
        (("method=dilo",), "method dilo, setting examples: TS: no three consecutive states found, expected some: this method looks two states ahead"),  # noqa: E501
        (("method=seabo",), "method seabo, setting examples: TS: no two consecutive states found, expected some (or inputs.rewards.pairs=false)"),  # noqa: E501
        (("method=recoil", *own), "method recoil, setting given: TS: states only found, expected their actions too: this method clones what the expert does"),  # noqa: E501
        (("method=recoil", "method.expert=both"), "method.stages.value.batches.expert: expected one of 'none', 'states', 'pairs', 'actions'. Got value: both"),  # noqa: E501
        (("method=dilo", *TRAJECTORY, "trainer=ddp"), "trainer.devices: 2 given, but stage value (DILOWeights) trains in one process"),  # noqa: E501
        (("method=dwbc", *own), "method dwbc, setting given: TS: states only found, expected their actions too: this method clones what the expert does"),  # noqa: E501
        (("method=oril", "trainer=ddp"), "trainer.devices: 2 given, but stage policy (TD3BC) trains in one process"),
        (("method=dwbc", "trainer=ddp"), "trainer.devices: 2 given, but stage policy (DWBC) trains in one process"),
        (("method=otr", "method.learner.inputs.rewards.epsilon=0"), "transport.epsilon: 0.0 given, expected a number in [0.01, inf)"),  # noqa: E501
        (("method=oril", "method.pu=three_step"), "method.pu_objective: 'three_step' asked for, expected one of one_step, two_step, none"),  # noqa: E501
    ):  # fmt: skip
        assert cli.main(["train", *SMALL, *arguments]) == 2, arguments
        err = capsys.readouterr().err
        assert err.strip().splitlines()[-1] == f"tailo: {line}"
        assert "Traceback" not in err and not Path("runs").exists()


class TestPaperPreset:
    """The published numbers, read from the composed configuration."""

    @pytest.mark.parametrize("method", METHODS)
    def test_budget(self, method: str) -> None:
        stages = composed_config(["env=hopper", "preset=paper", f"method={method}"])["method"]["stages"]
        policy = stages["policy"]
        assert policy["max_steps"] == {"dwbc": 500_000, "dilo": 300_000}.get(method, 1_000_000)
        sizes = {"dwbc": 256, "otr": 256, "seabo": 256, "recoil": 1024, "dilo": 1024}
        assert policy["batches"]["batch_size"] == sizes.get(method, 512)
        arguments = policy["model"]
        assert float(arguments["learning_rate"]) == (1e-4 if method == "dwbc" else 3e-4)
        assert arguments.get("discount", 0.99) == 0.99
        head = arguments.get("head", {})
        assert head.get("likelihood", "squashed") == "squashed"
        limits = {"smodice": 7.24, "lobsdice": 7.0, "dwbc": 9.0}
        assert head.get("mean_limit") == limits.get(method)
        if "reward" in stages:
            assert (stages["reward"]["passes"], stages["reward"]["max_steps"]) == (1000, None)
            assert stages["reward"]["batches"]["batch_size"] == 256

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
        stages = composed_config(["method=smodice", *overrides])["method"]["stages"]
        reward, learner = stages["reward"], stages["value"] or stages["policy"]
        assert learner["model"]["divergence"] == divergence
        assert [stage["model"]["absorbing"] for stage in (reward, learner)] == list(absorbing)
        assert [stage["batches"]["absorbing"] for stage in (reward, learner)] == list(absorbing)

    @pytest.mark.parametrize(
        ("overrides", "steps"),
        [
            (("method.divergence=kl",), (4_000, None, 10_000)),  # its own actor beside its value
            (("method.divergence=chi2",), (1_000, 1_000, 20_000)),  # weights handed to TAILO's policy stage
            (("method.divergence=kl", "preset.baselines.actor=shared"), (4_000, 10_000, 20_000)),
            (("method.divergence=chi2", "preset=paper"), (None, None, 1_000_000)),
        ],
    )
    def test_whose_actor_smodice_takes(self, overrides: tuple[str, ...], steps: tuple[int | None, ...]) -> None:
        stages = composed_config(["method=smodice", "env=hopper", *overrides])["method"]["stages"]
        found = [stages[name] and stages[name]["max_steps"] for name in ("reward", "value", "policy")]
        assert tuple(found) == steps

    @pytest.mark.parametrize("score", ["probability", "logit"])
    @pytest.mark.parametrize(("pu", "objectives"), [
        ("one_step", ["debiased_unbounded"]), ("two_step", ["debiased", "mixed"]), ("none", ["cross_entropy"]),
    ])  # fmt: skip
    def test_variants_of_oril(self, score: str, pu: str, objectives: list[str]) -> None:
        stages = composed(["method=oril", f"method.score={score}", f"method.pu={pu}"]).stages
        assert [stage.model["init_args"]["objective"] for stage in list(stages.values())[:-1]] == objectives
        assert stages["policy"].inputs["rewards"].kind == score

    def test_initial_weights_of_lobsdice(self, seeded: None) -> None:
        module = LobsDICE(11, [-1.0] * 3, [1.0] * 3)
        assert [module.actor.network[-1].bias is None, module.nu[-1].bias is None] == [False, True]
        for network in (module.cost, module.nu, module.actor.network):
            deviation = (2 / 256) ** 0.5
            assert network[2].weight.std().item() == pytest.approx(deviation, rel=0.02)
            assert network[2].weight.abs().max().item() <= 2 * deviation / 0.879 and not network[2].bias.any()

    @pytest.mark.parametrize(("env", "experts"), [("walker2d", 100), ("hopper", 200)])
    def test_experts_in_ta(self, env: str, experts: int) -> None:
        for setting in ("smodice", "incomplete_ta", "incomplete_ts", "recoil_me"):
            assert composed_config([f"env={env}", f"setting={setting}"])["setting"]["experts"] == experts
        assert composed_config([f"env={env}", "setting=standard"])["setting"]["experts"] == 40

    def test_passes_are_over_ts(self, pointmaze_data: Any) -> None:
        experiment = composed(["env=pointmaze", "preset=paper", "method=smodice"])
        assert experiment.max_steps("reward") == 1000  # 200 states are one batch


def test_the_absorbing_state_reaches_value_and_discriminator(tmp_path: Path) -> None:
    folder = prepare(
        composed([*SMALL, f"runs={tmp_path}", "method=smodice", "method.absorbing=full", "preset.baselines.actor=own"])
    )
    execute(folder)
    states, rewards = np.load(folder / "reward/scores.npy"), np.load(folder / "policy/rewards.npy")
    assert len(rewards) == len(states) + 1
    assert rewards[-1] == pytest.approx(np.load(folder / "reward/absorbing_score.npy")[0])
    weights = torch.load(folder / "policy/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert weights["value.0.weight"].shape[1] == 5 and weights["actor.network.0.weight"].shape[1] == 4


def test_recoil_on_pairs_of_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *SMALL, *TRAJECTORY, "method=recoil", "method.expert=pairs"]) == 0, (
        capsys.readouterr().err
    )
    ended = torch.load("runs/pointmaze/given/recoil/a/value/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert ended["critics.first.0.weight"].shape[1] == 8  # two states of pointmaze, no action


@pytest.mark.parametrize("expert", ["actions", "pairs"])
def test_recoil_sees_where_episodes_end(expert: str, task_data: Any, make_trainer: Any) -> None:
    """Where no state behind a fall is recorded, the fall is (s, s) and worth less than all else."""
    states = np.arange(12, dtype=np.float32)[:, None] % 6
    recording = Recording(
        states, np.array([0, 6]), actions=np.zeros((12, 1), dtype=np.float32), terminals=np.arange(12) == 5,
        timeouts=np.arange(12) == 11,
    )  # fmt: skip
    ta, ts = Trajectories.of(recording), Trajectories.of(replace(recording, actions=recording.actions + 1))
    batches = composed_config(["env=hopper", "method=recoil", f"method.expert={expert}"])["method"]["stages"]["value"]
    drawn = {"steps": batches["batches"]["steps"], "expert": expert, "batch_size": 400}
    data = task_data(ts, ta, batches="transitions", **drawn)
    data.trainer = make_trainer()
    batch = data.batches.maker()(0)
    falls = batch.done > 0
    assert 20 < falls.sum() < 60  # one of eleven steps: all but the one that ran out of time
    assert (batch.observations[falls] == 5).all() and (batch.next_observations[falls] == 5).all()
    assert (batch.next_observations[~falls] == batch.observations[~falls] + 1).all()


@pytest.mark.parametrize("method", ["oril", "smodice", "seabo", "dilo", "recoil"])
def test_a_run_that_stopped_ends_as_if_it_had_not(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Several networks, targets, rhythms (ORIL's actor learns at every second step) and optimiser groups."""
    monkeypatch.chdir(tmp_path)
    own = "preset.baselines.actor=own"
    arguments = [*SMALL, f"method={method}", own, *(TRAJECTORY if method in NEED_AN_ORDER else ())]
    setting = "given" if method in NEED_AN_ORDER else "examples"
    folders = [Path("runs/pointmaze") / setting / method / name for name in ("whole", "stopped")]
    assert cli.main(["train", *arguments, "name=whole"]) == 0
    kind = {"dilo": "dilo_steps", "recoil": "recoil_steps", "oril": "td_steps", "seabo": "td_steps"}.get(
        method, "steps"
    )
    assert cli.main(["train", *arguments, "name=stopped", f"preset.baselines.{kind}=31"]) == 0
    more = "method.stages.policy.max_steps=60"
    assert cli.main(["train", f"resume={folders[1]}", more]) == 0, capsys.readouterr().err
    one, two = (torch.load(folder / "policy/checkpoints/last.ckpt", weights_only=True) for folder in folders)
    assert one["global_step"] == two["global_step"] == 60
    assert all(torch.equal(value, two["state_dict"][name]) for name, value in one["state_dict"].items())
    for number, state in one["optimizer_states"][0]["state"].items():
        theirs = two["optimizer_states"][0]["state"][number]
        assert all(torch.equal(value, theirs[key]) for key, value in state.items())
