"""The data cache: complete and unharmed, or made again."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data import cache
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

IDENTITY = {"seed": 0, "maker": 1}


class Maker:
    """Makes the same small trajectories each time, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        cache.save(self.made(), folder)

    @staticmethod
    def made() -> Trajectories:
        states = np.arange(12, dtype=np.float32).reshape(6, 2)
        recording = Recording(states, np.array([0, 4]), actions=-states[:, :1], rewards=np.arange(6.0))
        whole = Trajectories.of(recording, ["left", "right"])
        return whole.drop(np.array([False, True, False, False, False, False]))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def entries(home: Path) -> list[Path]:
    return sorted((home / "data").iterdir()) if (home / "data").exists() else []


def assert_same(one: Trajectories, two: Trajectories) -> None:
    for name in ("index", "offsets", "origins"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.recording.starts, two.recording.starts)
    assert one.recording.arrays().keys() == two.recording.arrays().keys()
    for name, array in one.recording.arrays().items():
        np.testing.assert_array_equal(array, two.recording.arrays()[name])
        assert array.dtype == two.recording.arrays()[name].dtype


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path))
    assert cache.home() == tmp_path
    monkeypatch.setenv("TAILO_HOME", "")
    monkeypatch.setenv("HOME", "/nowhere")
    assert cache.home() == Path("/nowhere/.cache/tailo_pl")


def test_second_call_reads_from_disk(home: Path) -> None:
    make = Maker()
    first, second = cache.cached("small", IDENTITY, make), cache.cached("small", IDENTITY, make)
    assert make.calls == 1
    assert_same(first, make.made())
    assert_same(second, make.made())
    assert isinstance(second.recording.observations, np.memmap)
    assert len(entries(home)) == 1


def test_identity_decides_the_entry(home: Path) -> None:
    make = Maker()
    cache.cached("small", IDENTITY, make)
    cache.cached("small", {**IDENTITY, "seed": 1}, make)
    cache.cached("other", IDENTITY, make)
    assert make.calls == len(entries(home)) == 3


def test_order_of_keys_does_not_matter() -> None:
    assert cache.fingerprint({"a": 1, "b": [2]}) == cache.fingerprint({"b": [2], "a": 1})
    assert cache.fingerprint({"a": 1}) != cache.fingerprint({"a": 2})


def test_what_is_read_cannot_harm_the_file(home: Path) -> None:
    make = Maker()
    read = cache.cached("small", IDENTITY, make)
    read.recording.observations[0, 0] = 99  # a copy-on-write map: the file keeps its content
    assert_same(cache.cached("small", IDENTITY, make), make.made())
    assert make.calls == 1


def flip_a_byte(folder: Path) -> None:
    content = bytearray((folder / "observations.npy").read_bytes())
    content[-3] ^= 1
    (folder / "observations.npy").write_bytes(content)


def cut_short(folder: Path) -> None:
    (folder / "actions.npy").write_bytes((folder / "actions.npy").read_bytes()[:-4])


def break_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text((folder / "manifest.json").read_text()[:-20])


def forget_an_array(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["sha256"]["offsets"]
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte,
        cut_short,
        break_manifest,
        forget_an_array,
        lambda folder: (folder / "index.npy").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
    ],
    ids=["flipped-byte", "cut-short", "broken-manifest", "forgotten-array", "missing-array", "missing-manifest"],
)
def test_damage_is_noticed_and_mended(home: Path, caplog: pytest.LogCaptureFixture, damage) -> None:
    make = Maker()
    cache.cached("small", IDENTITY, make)
    (folder,) = entries(home)
    damage(folder)
    with caplog.at_level(logging.WARNING):
        again = cache.cached("small", IDENTITY, make)
    assert make.calls == 2
    assert_same(again, make.made())
    (record,) = caplog.records
    assert "damaged cache entry" in record.getMessage() and str(folder) in record.getMessage()
    cache.cached("small", IDENTITY, make)
    assert make.calls == 2  # the entry is whole again


def test_pickles_are_refused(home: Path) -> None:
    make = Maker()
    cache.cached("small", IDENTITY, make)
    (folder,) = entries(home)
    np.save(folder / "origins.npy", np.array(["left", None], dtype=object), allow_pickle=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"]["origins"] = cache._digest(folder / "origins.npy")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="Python objects"):
        cache.read(folder)


def test_interrupted_build_leaves_nothing(home: Path) -> None:
    def interrupted(folder: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.cached("small", IDENTITY, interrupted)
    assert entries(home) == []
    make = Maker()
    cache.cached("small", IDENTITY, make)
    assert make.calls == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_interrupted_writing_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch, error) -> None:
    save, saved = np.save, []

    def save_two_arrays(path: Path, array: np.ndarray) -> None:
        if len(saved) == 2:
            raise error
        saved.append(path)
        save(path, array)

    make = Maker()
    with monkeypatch.context() as patch:
        patch.setattr(np, "save", save_two_arrays)
        expected = UserError if isinstance(error, OSError) else error
        with pytest.raises(expected):
            cache.cached("small", IDENTITY, make)
    assert len(saved) == 2
    assert entries(home) == []
    assert_same(cache.cached("small", IDENTITY, make), make.made())


def test_killed_writer_is_not_mistaken_for_an_entry(home: Path) -> None:
    make = Maker()
    cache.cached("small", IDENTITY, make)
    (folder,) = entries(home)
    folder.rename(folder.with_name(f".making-{folder.name}"))  # what a killed process leaves behind
    cache.cached("small", IDENTITY, make)
    assert make.calls == 2
    assert entries(home) == [folder]  # and what it left is gone


def test_an_entry_of_another_version_is_made_again(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    make = Maker()
    cache.cached("small", IDENTITY, make)
    (folder,) = entries(home)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "schema": 99}))
    with caplog.at_level(logging.WARNING):
        cache.cached("small", IDENTITY, make)
    assert make.calls == 2
    assert f"schema 99 found, this version reads {cache.SCHEMA}" in caplog.text


PROCESS = """
import sys, time
from pathlib import Path
from test_cache import IDENTITY, Maker
from tailo_pl.data import cache

class Slow(Maker):
    def __call__(self, folder: Path) -> None:
        print("making", flush=True)
        time.sleep(float(sys.argv[1]))
        super().__call__(folder)

cache.cached("small", IDENTITY, Slow())
"""


def start(seconds: float) -> subprocess.Popen[str]:
    """A process that wants the same entry and takes so long to make it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", PROCESS, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_one_process_makes_an_entry_and_the_others_wait(home: Path) -> None:
    processes = [start(1.0) for _ in range(3)]
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3
    assert sorted(said) == ["", "", "making\n"]
    assert_same(cache.cached("small", IDENTITY, Maker()), Maker.made())
    assert len(entries(home)) == 1


def test_the_lock_of_a_killed_process_does_not_stay(home: Path) -> None:
    process = start(600)
    assert process.stdout is not None and process.stdout.readline() == "making\n"
    process.kill()
    process.communicate()
    assert_same(cache.cached("small", IDENTITY, Maker()), Maker.made())
    assert len(entries(home)) == 1


@pytest.mark.parametrize("below", ["", "deep/below"])
def test_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TAILO_HOME", str(tmp_path / "file" / below))
    with pytest.raises(UserError, match=r"cannot write the data cache.*TAILO_HOME") as caught:
        cache.cached("small", IDENTITY, Maker())
    assert str(tmp_path / "file") in str(caught.value)


def test_an_array_is_made_once_and_again_when_damaged() -> None:
    made: list[int] = []

    def make() -> np.ndarray:
        made.append(1)
        return np.arange(5.0)

    identity = {"task": "made up", "test": "an array"}
    for _ in range(2):
        assert cache.cached_array("numbers", identity, make).tolist() == [0, 1, 2, 3, 4]
    assert len(made) == 1
    (cache.entry_folder("numbers", identity) / "numbers.npy").write_bytes(b"cut off")
    assert cache.cached_array("numbers", identity, make).tolist() == [0, 1, 2, 3, 4]
    assert len(made) == 2
    cache.cached_array("numbers", {**identity, "other": 1}, make)
    assert len(made) == 3
