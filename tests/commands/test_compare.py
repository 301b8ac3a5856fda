"""`tailo compare`: every method and seed once, what failed named, what is there reused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.cli import main
from tailo_pl.errors import UserError
from tailo_pl.runs.comparison import Comparison

TINY = (
    "env=pointmaze",
    "preset.policy_steps=5",
    "preset.rollout.episodes=1",
    "preset.held_out.trajectories=0",
    "trainer=cpu",
    "logger=csv",
)


def test_jobs() -> None:
    comparison = Comparison.of(["env=hopper", "methods=bc,smodice:method.divergence=kl", "seeds=2"])
    by_method = dict(comparison.jobs())
    assert list(by_method) == ["bc", "smodice:method.divergence=kl"]
    jobs = [job for jobs in by_method.values() for job in jobs]
    assert [job[:-1] for job in jobs] == [
        ["env=hopper", "method=bc", "seed=0"],
        ["env=hopper", "method=bc", "seed=1"],
        ["env=hopper", "method=smodice", "method.divergence=kl", "seed=0"],
        ["env=hopper", "method=smodice", "method.divergence=kl", "seed=1"],
    ]
    assert len({job[-1] for job in jobs}) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["env=hopper"], "no methods given"),
        (["methods=bc", "seeds=0"], "seeds=0 given"),
        (["methods=bc", "seed=1"], "'seed=1' given"),
        (["methods=bc", "seeds=³"], "seeds=³ given, expected how many"),
        (["methods=bc", "fast"], "'fast' given"),
        (["methods=bc", "env=hopper", "env=ant"], "env given twice"),
        (["methods=bc:"], "methods=bc: given, expected a name"),
        (["methods=bc:alpha"], "methods=bc:alpha given, expected a name, or name:key=value"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Comparison.of(arguments)


def test_a_value_may_hold_commas() -> None:
    comparison = Comparison.of(["methods=bc:method.x=[64,64]:method.y={a: 1, b: 2},tailo"])
    assert comparison.methods == ("bc:method.x=[64,64]:method.y={a: 1, b: 2}", "tailo")


@pytest.mark.parametrize(
    ("methods", "line"),
    [
        ("bc,smodise", "method: 'smodise' given, expected one of bc, "),
        ("bc,smodice:method.divergence=kll", "method.best_with_divergence: 'kll' asked for, expected one of kl, "),
        ("bc,smodice:method.divergense=kl", "method.divergense: unknown key"),
        ("bc,smodice:method.absorbing=ful", "method.absorbing_seen_by: 'ful' asked for, expected one of none, "),
        ("lobsdice", "methods=lobsdice: method lobsdice, setting examples: TS: states in no order found"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(
    methods: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.html").write_text("of before")
    assert main(["compare", f"methods={methods}", *TINY]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"tailo: {line}")
    assert Path("report.html").read_text() == "of before" and not Path("runs").exists()


def test_a_report_that_cannot_be_written_is_said_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "methods=bc", "--out", "nowhere/x.html", *TINY]) == 2
    assert capsys.readouterr().err == "tailo: nowhere/x.html: cannot be written (No such file or directory)\n"
    assert not Path("runs").exists()


def test_a_finished_run_of_other_data_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("ts.npz", observations=rng.normal(size=(9, 4)), episode=np.zeros(9, dtype=int))
    own = ["env=none", "source=files", "source.ts=ts.npz", "source.ta=ta.npz", "methods=bc", "seeds=1", *TINY[1:]]
    own = [one for one in own if not one.startswith("preset.rollout")]
    for status in (0, 2):
        np.savez("ta.npz", observations=rng.normal(size=(50, 4)), actions=rng.uniform(-1, 1, (50, 2)),
                 terminals=np.arange(50) % 10 == 9)  # fmt: skip
        assert main(["compare", *own]) == status, capsys.readouterr().err
    assert "its data has changed" in capsys.readouterr().err


def test_runs_what_is_missing_and_names_what_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "methods=bc,lobsdice", "seeds=2", *TINY]) == 2
    said = capsys.readouterr()
    first, *progress, last = said.err.strip().splitlines()  # said before anything runs, and again at the end
    assert first == last
    assert first.startswith("tailo: methods=lobsdice: method lobsdice, setting examples: TS: states in no order found")
    assert progress[0] == "tailo: bc seed=0 (1 of 2)" and not any("lobsdice" in line for line in progress)
    assert "bc" in said.out and Path("report.html").stat().st_size > 1000
    summaries = sorted(Path("runs").rglob("summary.json"))
    assert [json.loads(path.read_text())["seed"] for path in summaries] == [0, 1]
    before = [path.stat().st_mtime_ns for path in summaries]
    assert main(["compare", "methods=bc", "seeds=2", *TINY]) == 0
    assert [path.stat().st_mtime_ns for path in summaries] == before
