"""`tailo compare`: every method and seed once, what failed named, what is there reused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailo_pl.cli import main
from tailo_pl.comparison import Comparison
from tailo_pl.errors import UserError

TINY = (
    "env=pointmaze",
    "preset.policy_steps=5",
    "preset.rollout.episodes=1",
    "preset.hold_out=null",
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
        (["methods=bc", "fast"], "'fast' given"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Comparison.of(arguments)


def test_runs_what_is_missing_and_names_what_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "methods=bc,lobsdice", "seeds=2", *TINY]) == 2
    said = capsys.readouterr()
    first, *progress, last = said.err.strip().splitlines()  # said before anything runs, and again at the end
    assert first == last
    assert first.startswith("tailo: methods=lobsdice: method lobsdice: needs consecutive states of the expert")
    assert progress and not any("lobsdice" in line for line in progress)
    assert "bc" in said.out and Path("report.html").stat().st_size > 1000
    summaries = sorted(Path("runs").rglob("summary.json"))
    assert [json.loads(path.read_text())["seed"] for path in summaries] == [0, 1]
    before = [path.stat().st_mtime_ns for path in summaries]
    assert main(["compare", "methods=bc", "seeds=2", *TINY]) == 0
    assert [path.stat().st_mtime_ns for path in summaries] == before
