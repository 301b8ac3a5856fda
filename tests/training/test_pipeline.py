"""Stages: what they are keyed by, what is reused, and what each ablation changes."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.runs import SMALL

from tailo_pl.config import experiment
from tailo_pl.config.compose import composed
from tailo_pl.errors import UserError
from tailo_pl.runs.evaluate import evaluate
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import load_run, prepare
from tailo_pl.runs.summary import read_summary
from tailo_pl.training.pipeline import stage_key
from tailo_pl.training.results import training_alone


def keys(*overrides: str) -> dict[str, str]:
    cell = composed([*SMALL, *overrides])
    found: dict[str, str] = {}
    for name in cell.stages:
        found[name] = stage_key(cell, name, found)
    return found


def trained(folder: Path, name: str, *overrides: str) -> tuple[Path, dict[str, Any]]:
    run_dir = prepare(composed([*SMALL, f"runs={folder}", f"name={name}", *overrides]))
    return run_dir, execute(run_dir)


def weights_of(run_dir: Path, stage: str) -> dict[str, torch.Tensor]:
    checkpoint = torch.load(run_dir / stage / "checkpoints" / "last.ckpt", weights_only=True)
    state: dict[str, torch.Tensor] = checkpoint["state_dict"]
    return state


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One small run of all three stages."""
    return trained(tmp_path_factory.mktemp("runs"), "first")


# What each override must leave alone and what it must train again, by stage.
CHANGES = {
    "method.alpha=2": {"policy"},
    "method.gamma=0": {"policy"},
    "method.score=probability": {"policy"},
    "preset.policy_batch=64": {"policy"},
    "head=censored": {"policy"},
    "preset.network.members=2": {"policy"},
    "preset.network.norm=layer": {"policy"},
    "preset.likelihood=squashed": set(),
    "preset.sampling=uniform": {"policy"},
    "method.beta_1=0.5": {"formal", "policy"},
    "method.beta_2=1": {"formal", "policy"},
    "method.beta_2=0.3": {"formal", "policy"},
    "method.eta_p=0.4": {"pretrain", "formal", "policy"},
    "method.lipschitz=0": {"pretrain", "formal", "policy"},
    "preset.discriminator_batch=32": {"pretrain", "formal", "policy"},
    "source.seed=1": {"pretrain", "formal", "policy"},
    "setting.count=100": {"pretrain", "formal", "policy"},
    "seed=1": {"pretrain", "formal", "policy"},
    "trainer.precision=64-true": {"pretrain", "formal", "policy"},
    "trainer.devices=2": set(),
    "trainer.log_every_n_steps=7": set(),
    "runs=elsewhere": set(),
}


@pytest.mark.parametrize("override", CHANGES)
def test_a_change_trains_again_exactly_the_stages_it_reaches(override: str) -> None:
    before, after = keys(), keys(override)
    assert {stage for stage in before if before[stage] != after[stage]} == CHANGES[override]


def test_policy_seeds_can_share_discriminators() -> None:
    before, after = keys("seed=0"), keys("seed=1", "discriminator_seed=0")
    assert before["pretrain"] == after["pretrain"] and before["formal"] == after["formal"]
    assert before["policy"] != after["policy"]


def test_changed_alpha_reuses_both_discriminators_and_changed_lambda_none(first: tuple[Path, dict[str, Any]]) -> None:
    root = Path(first[0]).parents[3]
    run_dir, summary = trained(root, "alpha", "method.alpha=2")
    reused = {stage["stage"]: stage["reused_from"] for stage in summary["stages"]}
    assert reused == {
        "pretrain": "pointmaze/examples/tailo/first/pretrain",
        "formal": "pointmaze/examples/tailo/first/formal",
        "policy": None,
    }
    assert np.array_equal(np.load(run_dir / "formal/scores.npy"), np.load(first[0] / "formal/scores.npy"))
    assert not np.array_equal(np.load(run_dir / "policy/weights.npy"), np.load(first[0] / "policy/weights.npy"))
    _, summary = trained(root, "lambda", "method.lipschitz=1")
    assert [stage["reused_from"] for stage in summary["stages"]] == [None, None, None]


def test_a_run_whose_policy_was_interrupted_goes_on_from_its_discriminators(tmp_path: Path) -> None:
    run_dir, before = trained(tmp_path, "interrupted")
    expected = weights_of(run_dir, "policy")
    (run_dir / "policy" / "stage.json").unlink()  # as if the process had died in the policy stage
    after = execute(run_dir)
    # Times are those of the first attempt: the discriminators were not trained again.
    assert [stage["seconds"] for stage in after["stages"]][:2] == [stage["seconds"] for stage in before["stages"]][:2]
    again = weights_of(run_dir, "policy")
    assert all(torch.equal(expected[name], again[name]) for name in expected)


def test_summary_names_data_versions_and_policy(first: tuple[Path, dict[str, Any]]) -> None:
    run_dir, summary = first
    assert summary == read_summary(run_dir)
    assert (run_dir / summary["checkpoint"]).is_file()
    assert summary["preset"] == "fast" and summary["setting"] == "examples"
    assert summary["data"]["ts"]["states"] == 200
    assert set(summary["data"]["ta"]["origins"]) == {"left", "right", "up", "down"}
    assert summary["data"]["source"].startswith("bundled")
    assert {"torch", "lightning", "mujoco", "tailo_pl"} <= set(summary["versions"])


def test_safe_negatives_and_weights_are_those_of_the_equations(first: tuple[Path, dict[str, Any]]) -> None:
    run_dir, _ = first
    ta = load_run(run_dir).task.ta
    pretrain, formal = np.load(run_dir / "pretrain/scores.npy"), np.load(run_dir / "formal/scores.npy")
    means = np.array([pretrain[ta.offsets[i] : ta.offsets[i + 1]].mean(dtype=np.float64) for i in range(len(ta))])
    assert np.array_equal(np.load(run_dir / "formal/negatives.npy"), means < np.quantile(means, 0.8))
    # One trajectory worked out directly: W_t = exp(1.25*R_t) + 0.98*W_{t+1}, the last divided by 1 - 0.98.
    weights, largest = np.load(run_dir / "policy/weights.npy"), 0.0
    direct = []
    for i in range(len(ta)):
        terms = np.exp(1.25 * formal[ta.offsets[i] : ta.offsets[i + 1]].astype(np.float64))
        value = terms[-1] / (1 - 0.98)
        column = [value]
        for term in terms[-2::-1]:
            value = term + 0.98 * value
            column.append(value)
        direct.append(column[::-1])
        largest = max(largest, *column)
    assert np.allclose(weights, np.concatenate(direct) / largest, rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "objective"), [("tailo_one_step", "debiased_unbounded"), ("tailo_no_pu", "cross_entropy")]
)
def test_single_discriminator_ablations_see_all_of_ta(method: str, objective: str) -> None:
    stages = composed([*SMALL, f"method={method}"]).stages
    assert list(stages) == ["formal", "policy"]
    formal = stages["formal"]
    assert not formal.inputs and formal.model["init_args"]["objective"] == objective


def test_single_discriminator_ablation_keeps_the_papers_40000_steps() -> None:
    assert composed(["preset=paper", "method=tailo_one_step"]).stages["formal"].max_steps == 40000


def test_bc_has_one_stage_and_no_weights(tmp_path: Path) -> None:
    run_dir, summary = trained(tmp_path, "bc", "method=bc")
    assert [stage["stage"] for stage in summary["stages"]] == ["policy"]
    assert not (run_dir / "policy" / "weights.npy").exists()


def test_a_run_that_exists_is_refused_and_left_alone(first: tuple[Path, dict[str, Any]]) -> None:
    run_dir, _ = first
    before = sorted(run_dir.rglob("*"))
    with pytest.raises(UserError, match="this run exists"):
        prepare(composed([*SMALL, f"runs={run_dir.parents[3]}", "name=first"]))
    assert sorted(run_dir.rglob("*")) == before


def test_evaluate_plays_fresh_episodes_and_repeats_itself(first: tuple[Path, dict[str, Any]]) -> None:
    run_dir, _ = first
    one, evaluation = evaluate(run_dir, 2, seed=5)
    two, _ = evaluate(run_dir, 2, seed=5)
    assert evaluation.episodes == 2 and np.array_equal(one.returns, two.returns)
    assert evaluation.success is not None and 0 <= evaluation.success <= 1


def test_evaluate_says_which_checkpoint_is_damaged(tmp_path: Path) -> None:
    run_dir, summary = trained(tmp_path, "damaged", "method=bc")
    path = run_dir / summary["checkpoint"]
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"last\.ckpt: cannot be read as a PolicyModule"):
        evaluate(run_dir, 1)


def test_mixed_precision_trains_every_stage(tmp_path: Path) -> None:
    run_dir, summary = trained(tmp_path, "mixed", "trainer.precision=bf16-mixed")
    assert all(np.isfinite(stage["loss"]) for stage in summary["stages"])
    assert np.load(run_dir / "formal/scores.npy").dtype == np.float32
    assert all(value.dtype == torch.float32 for value in weights_of(run_dir, "policy").values())


def test_a_single_trajectory_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = experiment.load_task

    def single(source: Any, setting: Any) -> Any:
        task = load(source, setting)
        return type(task)(task.ts, task.ta.take([0]))

    monkeypatch.setattr(experiment, "load_task", single)
    with pytest.raises(UserError, match=r"beta_1 leaves no safe negatives"):
        prepare(composed([*SMALL, f"runs={tmp_path / 'runs'}"]))
    assert not (tmp_path / "runs").exists()


def test_a_stage_that_another_run_trains_is_waited_for(tmp_path: Path) -> None:
    began = threading.Event()
    trained: list[str] = []

    def other() -> None:
        with training_alone(tmp_path, "key"):
            began.set()
            time.sleep(0.3)
            trained.append("key")

    thread = threading.Thread(target=other)
    thread.start()
    assert began.wait(10)
    with training_alone(tmp_path, "another"), training_alone(None, "key"):
        assert trained == []  # nobody waits for another stage, nor where nothing is shared
    with training_alone(tmp_path, "key"):
        assert trained == ["key"]
    thread.join()
