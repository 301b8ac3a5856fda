"""A run folder from anyone: whatever stands in its files, it works or is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailo_pl import load_policy
from tailo_pl.cli import main
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml
from tailo_pl.report.writing import write_report
from tailo_pl.runs.summary import SCHEMA
from tailo_pl.runs.table import gather, written


class Gone:
    """Stands for a key or an item that is taken away."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


SUBSTITUTES: list[Any] = [
    Gone, None, True, 0, -1, 7, 1.5, 10**400, -(10**25), float("nan"), float("inf"), 1e308, "", "x", "../x",
    "\x1b[31m\n", "=1+1", "\ud800", [], [1], [[]], [{}], {}, {"a": 1}, {"\x1b\n": None}, deep(60), {"a": deep(40)},
]  # fmt: skip


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every node of a tree."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*here, key))


def changed(value: Any, where: tuple[Any, ...], substitute: Any) -> Any:
    """A copy of a tree with one node replaced, or taken away."""
    if not where:
        return None if substitute is Gone else substitute
    key, *rest = where
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    kept = [
        (name, changed(item, tuple(rest), substitute) if name == key else item)
        for name, item in pairs
        if not (name == key and not rest and substitute is Gone)
    ]
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


def as_json(value: Any) -> str:
    return json.dumps(value)


def as_yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=yaml.SafeDumper, allow_unicode=False)


def use_policy(run: Path, scratch: Path) -> None:
    load_policy(run)


def use_table(run: Path, scratch: Path) -> None:
    for how in ("csv", "markdown", "json"):
        written(gather([run]), how).encode()  # type: ignore[arg-type]


def use_report(run: Path, scratch: Path) -> None:
    write_report([run], scratch / "report.html")


Use = Callable[[Path, Path], None]
USES: tuple[Use, ...] = (use_policy, use_table, use_report)
# Each file, how it is written, and who reads it.
FILES: dict[str, tuple[Callable[[Any], str], tuple[Use, ...]]] = {
    "summary.json": (as_json, USES),
    "config.yaml": (as_yaml, USES),
    "data.json": (as_json, (use_report,)),
    "policy/stage.json": (as_json, (use_report,)),
}


def works_or_is_refused(run: Path, scratch: Path, uses: tuple[Use, ...]) -> None:
    for use in uses:
        try:
            use(run, scratch)
        except UserError as error:
            assert str(error).isprintable() and len(str(error)) < 700, f"{use.__name__}: {error}"
        except Exception as error:
            raise AssertionError(f"{use.__name__}: {error!r}"[:2000]) from error


@pytest.fixture(scope="module")
def copies(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each file a copy of a small run, away from where runs are, in which a test may change it."""
    folder = tmp_path_factory.mktemp("hostile")
    made = {name: Path(shutil.copytree(run_dir, folder / Path(name).stem)) for name in FILES}
    (made["data.json"] / "summary.json").unlink()  # which says the same
    return made


@pytest.mark.parametrize("env", [None, "maze", ["maze"], {}])
def test_of_a_run_of_another_version_nothing_is_expected(run_dir: Path, tmp_path: Path, env: Any) -> None:
    copy = Path(shutil.copytree(run_dir, tmp_path / "copy"))
    config = yaml.safe_load((copy / "config.yaml").read_text())
    (copy / "config.yaml").write_text(as_yaml({**config, "schema": 99, "env": env}))
    works_or_is_refused(copy, tmp_path, USES)
    assert "schema 99 found" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(data=st.data())
def test_a_changed_file_works_or_is_refused_in_one_line(
    run_dir: Path, copies: dict[str, Path], tmp_path: Path, name: str, data: st.DataObject
) -> None:
    (written_as, uses), copy = FILES[name], copies[name]
    original = (run_dir / name).read_text()
    tree = yaml.safe_load(original) if name.endswith(".yaml") else json.loads(original)
    for _ in range(data.draw(st.integers(1, 2))):
        where = data.draw(st.sampled_from(list(places(tree))))
        tree = changed(tree, where, data.draw(st.sampled_from(SUBSTITUTES)))
    (copy / name).write_text(written_as(tree))
    works_or_is_refused(copy, tmp_path, uses)


def test_a_report_of_no_trajectories_at_all(run_dir: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run_dir, tmp_path / "run"))
    summary = json.loads((run / "summary.json").read_text())
    origins = summary["data"]["ta"]["origins"]
    assert any("mean_return" in origin for origin in origins.values())
    for origin in origins.values():
        origin["trajectories"] = 0
    (run / "summary.json").write_text(json.dumps(summary))
    works_or_is_refused(run, tmp_path, USES)


def no_summary(run: Path) -> None:
    (run / "summary.json").write_text(f'{{"schema": {SCHEMA}}}')


def no_configuration(run: Path) -> None:
    (run / "config.yaml").write_text("[]")


@pytest.mark.parametrize(
    ("break_it", "line"),
    [
        (no_summary, "summary.json: env: not there, expected text"),
        (no_configuration, "config.yaml: list found, expected keys and values"),
    ],
)
def test_a_table_goes_on_without_a_broken_run_and_names_it(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], break_it: Callable[[Path], None], line: str
) -> None:
    broken = Path(shutil.copytree(run_dir, tmp_path / "runs" / "broken"))
    break_it(broken)
    assert main(["table", str(broken), "--json"]) == 2
    assert capsys.readouterr().err == f"tailo: {broken}/{line}\n"
    shutil.copytree(run_dir, tmp_path / "runs" / "whole")
    assert main(["table", str(tmp_path / "runs"), "--json"]) == 0
    shown = capsys.readouterr()
    assert len(json.loads(shown.out)) == 1
    assert shown.err == f"tailo: {broken}/{line}; this run is left out\n"


def test_a_report_goes_on_without_a_broken_run_and_names_it(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, out = Path(shutil.copytree(run_dir, tmp_path / "broken")), tmp_path / "report.html"
    no_configuration(broken)
    line = f"tailo: {broken}/config.yaml: no method.stages found, expected a run's configuration"
    assert main(["report", str(broken), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"{line}\n" and not out.exists()
    assert main(["report", str(broken), str(run_dir), "--out", str(out)]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"{line}; this run is left out"
    assert out.exists()


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[" * 1_000_000, "values more than 50 levels deep found"),  # where libyaml would end the process
        ("- " * 1_000_000, "values more than 50 levels deep found"),
        (LAUGHS, "more than 100,000 values found"),
        ("a: &a [*a]", "more than 100,000 values found"),
        ("a: 2020-01-01", "datetime.date(2020, 1, 1) found, expected text, a number"),
        ("1: a", "key 1 found, expected text"),
        ("a: !!bool x", "not valid YAML"),
        ("a: " + "9" * 5000, "not valid YAML"),
        ("a: 0x" + "f" * 5000, "a number of 20000 bits found"),
    ],
    ids=range(9),
)
def test_yaml_that_is_made_to_break_its_readers(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UserError) as caught:
        read_yaml(tmp_path / "config.yaml", "a file")
    assert line in str(caught.value) and str(caught.value).isprintable()
