"""HDF5 files: what is read is what was written; whatever is not sound is refused in one line."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from helpers.reading import read_whole, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from tailo_pl.data.formats import hdf5, hdf5_columns, record_file
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.hdf5 import Hdf5File, write_hdf5
from tailo_pl.data.formats.imports import import_files
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

STEPS = 50
STATES = np.random.default_rng(0).standard_normal((STEPS, 3)).astype(np.float32)


read = partial(read_whole, Hdf5File)


def refused(path: Path, *names: str) -> str:
    """The whole line with which a file is refused."""
    return f"{path}: {refusal(Hdf5File, path, *names)}"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Makes a file with one dataset `x`; further arguments as for h5py."""

    def make(data: Any = STATES, **arguments: Any) -> Path:
        path = tmp_path / "made.hdf5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=data, **arguments)
        return path

    return make


class TestReading:
    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"chunks": (7, 2)},
            {"compression": "gzip"},
            {"chunks": (7, 3), "compression": "gzip", "shuffle": True},
            {"chunks": (50, 1), "compression": "gzip", "fletcher32": True, "shuffle": True},
            {"chunks": (9, 3), "fletcher32": True},
            {"chunks": (9, 2), "compression": "lzf"},
            {"maxshape": (None, 3), "chunks": (64, 3)},
            {"maxshape": (None, None), "chunks": (64, 64), "compression": "gzip"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("batch_bytes", [1, 100, 1 << 20])
    def test_every_layout(self, make, monkeypatch: pytest.MonkeyPatch, arguments: dict, batch_bytes: int) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        np.testing.assert_array_equal(read(make(**arguments))["x"], STATES)

    @pytest.mark.parametrize("code", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
    def test_every_number_type(self, make, code: str) -> None:
        numbers = np.arange(6).astype(code)
        for arguments in ({}, {"compression": "gzip", "shuffle": True}):
            got = read(make(numbers, **arguments))["x"]
            np.testing.assert_array_equal(got, numbers)
            assert got.dtype == numbers.dtype

    @settings(max_examples=40)
    @given(st.data())
    def test_rows_in_batches_of_any_size(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        rows, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 5))
        chunks = data.draw(st.integers(1, rows)), data.draw(st.integers(1, width))
        numbers = np.arange(rows * width, dtype=np.int32).reshape(rows, width)
        path = tmp_path_factory.mktemp("any") / "any.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset(
                "x", data=numbers, chunks=chunks, compression="gzip", fletcher32=data.draw(st.booleans())
            )
            file.create_dataset("y", data=numbers[:, 0])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_file, "BATCH_BYTES", data.draw(st.integers(1, 400)))
            with Hdf5File(path) as file:
                batches = list(file.batches(["y", "x"]))
        np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in batches]), numbers)
        assert all(np.array_equal(batch["x"][:, 0], batch["y"]) for batch in batches)

    def test_fields_of_all_groups(self, tmp_path: Path) -> None:
        path = tmp_path / "groups.h5"
        with h5py.File(path, "w") as file:
            file["observations"], file["infos/goal"], file["infos/deep/er"] = STATES, STATES[:, 0], STATES[:, :1]
            file["note"], file["images"] = "text", np.zeros((STEPS, 4, 4))
        with Hdf5File(path) as opened:
            widths = {name: field.width for name, field in opened.fields.items()}
            assert widths == {"images": 16, "infos/deep/er": 1, "infos/goal": None, "note": None, "observations": 3}
            assert opened.fields["observations"].dtype == np.float32
        np.testing.assert_array_equal(read(path, "infos/goal", "observations")["infos/goal"], STATES[:, 0])

    def test_read_only_folder_and_file(self, make) -> None:
        path = make()
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            assert len(read(path)["x"]) == STEPS
        finally:
            path.parent.chmod(0o755)

    def test_no_rows(self, make) -> None:
        for arguments in ({}, {"maxshape": (None, 3), "chunks": (8, 3)}):
            with Hdf5File(make(STATES[:0], **arguments)) as file:
                assert list(file.batches(["x"])) == []

    def test_chunks_are_unpacked_once(self, make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", 5 * 12)
        path, unpacked = make(chunks=(7, 2), compression="gzip"), []
        inflate = hdf5_columns._inflate
        monkeypatch.setitem(
            hdf5_columns._UNPACK, h5py.h5z.FILTER_DEFLATE, lambda *given: unpacked.append(given) or inflate(*given)
        )
        read(path)
        assert len(unpacked) == 8 * 2


class TestWriting:
    def recorded(self) -> Trajectories:
        rng = np.random.default_rng(1)
        recording = Recording(
            STATES,
            np.array([0, 20, 45]),
            actions=rng.standard_normal((STEPS, 2)),
            next_observations=STATES + 1,
            rewards=rng.standard_normal(STEPS).astype(np.float16),
            terminals=rng.random(STEPS) < 0.5,
            timeouts=np.zeros(STEPS, dtype=bool),
        )
        return Trajectories.of(recording)

    def test_everything_comes_back(self, tmp_path: Path) -> None:
        path, given = tmp_path / "out.hdf5", self.recorded()
        write_hdf5(path, given)
        got = read(path)
        assert got.keys() == {*given.recording.arrays(), "episode"}
        for name, array in given.recording.arrays().items():
            np.testing.assert_array_equal(got[name], array)
            assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got["episode"], [0] * 20 + [1] * 25 + [2] * 5)
        assert got["episode"].dtype == np.int64

    def test_only_what_is_kept(self, tmp_path: Path) -> None:
        path, given = tmp_path / "out.hdf5", self.recorded().take([2, 0])
        write_hdf5(path, given)
        got = read(path)
        np.testing.assert_array_equal(got["observations"], np.concatenate([STATES[45:], STATES[:20]]))
        np.testing.assert_array_equal(got["episode"], [0] * 5 + [1] * 20)

    def test_other_programs_read_it(self, tmp_path: Path) -> None:
        path = tmp_path / "out.hdf5"
        write_hdf5(path, self.recorded())
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["observations"][:], STATES)
            assert file["observations"].compression == "gzip" and file["observations"].fletcher32
            assert file["terminals"].dtype == bool

    def test_in_several_chunks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hdf5, "CHUNK_BYTES", 100)
        path = tmp_path / "out.hdf5"
        write_hdf5(path, self.recorded())
        with h5py.File(path) as file:
            assert file["observations"].chunks == (8, 3)
        np.testing.assert_array_equal(read(path)["observations"], STATES)

    def test_a_flipped_bit_anywhere_is_noticed_or_harmless(self, tmp_path: Path) -> None:
        path = tmp_path / "out.hdf5"
        write_hdf5(path, self.recorded())
        content, truth = path.read_bytes(), read(path)
        for at in range(0, len(content), 41):
            flipped = bytearray(content)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            try:
                got = read(path)
            except UserError as error:
                assert str(error).startswith(str(path)) and str(error).isprintable()
            else:
                assert got.keys() == truth.keys()
                assert all(np.array_equal(got[name], truth[name]) for name in truth), f"byte {at}"


class TestNotSound:
    def test_no_file(self, tmp_path: Path) -> None:
        assert "No such file" in refused(tmp_path / "none.h5")
        assert "not a file" in refused(tmp_path)
        os.mkfifo(tmp_path / "pipe.h5")
        assert "not a file" in refused(tmp_path / "pipe.h5")

    @pytest.mark.parametrize("content", [b"", b"not HDF5", b"<html>" * 500, b"\x89HDF\r\n\x1a\n", b"\0" * 5000])
    def test_something_else(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "else.h5"
        path.write_bytes(content)
        assert "not an HDF5 file" in refused(path)

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
    def test_truncated(self, make, share: float) -> None:
        path = make(np.random.default_rng(0).standard_normal((5000, 3)), compression="gzip")
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
        assert "truncated" in refused(path)

    def test_links(self, tmp_path: Path) -> None:
        path, other = tmp_path / "links.h5", tmp_path / "other.h5"
        with h5py.File(other, "w") as file:
            file["x"] = STATES
        with h5py.File(path, "w") as file:
            file["x"] = STATES
            file["soft"], file["external"] = h5py.SoftLink("/x"), h5py.ExternalLink("other.h5", "/x")
        assert "soft: a soft link found" in refused(path, "soft")
        assert "external: an external link found" in refused(path, "external")
        np.testing.assert_array_equal(read(path, "x")["x"], STATES)

    def test_numbers_in_other_files(self, tmp_path: Path) -> None:
        path = tmp_path / "elsewhere.h5"
        (tmp_path / "secret").write_bytes(b"\0" * 40)
        with h5py.File(path, "w") as file:
            file.create_dataset("raw", (10,), "f4", external=[(str(tmp_path / "secret"), 0, 40)])
            layout = h5py.VirtualLayout((10,), "f4")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", shape=(10,))
            file.create_virtual_dataset("virtual", layout)
        for name in ("raw", "virtual"):
            assert f"{name}: a dataset kept in other files found" in refused(path, name)

    @pytest.mark.parametrize(
        "data",
        [
            np.arange(5).astype(">f4"),
            np.arange(5).astype(">i8"),
            np.arange(5).astype("c8"),
            np.arange(5).astype("g"),
            np.array([b"a", b"bc"]),
            ["text", "more"],
            np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]),
        ],
        ids=str,
    )
    def test_other_types(self, make, data: Any) -> None:
        path = make(data)
        assert "expected numbers" in refused(path) or "expected little-endian" in refused(path)

    def test_enumerations_are_not_numbers(self, make) -> None:
        kind = h5py.enum_dtype({"red": 0, "blue": 1}, basetype="i1")
        assert "unusual number type" in refused(make(np.zeros(4, "i1"), dtype=kind))

    def test_floats_of_another_kind(self, tmp_path: Path) -> None:
        path = tmp_path / "made.hdf5"
        kind = h5py.h5t.IEEE_F32LE.copy()
        kind.set_ebias(126)  # every number is twice what it seems
        with h5py.File(path, "w") as file:
            space = h5py.h5s.create_simple((4,))
            h5py.h5d.create(file.id, b"x", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, np.ones(4, "f4"))
        assert "x: " in refused(path)

    @pytest.mark.parametrize("data", [3.0, np.zeros((4, 2, 2)), h5py.Empty("f4")], ids=["number", "images", "empty"])
    def test_other_shapes_are_refused_when_used(self, make, data: Any) -> None:
        path = make(data)
        with h5py.File(path, "a") as file:
            file["y"] = STATES
        assert "expected (steps,) or (steps, dim)" in refused(path, "x")
        np.testing.assert_array_equal(read(path, "y")["y"], STATES)

    def test_different_lengths(self, make) -> None:
        path = make()
        with h5py.File(path, "a") as file:
            file["y"] = STATES[1:]
        assert refused(path).endswith("y: 49 rows found, expected 50 as in x")

    @pytest.mark.parametrize("name", ["terminals", "done", "timeouts", "actions", "rewards", "episode"])
    def test_a_group_where_a_dataset_belongs(self, tmp_path: Path, name: str) -> None:
        """Taken for not recorded, `terminals` would make one trajectory of all."""
        path = tmp_path / "x.hdf5"
        with h5py.File(path, "w") as file:
            file["observations"] = np.zeros((4, 2))
            file["step"] = np.arange(4)
            file.create_group(name)["values"] = np.array([0, 1, 0, 1])
        with pytest.raises(UserError) as caught:
            import_files([path], Hdf5File, tmp_path, Columns())
        assert str(caught.value) == f"{path}: {name}: a group found, expected a dataset of this file"

    def test_group_in_itself(self, make) -> None:
        path = make()
        with h5py.File(path, "a") as file:
            file["loop"] = file["/"]
        assert "linked from two places" in refused(path)

    def test_names_that_cannot_be_shown(self, tmp_path: Path) -> None:
        path = tmp_path / "made.hdf5"
        with h5py.File(path, "w") as file:
            file["a\nb"] = STATES
        assert r"'a\nb'" in refused(path)

    def test_bool_that_is_neither(self, tmp_path: Path) -> None:
        path = tmp_path / "made.hdf5"
        for chunks in (None, (4,)):
            with h5py.File(path, "w") as file:
                dataset = file.create_dataset("x", (4,), bool, chunks=chunks)
                kind = dataset.id.get_type()
                dataset.id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 1, 2, 1], "i1").view(bool), mtype=kind)
            assert "neither true nor false" in refused(path)

    def test_unknown_packing(self, make) -> None:
        assert "HDF5 filter 6, expected gzip, lzf or none" in refused(make(np.arange(50), scaleoffset=4))


class TestStorage:
    """A file that says it holds more than it does."""

    def test_numbers_that_were_never_written(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("plain", (10**12, 100), "f8")
            file.create_dataset("chunked", (10**12, 100), "f8", chunks=(1000, 100), compression="gzip")
        assert "0 bytes are stored, expected 800000000000000" in refused(path, "plain")
        assert "0 chunks are stored, expected 1000000000" in refused(path, "chunked")

    def test_a_missing_chunk(self, tmp_path: Path) -> None:
        path = tmp_path / "hole.h5"
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (30,), "f4", chunks=(10,))
            dataset[:10] = dataset[20:] = 1
        assert "2 chunks are stored, expected 3" in refused(path)

    def packed(self, tmp_path: Path, content: bytes, mask: int = 0) -> Path:
        """A file whose second chunk of 1000 numbers is given; otherwise ones."""
        path = tmp_path / "packed.h5"
        with h5py.File(path, "w") as file:
            dataset = file.create_dataset("x", (3000,), "f4", chunks=(1000,), compression="gzip")
            dataset[:] = 1
            dataset.id.write_direct_chunk((1000,), content, mask)
        return path

    def test_chunks_of_another_size(self, tmp_path: Path) -> None:
        ones = np.ones(1000, "f4").tobytes()
        assert (read(self.packed(tmp_path, zlib.compress(ones)))["x"] == 1).all()
        assert (read(self.packed(tmp_path, ones, mask=1))["x"] == 1).all()  # left unpacked by the writer
        assert "at row 1000" in refused(self.packed(tmp_path, zlib.compress(ones[:64])))
        assert "at row 1000" in refused(self.packed(tmp_path, ones[:64], mask=1))
        for content in (zlib.compress(ones + b"x" * 9), zlib.compress(ones)[:-3], b"nonsense"):
            assert "damaged" in refused(self.packed(tmp_path, content))

    def test_a_forgotten_packing(self, tmp_path: Path) -> None:
        """Damage that hides the description of the filters: the library would read past the stored chunk."""
        path = tmp_path / "packed.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.random.default_rng(0).standard_normal(120), compression="gzip")
        content = path.read_bytes()
        assert content.count(b"\x0b\x00\x20\x00\x01") == 1  # a message about filters, 32 bytes long
        path.write_bytes(content.replace(b"\x0b\x00\x20\x00\x01", b"\x4b\x00\x20\x00\x01"))
        assert "expected 960" in refused(path)

    def test_a_chunk_that_unpacks_to_a_flood(self, tmp_path: Path) -> None:
        assert "damaged" in refused(self.packed(tmp_path, zlib.compress(bytes(50 << 20))))

    def test_checksums_are_compared(self, tmp_path: Path) -> None:
        path = tmp_path / "sums.h5"
        for arguments in ({}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"}):
            with h5py.File(path, "w") as file:
                dataset = file.create_dataset("x", data=STATES, chunks=(10, 3), fletcher32=True, **arguments)
                mask, content = dataset.id.read_direct_chunk((20, 0))
                content = bytearray(content)
                content[5] ^= 4
                dataset.id.write_direct_chunk((20, 0), bytes(content), mask)
            assert "damaged" in refused(path)

    @settings(max_examples=40)
    @given(st.binary(min_size=2, max_size=3000))
    def test_checksum_is_that_of_hdf5(self, tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
        path = tmp_path_factory.mktemp("sum") / "sum.h5"
        numbers = np.frombuffer(content, np.uint8)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numbers, fletcher32=True)
        np.testing.assert_array_equal(read(path)["x"], numbers)

    def test_more_than_any_file_of_its_size_holds(self, make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_ALWAYS_ALLOWED", 0)
        monkeypatch.setattr(record_file, "_MOST_EXPANSION", 10)
        path = make(np.zeros(100_000), compression="gzip", chunks=(100_000,))
        assert "unpacks from" in refused(path)

    def test_the_flipped_bits_of_a_file_without_checksums(self, make) -> None:
        """Only names may change unnoticed, and zeros of the description that mean nothing."""
        path = make(STATES, compression="gzip")
        content = path.read_bytes()
        for at in range(0, len(content), 29):
            flipped = bytearray(content)
            flipped[at] ^= 1 << at % 8
            path.write_bytes(flipped)
            try:
                got = read(path, "x")
            except UserError as error:
                assert str(error).startswith(str(path)) and str(error).isprintable()
            else:
                np.testing.assert_array_equal(got["x"], STATES, err_msg=f"byte {at}")


def test_open_files_are_closed(make) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    path = make(np.zeros((4, 2, 2)))
    for _ in range(5):
        refused(path)
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    assert before == after
