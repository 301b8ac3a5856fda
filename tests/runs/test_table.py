"""`tailo table`: which runs make one row, and what stands in it."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.terminal import on_terminal

from tailo_pl.cli import main
from tailo_pl.errors import UserError
from tailo_pl.runs.summary import SCHEMA
from tailo_pl.runs.table import gather, written


def make_stage(name: str, cpu_seconds: float) -> dict[str, Any]:
    numbers = {
        "steps": 1,
        "chosen_step": 1,
        "stopped": "settled",
        "loss": None,
        "seconds": 1.0,
        "cpu_seconds": cpu_seconds,
    }
    return {"stage": name, **numbers, "quality": {}, "reused_from": None}


def make_run(
    root: Path,
    name: str,
    score: float | None,
    seed: int,
    *,
    alpha: Any = 1.25,
    rate: float = 0.1,
    data: str = "d0",
    verdict: str = "good",
    **rest: Any,
) -> None:
    """What the table reads of a run; `rest` is the rest of its configuration."""
    folder = root / "hopper/standard/tailo" / name
    folder.mkdir(parents=True)
    names = {"env": "hopper", "setting": "standard", "method": "tailo", "preset": "fast"}
    config: dict[str, Any] = {group: {"name": value} for group, value in names.items()}
    config["method"] |= {
        "alpha": alpha,
        "stages": {"policy": {"seed": seed, "rate": rate, "weights": {"alpha": alpha}}},
    }
    config |= {"schema": SCHEMA, "seed": seed, "discriminator_seed": seed, "name": name, "runs": str(root)}
    config |= rest
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    summary = {
        "schema": SCHEMA,
        **names,
        "source": "bundled",
        "seed": seed,
        "score": score,
        "score_std": None if score is None else 0.0,
        "episodes": 1,
        "failure": {"stage": "policy", "step": 3} if score == 0 else None,
        "reference": None if score is None else {"low": -20.0, "high": 3234.0, "source": "D4RL 1.1"},
        "verdict": {"level": verdict, "text": "", "numbers": {}},
        "checkpoint": "policy/checkpoints/last.ckpt",
        "data": {
            "source": "bundled",
            "fingerprint": data,
            "recipe": data,
            "ts": {"trajectories": 1, "states": 1},
            "ta": {"trajectories": 1, "steps": 1, "origins": {}},
        },
        "evaluations": [],
        "stages": [make_stage("formal", 10.0), make_stage("policy", 20.0)],
        "versions": {},
    }
    (folder / "summary.json").write_text(json.dumps(summary))


def test_runs_that_differ_in_their_seed_are_one_row(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    make_run(tmp_path, "b", 90.0, 1)
    make_run(tmp_path, "again", 80.0, 0)  # the same run twice counts once
    (row,) = gather([tmp_path])
    assert (row.score, row.score_std, row.seeds, row.failed, row.cpu_seconds) == (85.0, 5.0, [0, 1], 0, 30.0)
    assert row.options == [] and row.differs == ""
    assert row.cells()[5:8] == ["85.0 ± 5.0", "good", "0,1"]


def test_other_values_and_other_data_are_other_rows(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    make_run(tmp_path, "b", 70.0, 0, alpha=2.0)
    make_run(tmp_path, "c", 60.0, 0, data="d1")
    rows = gather([tmp_path, tmp_path])  # given twice, read once
    assert sorted((row.options, row.score, row.data) for row in rows) == [
        (["method.alpha=1.25"], 60.0, "d1"),
        (["method.alpha=1.25"], 80.0, "d0"),
        (["method.alpha=2.0"], 70.0, "d0"),
    ]


def test_precision_makes_another_row_and_devices_threads_and_loggers_do_not(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0, trainer={"precision": "32-true", "devices": 1}, threads=1, logger={"x": 1})
    make_run(tmp_path, "b", 90.0, 1, trainer={"precision": "32-true", "devices": 2}, threads=2, logger={"x": 2})
    make_run(tmp_path, "c", 70.0, 0, trainer={"precision": "bf16-mixed", "devices": 1})
    rows = gather([tmp_path])
    assert [(row.options, row.seeds, row.score) for row in rows] == [
        (["trainer.precision=32-true"], [0, 1], 85.0),
        (["trainer.precision=bf16-mixed"], [0], 70.0),
    ]


def test_a_stages_value_is_named_where_the_methods_own_do_not_tell_rows_apart(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    make_run(tmp_path, "b", 70.0, 0, alpha=2.0)
    make_run(tmp_path, "c", 60.0, 0, alpha=2.0, rate=9.0)
    assert [row.options for row in gather([tmp_path])] == [
        ["method.alpha=1.25", "method.stages.policy.rate=0.1"],
        ["method.alpha=2.0", "method.stages.policy.rate=0.1"],
        ["method.alpha=2.0", "method.stages.policy.rate=9.0"],
    ]


def test_failed_runs_count_with_zero_and_runs_without_a_score_have_none(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    make_run(tmp_path, "b", 0.0, 1)
    make_run(tmp_path, "c", None, 0, alpha=0.5)
    by_options = {row.differs: row for row in gather([tmp_path])}
    assert (by_options["alpha=1.25"].score, by_options["alpha=1.25"].failed) == (40.0, 1)
    assert by_options["alpha=0.5"].score is None


def test_formats(tmp_path: Path) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    make_run(tmp_path, "b", 90.0, 1)
    rows = gather([tmp_path])
    (line,) = csv.DictReader(io.StringIO(written(rows, "csv")))
    assert (line["env"], float(line["score"]), line["seeds"]) == ("hopper", 85.0, "0 1")
    assert json.loads(written(rows, "json"))[0]["seeds"] == [0, 1]
    heading, rule, row = written(rows, "markdown").splitlines()
    assert heading.count("|") == rule.count("|") == row.count("|") == 14
    assert "| 85.0 ± 5.0 |" in row


def test_a_cell_is_no_formula_and_no_line(tmp_path: Path) -> None:
    """A run from elsewhere may hold anything where an option stands."""
    for seed, alpha in enumerate(["a", "x\n| y \x1b[31m"]):
        make_run(tmp_path, str(seed), -3.25, seed, alpha=alpha)
    for seed, name in enumerate(["=cmd|'/C calc'!A0", "+1+1", "-1+1", "@SUM(1)"]):
        make_run(tmp_path, f"d{seed}", -3.25, seed, data=name)
    rows = gather([tmp_path])
    cells = [cell for line in csv.reader(io.StringIO(written(rows, "csv"))) for cell in line]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == ["-3.25"] * 6
    assert {"'=cmd|'/C calc'!A0", "'+1+1", "'-1+1", "'@SUM(1)"} <= set(cells)
    lines = written(rows, "markdown").splitlines()
    assert len(lines) == 8 and all(line.isprintable() for line in lines)
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_tables_and_reports_do_without_torch() -> None:
    """Importing it takes longer than a table of 300 runs."""
    modules = "tailo_pl.commands.console, tailo_pl.runs.table, tailo_pl.report.writing"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path, "a", 80.0, 0)
    assert main(["table", str(tmp_path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("env,setting,method,preset,")
    assert main(["table", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["score"] == 80.0
    assert main(["table", str(tmp_path)]) == 0
    assert "80.0" in capsys.readouterr().out


def test_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no finished run found"):
        gather([tmp_path])
    with pytest.raises(UserError, match=r"nowhere: no such folder"):
        gather([tmp_path / "nowhere"])
    make_run(tmp_path, "a", 80.0, 0)
    path = tmp_path / "hopper/standard/tailo/a/summary.json"
    path.write_text(path.read_text().replace(f'"schema": {SCHEMA}', '"schema": 99'))
    with pytest.raises(UserError, match="not a summary of schema"):
        gather([tmp_path])


def shown_at_80_columns(folder: Path) -> tuple[str, list[str]]:
    """What a terminal shows, and the lines of a pipe."""
    code = f"import sys; from tailo_pl.cli import main; main(['table', {str(folder)!r}])"
    shown = re.sub(r"\x1b\[[\d;]*m", "", on_terminal(code, columns=80))
    assert max(map(len, shown.splitlines())) <= 80
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return shown, piped.splitlines()


def test_at_80_columns_every_name_and_number_is_whole(tmp_path: Path) -> None:
    for seed in range(2):
        make_run(tmp_path, f"20261117-120000-seed{seed}", 80.0 + seed, seed)
    make_run(tmp_path, "b", 70.0, 0, alpha=2.0)
    make_run(tmp_path, "c", None, 0, alpha=0.5, rate=9.0)
    shown, (title, heading, *lines) = shown_at_80_columns(tmp_path)
    for whole in (title, "20261117-120000-seed0 and 1 more", "80.5 ± 0.5", "alpha=1.25", "alpha=2.0", "│ 0,1 "):
        assert whole in shown
    assert title == "env hopper, setting standard, method tailo, preset fast"
    assert len(lines) == 3 and heading.split()[:3] == ["options", "score", "verdict"]


def test_also_where_runs_differ_in_much(tmp_path: Path) -> None:
    """As many values as versions of the project differ in."""
    for number in range(1, 4):
        many = {f"a_long_name_{at}": number for at in range(9)}
        make_run(tmp_path, f"run-of-a-long-name-{number}", 100.0 * number, 0, source=many)
    shown, (_, heading, *lines) = shown_at_80_columns(tmp_path)
    for number in range(1, 4):
        assert f"│ run-of-a-long-name-{number} " in shown and f"│ {100.0 * number:5.1f} │" in shown
    assert len(lines) == 3 and heading.split()[:3] == ["options", "score", "seeds"]
    assert all(f"a_long_name_5={number} and 3 more" in line for number, line in enumerate(lines, 1))


def test_the_verdict_stands_where_the_score_does_not_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, verdict in enumerate(["good", "bad", "good"]):
        make_run(tmp_path / "without", f"w{seed}", None, seed, verdict=verdict)
    make_run(tmp_path / "with", "a", 80.0, 0)
    assert main(["table", str(tmp_path / "without")]) == 0
    assert "2 good, 1 bad" in capsys.readouterr().out
    assert main(["table", str(tmp_path / "with")]) == 0
    assert "verdict" not in capsys.readouterr().out  # nothing but good, and a score
    make_run(tmp_path / "with", "b", 90.0, 1, verdict="doubtful")
    assert main(["table", str(tmp_path / "with")]) == 0
    assert "1 good, 1 doubtful" in capsys.readouterr().out


def test_which_runs_a_row_is_of_and_what_they_make_of_held_out_actions(tmp_path: Path) -> None:
    for seed, error in enumerate([0.1, 0.3]):
        make_run(tmp_path, f"r{seed}", 80.0, seed)
        path = tmp_path / f"hopper/standard/tailo/r{seed}/summary.json"
        summary = json.loads(path.read_text())
        summary["stages"][-1]["quality"] = {"held_out_error": error}
        path.write_text(json.dumps(summary))
    (row,) = gather([tmp_path])
    assert row.held_out == pytest.approx(0.2) and [Path(one).name for one in row.runs] == ["r0", "r1"]
    assert row.cells()[-1] == "r0 and 1 more"
