"""`tailo report` on real runs, whole and damaged: what it shows, what it says is missing, what it refuses."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tailo_pl.cli import main
from tailo_pl.errors import UserError
from tailo_pl.report.contents import Contents, contents_of
from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.groups import group_runs
from tailo_pl.report.lead import lead
from tailo_pl.report.outcomes import comparison, score_figures, score_table
from tailo_pl.report.page import render_page
from tailo_pl.report.reading import RunRecord, read_run
from tailo_pl.report.writing import write_report
from tailo_pl.runs.summary import SCHEMA


@pytest.fixture(scope="module")
def contents(runs: list[Path]) -> Contents:
    return contents_of([read_run(path) for path in runs])


@pytest.fixture
def copy(runs: list[Path], tmp_path: Path) -> Path:
    """A copy of the first run that a test may damage, where its data cannot be found by its place."""
    return Path(shutil.copytree(runs[0], tmp_path / "copy"))


def shown(page: str) -> dict[str, Any]:
    """The figures a page brings along."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    figures: dict[str, Any] = json.loads(found.group(1))["figures"]
    return figures


def test_runs_are_grouped_by_all_but_their_seed(runs: list[Path]) -> None:
    groups = group_runs([read_run(path) for path in runs])
    assert [(group.task, group.arm, [run.seed for run in group.runs]) for group in groups] == [
        ("pointmaze · examples", "tailo · fast", [0, 1, 2]),
        ("pointmaze · examples", "bc · fast", [0]),
    ]


def test_what_differs_is_named_where_names_do_not_tell(runs: list[Path]) -> None:
    one = read_run(runs[0])
    config = json.loads(json.dumps(one.config))
    config["method"]["alpha"] = config["method"]["stages"]["policy"]["inputs"]["weights"]["alpha"] = 2
    config["seed"] = 7
    other = RunRecord(one.path, config, one.summary, one.data, one.stages, one.layout)
    assert [group.arm for group in group_runs([one, other])] == ["tailo · fast, alpha=1.25", "tailo · fast, alpha=2"]
    config["setting"]["count"] = 100
    tasks = [group.task for group in group_runs([one, other])]
    assert tasks == ["pointmaze · examples, count=200", "pointmaze · examples, count=100"]


def test_precision_makes_another_group_and_devices_threads_and_loggers_do_not(runs: list[Path]) -> None:
    one = read_run(runs[0])

    def changed(**parts: Any) -> RunRecord:
        config = json.loads(json.dumps(one.config))
        for group, values in parts.items():
            config[group] = {**config[group], **values} if isinstance(values, dict) else values
        return RunRecord(one.path, config, one.summary, one.data, one.stages, one.layout)

    same = changed(seed=7, trainer={"devices": 2}, logger={"beside": None}, threads=3, checkpoint_every=5)
    other = changed(trainer={"precision": "64-true"})
    groups = group_runs([one, same, other])
    assert [[run.seed for run in group.runs] for group in groups] == [[0, 7], [0]]
    assert groups[1].arm == "tailo · fast, precision=64-true"


def test_a_run_done_twice_counts_once(runs: list[Path], tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(runs[0], again)
    config = (again / "config.yaml").read_text()
    (again / "config.yaml").write_text(config.replace("name: s0\n", "name: again\n"))
    begun = tmp_path / "begun"
    shutil.copytree(again, begun)
    (begun / "summary.json").unlink()
    written = write_report([begun, runs[0], again, runs[1]], tmp_path / "twice.html")
    assert not written.missing  # the one that was only begun is not among them
    assert re.findall(r"<td[^>]*>([\d, ]*)</td>", written.page.read_text()).count("0, 1") == 1


def with_scores(run: RunRecord, *scores: float) -> RunRecord:
    evaluations = [{"step": 20 * (number + 1), "score": score, "score_std": 1.0} for number, score in enumerate(scores)]
    summary = {**run.summary, "evaluations": evaluations, "score": scores[-1]}
    return RunRecord(run.path, run.config, summary, run.data, run.stages, run.layout)


def test_seeds_their_mean_and_its_band(runs: list[Path]) -> None:
    records = [
        with_scores(read_run(path), *scores)
        for path, scores in zip(runs, [(0, 10, 20), (4, 14, 40), (8, 18, 60), (2, 2, 2)], strict=True)
    ]
    groups = group_runs(records)
    by_steps, by_time = score_figures(groups)
    thin = [series for series in by_steps.series if series.thin]
    mean = next(series for series in by_steps.series if series.name == "tailo · fast")
    assert len(thin) == 3 and list(mean.x) == [20, 40, 60] and list(mean.y) == [4, 14, 40]
    assert mean.low is not None and np.asarray(mean.low) == pytest.approx(
        [4 - 32**0.5 / 3**0.5, 14 - 32**0.5 / 3**0.5, 40 - 800**0.5 / 3**0.5]
    )
    assert [(mark.axis, mark.label) for mark in by_steps.marks] == [("y", "expert data 100.0"), ("y", "BC 2.0")]
    spent = [sum(stage.seconds or 0 for stage in record.stages.values()) for record in records[:3]]
    timed = next(series for series in by_time.series if series.name == "tailo · fast")
    assert timed.x[-1] == pytest.approx(np.mean(spent))
    assert [row[1] for row in score_table(groups)] == ["score", "40.0 ± 16.3", "2.0"]
    means, improvement = comparison(groups)
    assert [name.split(":")[0] for name in means.categories] == ["tailo · fast", "bc · fast"]
    assert list(means.series[0].y) == [40, 2] and " to " in means.categories[0] and ":" not in means.categories[1]
    assert improvement.categories == ["tailo · fast  >  bc · fast: 1 (1 to 1)"]
    assert list(improvement.series[0].y) == [1]
    _, turned = comparison(group_runs(records[::-1]))  # whichever comes first, the better one is named first
    assert turned.categories == improvement.categories
    alone = comparison(group_runs([records[0], records[3]]))  # one run each: the higher score says it all
    assert [figure.key for figure in alone] == ["comparison-iqm"]
    assert lead(groups) == (
        "On pointmaze · examples, tailo · fast scores 40.0 ± 16.3 over 3 seeds; next bc · fast (2.0)."
    )


def test_a_score_at_one_moment_is_no_curve(run_dir: Path) -> None:
    contents = contents_of([read_run(run_dir)])
    keys = [figure.key for figure in contents.figures]
    assert not [key for key in keys if key.startswith("score-")] and "r0-scores" in keys
    assert [table for table, _ in contents.blocks[0].tables] == ["Mean ± standard deviation over seeds"]


def test_every_figure_has_something_to_show(contents: Contents) -> None:
    figures = list(contents.figures)
    keys = [figure.key for figure in figures]
    assert len(set(keys)) == len(keys)
    for part in ("reward", "weight", "origins", "scores", "negatives", "choice", "concentration", "formal-1"):
        assert f"r0-{part}" in keys
    for figure in figures:
        assert figure.series and figure.title and figure.x_label
        for series in figure.series:
            known = np.isfinite(np.asarray(series.y, dtype=float))
            assert known.all() or (figure.kind == "map" and known.any())  # lines on a map have gaps between them
    # Sliders for one seed of each group: the others say where they are.
    assert "r1-choice" not in keys and any("shown for seed 0" in one.text for one in contents.runs[1].blocks)
    assert any(one.text.startswith("Method bc has no discriminator") for one in contents.runs[3].blocks)
    assert not [line for part in contents.runs for line in part.missing]


def test_page_holds_everything_and_asks_for_nothing(contents: Contents) -> None:
    page = render_page(contents)
    assert set(shown(page)) == {figure.key for figure in contents.figures}
    assert len(page) < 500_000
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    for text in ("TS (states only)", "fingerprint", "torch", "CPU seconds", "beta_1: 0.8"):
        assert text in page
    for column, look in {"version": ' class="text"', "ended by": ' class="text"', "seconds": "", "score": ""}.items():
        assert f'<th scope="col"{look}>{column}</th>' in page


def test_names_from_files_are_text_and_nothing_else(copy: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    config = yaml.safe_load((copy / "config.yaml").read_text())
    config["env"]["name"] = config["method"]["name"] = evil
    (copy / "config.yaml").write_text(yaml.safe_dump(config))
    page = render_page(contents_of([read_run(copy)], title=evil))
    assert evil not in page and "<img" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert any(evil in figure["title"] for figure in shown(page).values())


def lose(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def spoil(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda run: (run / name).write_bytes(content) and None


def numbers(name: str, array: np.ndarray) -> Callable[[Path], None]:
    return lambda run: np.save(run / name, array)


def other_schema(run: Path) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump({**config, "schema": 1}))


@pytest.mark.parametrize(
    ("damage", "line", "lost"),
    [
        (lose("summary.json"), "summary.json not there: the run is not finished", []),
        (spoil("summary.json", b"{"), "summary.json: not valid JSON", []),
        (spoil("summary.json", b"[]"), "summary.json: list found, expected keys and values", []),
        (lose("formal/metrics.csv"), "formal/metrics.csv not there", ["r0-formal-0"]),
        (spoil("formal/metrics.csv", b"step,loss\n1,x\n"), "formal/metrics.csv: not a table", ["r0-formal-0"]),
        (lose("formal/scores.npy"), "formal/scores.npy not there", ["r0-reward", "r0-choice"]),
        (lose("pretrain/scores.npy"), "pretrain/scores.npy not there", ["r0-negatives"]),
        (lose("policy/weights.npy"), "policy/weights.npy not there", ["r0-weight"]),
        (spoil("policy/weights.npy", b"\x93NUMPY"), "policy/weights.npy: cannot be read", ["r0-weight"]),
        (numbers("policy/weights.npy", np.ones(3)), "expected 53,542 numbers, one per step of TA", ["r0-weight"]),
        (numbers("formal/scores.npy", np.full(53_542, np.nan)), "a number in it is not finite", ["r0-reward"]),
        (numbers("formal/scores.npy", np.array([{}])), "formal/scores.npy: cannot be read", ["r0-reward"]),
        (spoil("trajectories.npz", b"PK"), "trajectories.npz not there or unreadable", ["r0-reward", "r0-negatives"]),
        (lambda run: shutil.rmtree(run / "policy"), "policy/ not there: the stage was not begun", ["r0-weight"]),
        (other_schema, f"schema 1 found, this version writes {SCHEMA}", []),
    ],
)  # fmt: skip
def test_a_damaged_run_shows_what_there_is_and_says_what_is_missing(
    copy: Path, runs: list[Path], damage: Callable[[Path], Any], line: str, lost: list[str]
) -> None:
    whole = {figure.key for figure in contents_of([read_run(runs[0])]).figures}
    damage(copy)
    contents = contents_of([read_run(copy)])
    assert any(line in missing for missing in contents.runs[0].missing)
    assert whole - {figure.key for figure in contents.figures} >= set(lost)
    left = {figure.key for figure in contents.figures if figure.series}
    assert {"score-steps-0", "r0-pretrain-0"} <= left
    page = render_page(contents)
    assert "What is missing" in page and shown(page).keys() >= left


def test_a_run_under_way_shows_its_scores_so_far(copy: Path) -> None:
    for name in ("summary.json", "policy/stage.json"):
        (copy / name).unlink()
    record = read_run(copy)
    assert [step for step, *_ in record.evaluations] == [20, 40, 60] and record.score is None
    (by_steps,) = score_figures(group_runs([record]))  # its times are not known yet
    assert len(by_steps.series) == 1
    row = score_table(group_runs([record]))[1]
    assert [row[1], row[5]] == ["—", "0 (1 without a score)"]


def test_a_run_that_diverged_says_so_beside_its_zero(copy: Path) -> None:
    summary = json.loads((copy / "summary.json").read_text())
    summary |= {"score": 0.0, "failure": {"stage": "policy", "step": 3}}
    (copy / "summary.json").write_text(json.dumps(summary))
    (row,) = score_table(group_runs([read_run(copy)]))[1:]
    assert [row[1], row[5]] == ["0.0", "0 (1 ended in a numerical error)"]


def test_without_an_environment_the_page_begins_with_what_the_data_says(copy: Path) -> None:
    config = yaml.safe_load((copy / "config.yaml").read_text())
    config["env"] = {"name": "none", "class_path": None}
    config["setting"]["name"] = "given"
    (copy / "config.yaml").write_text(yaml.safe_dump(config))
    for name in ("summary.json", "policy/stage.json"):
        content = json.loads((copy / name).read_text())
        content |= {"evaluations": []} | ({"score": None} if "score" in content else {})
        (copy / name).write_text(json.dumps(content))
    (copy / "policy/metrics.csv").write_text("step,loss\n1,2\n")
    contents = contents_of([read_run(copy)])
    assert contents.title == "data of source bundled" and contents.blocks[0].key == "held-out"
    assert contents.lead.startswith("Nothing was played, there is no environment: the verdict is ")
    page = render_page(contents)
    assert "none · given" not in page and "normalised score" not in page


def test_files_of_figures_are_named_after_their_run(contents: Contents, runs: list[Path]) -> None:
    names = contents.file_names
    assert names["r0-weight"].endswith("-weight") and runs[0].name in names["r0-weight"]
    assert len(set(names.values())) == len(names)


def test_a_run_that_did_not_record_its_layout_is_read_from_its_data(runs: list[Path], tmp_path: Path) -> None:
    again = Path(shutil.copytree(runs[0], tmp_path / "again"))
    (again / "trajectories.npz").unlink()
    one, other = read_run(runs[0]), read_run(again)
    assert one.layout is not None and other.layout is not None and not other.missing
    assert np.array_equal(one.layout.offsets, other.layout.offsets)
    data = json.loads((again / "data.json").read_text())
    (again / "data.json").write_text(json.dumps({**data, "fingerprint": "other"}))
    assert read_run(again).layout is None and "its data has changed since" in read_run(again).missing[-1]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"tailo: {tmp_path / 'config.yaml'}: cannot be read (No such file or directory), expected the folder of a run\n"
    )
    (tmp_path / "config.yaml").write_text("a: 1\n")
    assert main(["report", str(tmp_path)]) == 2
    assert "no method.stages found, expected a run's configuration" in capsys.readouterr().err
    assert main(["report"]) == 2 and "missing argument 'RUN...'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [tmp_path / "config.yaml"]


def test_an_output_that_cannot_be_written_is_refused(runs: list[Path], tmp_path: Path) -> None:
    for out in (tmp_path / "nowhere" / "report.html", tmp_path):
        with pytest.raises(UserError, match="cannot be written"):
            write_report(runs[3:4], out)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_report(runs[3:4], tmp_path / "report.html", figures=tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_command_writes_page_and_figures(runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    video = tmp_path / "episode.gif"
    video.write_bytes(b"GIF89a")
    out, folder = tmp_path / "report.html", tmp_path / "figures"
    arguments = ["--out", str(out), "--figures", str(folder), "--title", "Ours & theirs", "--video", str(video)]
    assert main(["report", str(runs[3]), str(runs[3]), *arguments]) == 0
    keys = set(shown(page := out.read_text()))
    names = {key.replace("r0-", f"{runs[3].name}-") for key in keys}
    assert {path.name for path in folder.iterdir()} == {
        f"{name}{suffix}" for name in names for suffix in (".png", ".svg")
    }
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in folder.glob("*.png"))
    assert "<title>Ours &amp; theirs</title>" in page and "data:image/gif;base64,R0lGODlh" in page
    assert f"report {out}" in capsys.readouterr().out.replace("\n", "")
    with pytest.raises(UserError, match=r"cannot embed \.txt, expected one of \.mp4, \.webm, \.gif"):
        write_report(runs[:1], out, video=tmp_path / "episode.txt")
    with pytest.raises(UserError, match="No such file"):
        write_report(runs[:1], out, video=tmp_path / "none.mp4")


def test_every_kind_of_figure_is_drawn_for_papers(contents: Contents, tmp_path: Path) -> None:
    kinds = {figure.kind: figure for figure in contents.figures}
    assert set(kinds) == {"lines", "histogram", "bars", "intervals", "map"}
    files = draw_figures(kinds.values(), tmp_path)
    assert len(files) == 2 * len(kinds) and all(path.stat().st_size > 5_000 for path in files)
    drawing = (tmp_path / f"{kinds['histogram'].key}.svg").read_text()
    assert kinds["histogram"].title.split(",")[0] in drawing and "#d55e00" in drawing.lower()


def test_figures_without_matplotlib_are_one_line(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError) as caught:
        write_report(runs[3:], tmp_path / "r.html", figures=tmp_path / "figures")
    assert str(caught.value) == "--figures: matplotlib is not installed; pip install 'tailo_pl[report]' brings it"
    assert not list(tmp_path.iterdir())


def test_a_task_on_the_floor_is_drawn_from_above(runs: list[Path]) -> None:
    """TA's states in quarters of R and of W, the start, the goal's circle, and where the policy went; one seed only."""
    contents = contents_of([read_run(path) for path in (*runs[:2], runs[-1])])
    maps = {figure.key: figure for figure in contents.figures if figure.kind == "map"}
    assert [key.split("-")[-1] for key in maps] == ["reward", "weight", "states"]
    figure = maps["r0-maze-reward"]
    series = {one.name: one for one in figure.series}
    quarters = [f"{which} quarter" for which in ("lowest", "second", "third", "highest")]
    assert list(series) == [*quarters, "start", "goal", "policy"]
    counts = [len(series[name].x) for name in quarters]
    assert min(counts) > 0.8 * max(counts)
    assert (series["start"].x[0], series["start"].y[0]) == (4, 4)
    circle = np.column_stack([series["goal"].x, series["goal"].y])[:-1]
    np.testing.assert_allclose(np.linalg.norm(circle - [1, 4], axis=1), 0.17)
    walked = np.asarray(series["policy"].x)
    assert np.isnan(walked).sum() == 5 and np.nanmax(np.abs(walked[:1] - 4)) <= 0.1
