"""All formats alike: opened by their endings, written whole or not at all, and read back number by number."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tailo_pl.data.formats import SUFFIXES, WRITTEN, open_file, record_file, write_file, writing
from tailo_pl.data.formats.imports import read_exactly
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

every_format = pytest.mark.parametrize("suffix", WRITTEN)


def made(steps: int = 20, dtype: type = np.float32) -> Trajectories:
    random = np.random.default_rng(0)
    recording = Recording(
        random.standard_normal((steps, 3)).astype(dtype),
        np.array([0, steps // 2]),
        actions=random.standard_normal((steps, 2)).astype(dtype),
        next_observations=random.standard_normal((steps, 3)).astype(dtype),
        rewards=random.standard_normal(steps).astype(dtype),
        terminals=np.arange(steps) == steps // 2 - 1,
        timeouts=np.arange(steps) == steps - 1,
    )
    return Trajectories.of(recording)


def assert_same(got: Trajectories, expected: Trajectories, dtype_of: Callable[[np.ndarray], Any] | None = None) -> None:
    """Equal arrays bit for bit, equal types (or those of `dtype_of`), equal trajectories."""
    np.testing.assert_array_equal(got.recording.starts, expected.recording.starts)
    assert got.recording.arrays().keys() == expected.recording.arrays().keys()
    for name, array in expected.recording.arrays().items():
        other = got.recording.arrays()[name]
        assert (other.dtype, other.shape) == (dtype_of(array) if dtype_of else array.dtype, array.shape), name
        assert other.astype(array.dtype).tobytes() == array.tobytes(), name


def narrowest(array: np.ndarray) -> Any:
    """CSV does not say its number types: there float32 is what float32 can hold."""
    with np.errstate(over="ignore"):
        fits = array.dtype == np.float64 and (array == array.astype(np.float32)).all()
    return np.float32 if fits else array.dtype


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectories:
    steps = draw(st.integers(1, 12))
    width = draw(st.sampled_from([32, 64]))
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width)
    dtype = np.dtype(f"f{width // 8}")

    def vectors(dim: int) -> np.ndarray:
        return draw(hnp.arrays(dtype, (steps, dim), elements=numbers))

    dim = draw(st.integers(1, 12))
    starts = sorted(draw(st.sets(st.integers(1, steps - 1)))) if steps > 1 else []
    return Trajectories.of(
        Recording(
            vectors(dim),
            np.array([0, *starts]),
            actions=vectors(draw(st.integers(1, 3))) if draw(st.booleans()) else None,
            next_observations=vectors(dim) if draw(st.booleans()) else None,
            rewards=vectors(1)[:, 0] if draw(st.booleans()) else None,
            terminals=draw(hnp.arrays(bool, steps)) if draw(st.booleans()) else None,
            timeouts=draw(hnp.arrays(bool, steps)) if draw(st.booleans()) else None,
        )
    )


class TestRoundTrip:
    @every_format
    def test_any_trajectories(self, tmp_path_factory: pytest.TempPathFactory, suffix: str) -> None:
        folder = tmp_path_factory.mktemp("trip")

        @settings(max_examples=25)
        @given(trajectories())
        def survives(original: Trajectories) -> None:
            path = folder / f"there{suffix}"
            path.unlink(missing_ok=True)
            write_file(path, original)
            assert_same(read_exactly([path]), original, narrowest if suffix == ".csv" else None)

        survives()

    @every_format
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("batch_bytes", [100, 1 << 24])
    def test_there_and_back(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, dtype: type, batch_bytes: int
    ) -> None:
        """From .npz to another format and back to .npz."""
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        monkeypatch.setattr(writing, "BATCH_BYTES", batch_bytes)
        first, there, back = tmp_path / "first.npz", tmp_path / f"there{suffix}", tmp_path / "back.npz"
        write_file(first, made(dtype=dtype))
        write_file(there, read_exactly([first]))
        write_file(back, read_exactly([there]))
        assert first.read_bytes() == back.read_bytes()
        assert_same(read_exactly([there]), made(dtype=dtype))

    @every_format
    def test_a_selection(self, tmp_path: Path, suffix: str) -> None:
        """Kept steps only, in their order, each with its recorded next state."""
        whole = made()
        chosen = whole.drop(np.arange(20) % 3 == 0).take([1, 0])
        write_file(tmp_path / f"part{suffix}", chosen)
        got = read_exactly([tmp_path / f"part{suffix}"])
        np.testing.assert_array_equal(got.observations, chosen.observations)
        np.testing.assert_array_equal(got.next_observations()[0], chosen.next_observations()[0])
        np.testing.assert_array_equal(got.lengths, chosen.lengths)

    def test_states_only(self, tmp_path: Path) -> None:
        recording = Recording(np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 1]))
        for suffix in WRITTEN:
            write_file(tmp_path / f"x{suffix}", Trajectories.of(recording))
            assert_same(read_exactly([tmp_path / f"x{suffix}"]), Trajectories.of(recording))


class TestOpening:
    def test_endings(self) -> None:
        assert SUFFIXES == (".npz", ".hdf5", ".h5", ".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".pt")

    def test_what_others_write_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        for ending in (".npy", ".mat", ".pkl", ".pickle"):
            with pytest.raises(UserError, match=rf"{ending} is not read; .*numpy\.savez"):
                open_file(tmp_path / f"x{ending}")

    @every_format
    def test_ending_in_capitals(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"X{suffix.upper()}"
        write_file(path, made())
        with open_file(path) as file:
            assert file.path == path and len(file.fields) > 4

    def test_unknown_ending(self, tmp_path: Path) -> None:
        for name in ("x.txt", "x", "x.npz.gz"):
            with pytest.raises(UserError, match=r"expected one of \.npz, \.hdf5, \.h5, \.parquet, \.csv, .*\.pt$"):
                open_file(tmp_path / name)

    @every_format
    def test_no_such_file(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"x{suffix}"
        with pytest.raises(UserError) as caught:
            open_file(path)
        assert str(caught.value) == f"{path}: cannot be read (No such file or directory)"

    @every_format
    def test_not_a_file(self, tmp_path: Path, suffix: str) -> None:
        folder, pipe = tmp_path / f"folder{suffix}", tmp_path / f"pipe{suffix}"
        folder.mkdir()
        os.mkfifo(pipe)
        for path in (folder, pipe):
            with pytest.raises(UserError) as caught:
                open_file(path)
            assert str(caught.value) == f"{path}: not a file, expected recorded steps"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_not_allowed(self, tmp_path: Path) -> None:
        path = tmp_path / "x.npz"
        write_file(path, made())
        path.chmod(0)
        with pytest.raises(UserError, match=r"cannot be read \(Permission denied\)$"):
            open_file(path)

    def test_large_libraries_are_imported_when_needed(self) -> None:
        program = (
            "import sys, tailo_pl.data.formats, tailo_pl.data.formats.imports\n"
            "print([name for name in ('pyarrow', 'h5py', 'torch') if name in sys.modules])"
        )
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == "[]"


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """No file may become longer than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestWriting:
    @every_format
    def test_never_over_another_file(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"x{suffix}"
        path.write_text("precious")
        with pytest.raises(UserError) as caught:
            write_file(path, made())
        assert str(caught.value) == f"{path}: already there, expected the name of a new file"
        assert path.read_text() == "precious"
        assert list(tmp_path.iterdir()) == [path]

    @every_format
    def test_a_full_disk_leaves_nothing_behind(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"x{suffix}"
        write_file(path, made(steps=2))  # libraries are loaded, fields known
        path.unlink()
        with full_disk(20_000), pytest.raises(UserError) as caught:
            write_file(path, made(steps=3000))
        message = str(caught.value)
        assert message.startswith(f"{path}: cannot be written (") and message.isprintable()
        assert list(tmp_path.iterdir()) == []

    @every_format
    def test_an_interrupt_leaves_nothing_behind(self, tmp_path: Path, suffix: str) -> None:
        class Interrupting(np.ndarray):
            def __getitem__(self, key: object) -> object:
                if isinstance(key, np.ndarray):
                    raise KeyboardInterrupt
                return super().__getitem__(key)

        whole = made()
        recording = Recording(whole.recording.observations.view(Interrupting), whole.recording.starts)
        with pytest.raises(KeyboardInterrupt):
            write_file(tmp_path / f"x{suffix}", Trajectories.of(recording))
        assert list(tmp_path.iterdir()) == []

    @every_format
    def test_no_such_folder(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / "nowhere" / f"x{suffix}"
        with pytest.raises(UserError) as caught:
            write_file(path, made())
        assert str(caught.value).startswith(f"{path}: cannot be written (")

    def test_unknown_ending(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"ending '\.txt' found"):
            write_file(tmp_path / "x.txt", made())

    @pytest.mark.parametrize(
        "dropped", [[3], [9], [0, 19]], ids=["in the middle", "last of the first", "first and last"]
    )
    def test_gaps_without_next_states(self, tmp_path: Path, dropped: list[int]) -> None:
        """The file would say that the state after the gap follows the one before it."""
        recording = Recording(made().recording.observations, np.array([0, 10]))
        chosen = Trajectories.of(recording).drop(np.isin(np.arange(20), dropped))
        with pytest.raises(UserError, match="expected whole trajectories"):
            write_file(tmp_path / "x.npz", chosen)

    def test_no_gaps_without_next_states(self, tmp_path: Path) -> None:
        """A beginning may be missing, and trajectories may change places."""
        recording = Recording(made().recording.observations, np.array([0, 10, 15]))
        chosen = Trajectories.of(recording).drop(np.isin(np.arange(20), [0, 1, 10])).take([2, 0])
        write_file(tmp_path / "x.npz", chosen)
        got = read_exactly([tmp_path / "x.npz"])
        np.testing.assert_array_equal(got.observations, recording.observations[[*range(15, 20), *range(2, 10)]])
        np.testing.assert_array_equal(got.lengths, [5, 8])
