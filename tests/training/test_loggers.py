"""Loggers beside metrics.csv: the same numbers, chosen by one override, and nothing of a run depends on them."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from helpers.runs import small_run
from tensorboardX.proto.event_pb2 import Event

from tailo_pl.errors import UserError

EVERY_STEP = "trainer.log_every_n_steps=10"


def events(folder: Path) -> dict[tuple[str, int], float]:
    """What TensorBoard would show: (name, step) -> value, read record by record."""
    found = {}
    for path in folder.glob("events.out.tfevents.*"):
        content, position = path.read_bytes(), 0
        while position < len(content):
            # A record: length (8 bytes), its checksum (4), the event, its checksum (4).
            length = int.from_bytes(content[position : position + 8], "little")
            event = Event.FromString(content[position + 12 : position + 12 + length])
            position += 16 + length
            found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
    return found


def rows(run_dir: Path, stage: str) -> dict[tuple[str, int], float]:
    with (run_dir / stage / "metrics.csv").open(newline="") as file:
        return {
            (name, int(row["step"])): float(value)
            for row in csv.DictReader(file)
            for name, value in row.items()
            if value and name not in ("step", "epoch")
        }


@pytest.fixture(scope="module")
def with_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the default logger."""
    return small_run(tmp_path_factory.mktemp("runs"), EVERY_STEP)


@pytest.mark.parametrize("stage", ["pretrain", "policy"])
def test_tensorboard_holds_the_numbers_of_the_csv(with_events: Path, stage: str) -> None:
    there, expected = events(with_events / stage / "tensorboard"), rows(with_events, stage)
    assert expected and {name for name, _ in expected} >= {"loss"}
    assert {key: there[key] for key in expected} == pytest.approx(expected, rel=1e-6)


def test_csv_alone_is_the_same_run(with_events: Path, tmp_path: Path) -> None:
    alone = small_run(tmp_path, EVERY_STEP, "logger=csv")
    assert not list(alone.rglob("tensorboard"))
    for stage in ("pretrain", "formal", "policy"):
        assert (alone / stage / "metrics.csv").read_bytes() == (with_events / stage / "metrics.csv").read_bytes()
        assert (alone / stage / ".key").read_text() == (with_events / stage / ".key").read_text()


@pytest.mark.parametrize(("logger", "package"), [("wandb", "wandb"), ("mlflow", "mlflow")])
def test_others_by_one_override(tmp_path: Path, logger: str, package: str) -> None:
    if find_spec(package) is None:
        with pytest.raises(UserError, match=f"^logger: needs the package {package}: pip install {package}$"):
            small_run(tmp_path, f"logger={logger}")
        assert not list(tmp_path.iterdir())
        return
    run_dir = small_run(tmp_path, EVERY_STEP, f"logger={logger}")
    left = {"wandb": "wandb/offline-run-*", "mlflow": "mlflow.db"}[logger]
    for stage in ("pretrain", "formal", "policy"):
        assert list((run_dir / stage).glob(left)) and rows(run_dir, stage)


def test_mistakes_show_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[Any] = ["logger=tensorboard", "+logger.beside.colour=red"]
    with pytest.raises(UserError) as error:
        small_run(tmp_path / "runs", *wrong)
    assert "\n" not in str(error.value) and "colour" in str(error.value)
    assert not list(tmp_path.iterdir())
