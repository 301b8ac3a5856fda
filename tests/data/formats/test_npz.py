"""NumPy archives: what is read is what was written, in pieces; whatever is not sound is refused in one line."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.reading import read_whole, refusal

from tailo_pl.data.formats import npz, record_file
from tailo_pl.data.formats.npz import NpzFile, write_npz
from tailo_pl.data.trajectories import Recording, Trajectories

STATES = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)


read = partial(read_whole, NpzFile)
refused = partial(refusal, NpzFile)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    return stream.getvalue()


def header(text: str, version: bytes = b"\1\0") -> bytes:
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + version + length + text.encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.npz"


def pack(path: Path, compression: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


class TestReading:
    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("batch_bytes", [1, 100, 1 << 20])
    def test_several_arrays_together(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, save: Any, batch_bytes: int
    ) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        arrays = {"x": STATES, "y": np.arange(50), "z": STATES[:, :1].astype(np.float64)}
        save(path, **arrays)
        got = read(path)
        assert list(got) == ["x", "y", "z"]
        for name, array in arrays.items():
            np.testing.assert_array_equal(got[name], array)
            assert got[name].dtype == array.dtype and got[name].shape == array.shape

    def test_fields(self, path: Path) -> None:
        np.savez(path, x=STATES, y=np.arange(50, dtype=np.int16), one=np.zeros((50, 1)))
        with NpzFile(path) as file:
            assert [(name, field.dtype, field.width) for name, field in file.fields.items()] == [
                ("x", np.float32, 3),
                ("y", np.int16, None),
                ("one", np.float64, 1),
            ]

    @pytest.mark.parametrize("code", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_every_number_type(self, path: Path, code: str, order: str) -> None:
        numbers = np.arange(6).astype(code)
        np.savez(path, x=numbers.astype(order + code))
        got = read(path)["x"]
        np.testing.assert_array_equal(got, numbers)
        assert got.dtype == np.dtype(code) and got.dtype.isnative

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("batch_bytes", [1, 100, 1 << 20])
    @pytest.mark.parametrize("array", [STATES, STATES[:, :1], STATES[:1]], ids=lambda array: str(array.shape))
    def test_columns_first(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, save: Any, batch_bytes: int, array: np.ndarray
    ) -> None:
        """As arrays of data frames are."""
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        monkeypatch.setattr(npz, "BATCH_BYTES", batch_bytes)
        save(path, x=np.asfortranarray(array), y=np.arange(len(array)))
        np.testing.assert_array_equal(read(path)["x"], array)

    def test_names_without_ending_and_other_files(self, path: Path) -> None:
        pack(path, **{"x": npy(STATES), "y.npy": npy(STATES), "readme.txt": b"about this data", "empty": b""})
        with NpzFile(path) as file:
            assert list(file.fields) == ["x", "y"]

    def test_what_is_not_used_may_be_anything(self, path: Path) -> None:
        np.savez(path, x=STATES, info=np.array([{"seed": 1}], dtype=object), scalar=1.0, images=np.zeros((2, 2, 2)))
        np.testing.assert_array_equal(read(path, "x")["x"], STATES)

    def test_a_header_of_version_2(self, path: Path) -> None:
        content = header("{'descr': '<f4', 'fortran_order': False, 'shape': (50, 3)}\n", b"\2\0") + STATES.tobytes()
        np.testing.assert_array_equal(read(pack(path, x=content))["x"], STATES)

    def test_no_rows(self, path: Path) -> None:
        np.savez(path, x=STATES[:0], y=np.asfortranarray(STATES[:0]))
        with NpzFile(path) as file:
            assert list(file.batches(["x", "y"])) == []

    def test_memory_is_bounded(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", 1 << 20)
        np.savez_compressed(path, x=np.zeros((1_000_000, 4), dtype=np.float32), y=np.zeros((1_000_000, 2)))
        tracemalloc.start()
        with NpzFile(path) as file:
            rows = sum(len(batch["x"]) for batch in file.batches(["x", "y"]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert rows == 1_000_000
        assert peak < 8 << 20  # of 32 MB


class TestRefusing:
    def test_not_an_archive(self, path: Path) -> None:
        for content in (b"", b"PK", npy(STATES), b"\0" * 100):
            path.write_bytes(content)
            assert "damaged or not a NumPy archive" in refused(path)

    def test_no_arrays(self, path: Path) -> None:
        assert refused(pack(path, data=b"something else")).startswith("no array found")

    @pytest.mark.parametrize(
        "array",
        [
            np.array([1, None], dtype=object),
            np.array(["a", "b"]),
            np.array([b"a", b"b"]),
            np.array([1j, 2]),
            np.array([1, 2], dtype="M8[s]"),
            np.array([1, 2], dtype=np.longdouble),
            np.zeros(2, dtype=[("a", "f4")]),
        ],
        ids=lambda array: str(array.dtype),
    )
    def test_anything_but_numbers(self, path: Path, array: np.ndarray) -> None:
        np.savez(path, x=array)
        assert refused(path) == f"x: type {array.dtype} found, expected numbers"

    @pytest.mark.parametrize("array", [np.float32(1), np.zeros((2, 2, 2), dtype=np.float32)], ids=["()", "(2,2,2)"])
    def test_other_shapes(self, path: Path, array: np.ndarray) -> None:
        np.savez(path, x=array)
        assert refused(path) == f"x: shape {array.shape} found, expected (steps,) or (steps, dim)"

    def test_different_numbers_of_rows(self, path: Path) -> None:
        np.savez(path, x=STATES, y=STATES[:49])
        assert refused(path) == "y: 49 rows found, expected 50 as in x"
        np.testing.assert_array_equal(read(path, "y")["y"], STATES[:49])

    @pytest.mark.parametrize("shape", ["(51, 3)", "(49, 3)", "(1000000000000, 3)", "(0, 3)"])
    def test_a_header_that_does_not_fit(self, path: Path, shape: str) -> None:
        content = header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n") + STATES.tobytes()
        assert "x: 600 bytes are stored, expected" in refused(pack(path, x=content))

    @pytest.mark.parametrize(
        "text",
        [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-50, -3)}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (50, 3)}",
            "{'descr': 'nonsense', 'fortran_order': False, 'shape': (50, 3)}",
            "{'descr': '<f4', 'shape': (50, 3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (50, 3)",
            "__import__('os').getcwd()",
            "(" * 9000,
            "x" * 20_000,
            "",
        ],
        ids=lambda text: text[:45],
    )
    def test_a_header_that_makes_no_sense(self, path: Path, text: str) -> None:
        assert "'x': damaged" in refused(pack(path, x=header(text) + STATES.tobytes()))

    def test_unknown_version(self, path: Path) -> None:
        content = b"\x93NUMPY\3\0" + npy(STATES)[8:]
        assert "expected 1.0 or 2.0" in refused(pack(path, x=content))

    def test_a_boolean_that_is_neither(self, path: Path) -> None:
        content = npy(np.zeros(3, dtype=bool))[:-1] + b"\2"
        assert "neither true nor false" in refused(pack(path, x=content))

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_changed_numbers_are_noticed(self, path: Path, save: Any, order: str) -> None:
        """The checksum stands at the end of an array: it is compared even when a batch ends where the array does."""
        save(path, x=np.asarray(np.random.default_rng(0).integers(0, 9, (5000, 2)), order=order))
        with zipfile.ZipFile(path) as archive:
            middle = archive.getinfo("x.npy").header_offset + archive.getinfo("x.npy").compress_size // 2
        content = bytearray(path.read_bytes())
        content[middle] ^= 1
        path.write_bytes(content)
        assert "damaged" in refused(path)

    def test_encrypted(self, path: Path) -> None:
        np.savez(path, x=STATES)
        content = bytearray(path.read_bytes())
        content[content.index(b"PK\1\2") + 8] |= 1
        path.write_bytes(content)
        assert refused(path) == "'x.npy': encrypted, expected a plain array"

    @pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_other_compression(self, path: Path, method: int) -> None:
        assert f"compressed with method {method}" in refused(pack(path, method, x=npy(STATES)))

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_a_name_found_twice(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", npy(STATES))
            archive.writestr("x.npy", npy(-STATES))
        assert "found twice" in refused(path)
        assert "found twice" in refused(pack(path, **{"x": npy(STATES), "x.npy": npy(STATES)}))

    def test_a_directory_entry_that_swallows_the_next(self, path: Path) -> None:
        np.savez(path, x=STATES, y=STATES)
        content = bytearray(path.read_bytes())
        first = content.index(b"PK\1\2")
        second = content.index(b"PK\1\2", first + 1)
        content[first + 32 : first + 34] = struct.pack("<H", content.index(b"PK\5\6") - second)
        path.write_bytes(content)
        assert "swallowed" in refused(path)

    def test_far_more_content_than_file(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_ALWAYS_ALLOWED", 1 << 16)
        np.savez_compressed(path, x=np.zeros((1_000_000, 4)))
        assert "unpacks from" in refused(path)


def test_written_archive(tmp_path: Path) -> None:
    recording = Recording(STATES, np.array([0, 30]), rewards=np.arange(50.0))
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, Trajectories.of(recording))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"observations", "rewards", "episode"}
        np.testing.assert_array_equal(arrays["observations"], STATES)
        np.testing.assert_array_equal(arrays["episode"], [0] * 30 + [1] * 20)
        assert arrays["rewards"].dtype == np.float64 and arrays["episode"].dtype == np.int64
