"""A verdict without a simulator: an arm's right run passes, three wrong ones are named, whatever AUROC says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.arm import UNVISITED, success, write_expert, write_logs

from tailo_pl import load_policy
from tailo_pl.cli import main
from tailo_pl.runs.summary import Data
from tailo_pl.runs.verdict import judge

BUDGET = (
    "preset.pretrain_steps=300", "preset.formal_steps=500", "preset.policy_steps=800", "preset.policy_batch=128",
    "preset.network.members=1", "preset.network.hidden=[64,64]", "trainer=cpu", "trainer.precision=32-true",
    "logger=csv", "threads=1", "source.action_low=-0.08", "source.action_high=0.08",
)  # fmt: skip
TAILO = ("method.alpha=4", "method.gamma=0.98")
UNLIKE = "TS looks unlike anything in TA: check units"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_logs(tmp_path_factory.mktemp("arm"))


def train(folder: Path, logs: Path, ts: Path, *overrides: str) -> tuple[int, Path]:
    """Exit status of `tailo train --strict`, and the run's folder."""
    told = ("source=files", f"source.ts={ts}", f"source.ta={logs}", *BUDGET, *overrides, f"runs={folder}", "name=a")
    status = main(["train", "--strict", *told])
    return status, next(folder.glob("none/given/*/a"), folder)


def verdict_of(run: Path) -> Any:
    return json.loads((run / "summary.json").read_text())["verdict"]


@pytest.mark.slow
class TestFourRows:
    def test_the_right_run_passes(self, tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status, run = train(tmp_path, logs, write_expert(tmp_path, "expert"), *TAILO)
        verdict = verdict_of(run)
        assert success(load_policy(run)) >= 0.9  # the truth, which nothing above has seen
        assert (status, verdict["level"]) == (0, "good")
        carry = verdict["numbers"]["effective_trajectories"]
        assert verdict["text"] == f"learnt what TS shows from {carry:.0f} of 140 logs" and 10 < carry < 35
        assert f"verdict good: {verdict['text']}\n" in capsys.readouterr().out
        assert verdict["numbers"]["followed"] > 0.8 and verdict["numbers"]["covered"] == 1
        assert verdict["numbers"]["held_out_error"] < verdict["numbers"]["held_out_mean"]

    def test_bc_takes_no_notice_of_ts(self, tmp_path: Path, logs: Path) -> None:
        status, run = train(tmp_path, logs, write_expert(tmp_path, "expert"), "method=bc")
        assert success(load_policy(run)) <= 0.2
        assert (status, verdict_of(run)["level"]) == (3, "bad")
        assert verdict_of(run)["text"] == (
            "clones all of TA alike, 14% of which goes where TS goes: TS has no say in it"  # one pose of seven
        )

    def test_degrees(self, tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        ts = write_expert(tmp_path, "degrees", unit=180 / np.pi)
        status, _ = train(tmp_path, logs, ts, *TAILO)
        said = capsys.readouterr().err
        assert status == 2 and not list(tmp_path.glob("none/**/config.yaml"))
        assert "it would be 100% if TS had degrees where TA has radians in all dimensions: is that so?" in said
        status, run = train(tmp_path, logs, ts, *TAILO, "source.trust=true")
        quality = json.loads((run / "summary.json").read_text())["stages"][1]["quality"]
        assert quality["auroc"] > 0.999  # which looks best where the data is worst
        assert success(load_policy(run)) <= 0.2
        assert (status, verdict_of(run)["level"]) == (3, "bad") and verdict_of(run)["text"].startswith(UNLIKE)

    def test_a_pose_the_logs_never_visit(self, tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
        ts = write_expert(tmp_path, "unvisited", UNVISITED)
        status, _ = train(tmp_path, logs, ts, *TAILO)
        assert status == 2 and "the logs" in capsys.readouterr().err
        status, run = train(tmp_path, logs, ts, *TAILO, "source.trust=true")
        assert success(load_policy(run), UNVISITED) == 0
        assert (status, verdict_of(run)["level"]) == (3, "bad") and verdict_of(run)["text"].startswith(UNLIKE)


DATA: Data = {
    "source": "given",
    "fingerprint": "0",
    "recipe": "0",
    "ts": {"trajectories": 1, "states": 1},
    "ta": {"trajectories": 300, "steps": 9000, "origins": {}},
}
SCORES = {"auroc": 0.9, "ta_share": 0.1, "reach": 1.0}
POLICY = {
    "held_out_error": 0.1, "held_out_mean": 0.4, "held_out_bc": 0.2,
    "effective_steps": 900.0, "effective_trajectories": 31.2, "covered": 0.98, "followed": 0.95,
}  # fmt: skip


def said(scores: Any, policy: Any, failure: Any = None) -> tuple[str, str]:
    stages = [{"stage": "formal", "quality": scores}, {"stage": "policy", "quality": policy}]
    verdict = judge(stages, DATA, failure, "tailo")
    return verdict["level"], verdict["text"]


class TestWords:
    def test_good(self) -> None:
        assert said(SCORES, POLICY) == ("good", "learnt what TS shows from 31 of 300 logs")

    def test_ts_elsewhere(self) -> None:
        level, text = said(SCORES, {**POLICY, "covered": 0.07})
        assert level == "bad" and text.startswith(UNLIKE) and "7% of TS's states" in text
        level, text = said({**SCORES, "ta_share": 0.0, "reach": 0.3}, POLICY)
        assert level == "bad" and "none of 300 logs is taken for the expert's, and the best steps come 30% of" in text

    def test_weight_on_other_logs(self) -> None:
        assert said(SCORES, {**POLICY, "followed": 0.2})[1] == (
            "only 20% of the weight is in logs that go where TS goes"
        )

    def test_weight_that_comes_too_late(self) -> None:
        level, text = said(SCORES, {**POLICY, "followed_at_first": 0.04})
        assert level == "doubtful" and text.startswith("where logs begin, only 4% of the weight is in logs that go")
        assert said(SCORES, {**POLICY, "followed_at_first": 0.5})[0] == "good"

    def test_too_little_data(self) -> None:
        assert said(SCORES, {**POLICY, "effective_trajectories": 1.4}) == (
            "doubtful", "too little data carries the weight: 1.4 of 300 logs",
        )  # fmt: skip

    def test_no_better_than_the_mean(self) -> None:
        level, text = said(SCORES, {**POLICY, "held_out_error": 0.39})
        assert level == "doubtful" and text.endswith("(error 0.39, of the mean 0.4)")

    def test_worse_than_cloning_all_alike(self) -> None:
        level, text = said(SCORES, {**POLICY, "held_out_error": 0.22})
        assert level == "doubtful" and "worse than by cloning all of TA alike (error 0.22, of that 0.2)" in text
        assert said(SCORES, {**POLICY, "held_out_error": 0.205})[0] == "good"

    def test_cloning_all(self) -> None:
        assert said({}, POLICY) == ("good", "clones all 300 logs, 95% of which go where TS goes")
        assert said({}, {**POLICY, "followed": 0.2})[0] == "bad"

    def test_a_run_that_diverged(self) -> None:
        assert said({}, {}, {"stage": "formal", "step": 7}) == (
            "bad", "stage formal ended in a numerical error at step 7",
        )  # fmt: skip

    def test_a_method_that_tells_nothing(self) -> None:
        assert said({}, {})[0] == "unknown"
        assert said({"reach": "far", "ta_share": None}, {"covered": float("nan")})[0] == "unknown"
