"""Trials on the real thing: which policy to try next, kept in a file; and which of several runs is advised."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.cli import main
from tailo_pl.errors import UserError
from tailo_pl.runs.advice import Judged, Told, told_apart
from tailo_pl.runs.trials import Candidate, in_order, parse_trial, read_trials


def test_numbers_decide_until_trials_do() -> None:
    good, bad = Candidate("good", 0.9), Candidate("bad", 0.1)
    assert [one.run for one in in_order([bad, good])] == ["good", "bad"]
    failed, worked = Candidate("good", 0.9, trials=6, successes=0), Candidate("bad", 0.1, trials=6, successes=6)
    assert [one.run for one in in_order([failed, worked])] == ["bad", "good"]
    assert good.mean == pytest.approx(2.3 / 3) and failed.mean == pytest.approx(2.3 / 9)


@given(st.floats(0, 1), st.integers(0, 50), st.data())
def test_a_success_never_lowers_what_is_expected(promise: float, trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    before = Candidate("a", promise, trials, successes)
    assert 0 < before.mean < 1
    assert Candidate("a", promise, trials + 1, successes + 1).mean > before.mean
    assert Candidate("a", promise, trials + 1, successes).mean < before.mean


def test_the_bandit_finds_the_best_policy_although_the_numbers_prefer_another() -> None:
    rng = np.random.default_rng(0)
    truth = {"a": 0.2, "b": 0.9, "c": 0.3}
    known = {"a": Candidate("a", 0.9), "b": Candidate("b", 0.6), "c": Candidate("c", 0.8)}
    tried = []
    for _ in range(30):
        run = in_order(list(known.values()))[0]
        worked = float(rng.uniform() < truth[run.run])
        known[run.run] = Candidate(run.run, run.promise, run.trials + 1, run.successes + worked)
        tried.append(run.run)
    assert tried[0] == "a" and tried[-10:].count("b") >= 8


@pytest.mark.parametrize("text", ["runs/a", "runs/a=2", "runs/a=-1", "runs/a=yes", "=1", "runs/a=nan"])
def test_a_trial_is_a_run_and_its_success(text: str) -> None:
    assert parse_trial("runs/a=b=0.5") == ("runs/a=b", 0.5)
    with pytest.raises(UserError, match="expected RUN=success with a success from 0 to 1"):
        parse_trial(text)


@pytest.mark.parametrize("text", ["[]", '{"schema": 1}', '{"schema": 1, "trials": {"a": [2]}}', "{"])
def test_a_damaged_file_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "trials.json").write_text(text)
    with pytest.raises(UserError, match=r"trials\.json: "):
        read_trials(tmp_path / "trials.json")


def run_with(followed: float, error: float, level: str = "good") -> Judged:
    numbers = {"followed": followed, "held_out_error": error, "held_out_bc": 1.0}
    summary: Any = {"verdict": {"level": level, "text": "", "numbers": numbers}}
    return Judged(Path(f"{followed}-{error}"), summary)


class TestToldApart:
    """Runs that differ in one thing say which value of it is worth more, or that they do not tell."""

    def told(self, *runs: tuple[Judged, dict[str, str]]) -> list[Told]:
        return told_apart([run for run, _ in runs], [chosen for _, chosen in runs])

    def test_by_where_the_weight_is(self) -> None:
        one, other = (run_with(0.5, 0.2), {"method.alpha": "1.25"}), (run_with(0.9, 0.2), {"method.alpha": "4"})
        assert self.told(one, other) == [
            Told("method.alpha", ["4", "1.25"], "90% of the weight where TS goes, not 50%")
        ]

    def test_weight_of_first_steps_counts_where_there_is_less_of_it(self) -> None:
        late = Judged(Path("late"), copy.deepcopy(run_with(0.95, 0.2).summary))
        late.summary["verdict"]["numbers"]["followed_at_first"] = 0.35
        one, other = (late, {"method.gamma": "0"}), (run_with(0.9, 0.2), {"method.gamma": "0.998"})
        assert self.told(one, other)[0].values == ["0.998", "0"]

    def test_by_the_verdict(self) -> None:
        tailo, bc = {"method": "tailo", "method.alpha": "4", "head": "a"}, {"method": "bc", "head": "a"}
        assert self.told((run_with(0.9, 0.2, "bad"), bc), (run_with(0.8, 0.3), tailo)) == [
            Told("method", ["tailo", "bc"], "verdict good, not bad")
        ]

    def test_by_held_out_error_where_it_is_clearly_smaller(self) -> None:
        runs = [(run_with(0.9, 0.2), {"head": "regression"}), (run_with(0.9, 0.5), {"head": "gaussian"})]
        assert self.told(*runs)[0].why == "held-out error 20% of that of cloning all alike, not 50%"
        runs = [(run_with(0.9, 0.20), {"head": "regression"}), (run_with(0.905, 0.21), {"head": "gaussian"})]
        assert self.told(*runs)[0].why == ""

    def test_only_runs_that_are_alike_in_all_else_tell(self) -> None:
        apart = [(run_with(0.5, 0.2), {"head": "a", "alpha": "1"}), (run_with(0.9, 0.2), {"head": "b", "alpha": "2"})]
        assert self.told(*apart) == []
        against = [(run_with(0.9, 0.2), {"head": "a", "alpha": "3"}), (run_with(0.5, 0.2), {"head": "b", "alpha": "3"})]
        once = [(run_with(0.5, 0.2), {"head": "a", "alpha": "1"}), (run_with(0.9, 0.2), {"head": "b", "alpha": "1"})]
        assert next(one for one in self.told(*once, *against) if one.name == "head").why == ""  # they disagree


@pytest.mark.slow
def test_advice_on_a_run(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trials.json"
    assert main(["advise", str(run_dir), "--trial", f"{run_dir}=1", "--trials", str(file)]) == 0
    assert json.loads(file.read_text())["trials"] == {str(run_dir): [1.0]}
    assert main(["advise", str(run_dir), "--trial", f"{run_dir}=0", "--trials", str(file)]) == 0
    assert json.loads(file.read_text())["trials"] == {str(run_dir): [1.0, 0.0]}
    out = capsys.readouterr().out
    assert f"try {run_dir} next" in out and "1 of 2" in out and "nothing is trained for this" in out
    assert f"checkpoint of {run_dir}: step " in out and "not told apart" not in out  # one run differs from nothing
    for name in ("alpha and gamma", "beta_1", "head", "method"):
        assert f"\n{name}: " in out
    assert main(["advise", str(run_dir), "--trial", "elsewhere=1", "--trials", str(file)]) == 2
    assert main(["advise"]) == 2 and main(["advise", "nowhere"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3
