"""Parquet files: numbers, vectors and names of episodes in pieces; the rest refused in one line."""

from __future__ import annotations

import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.reading import read_whole, refusal

from tailo_pl.data.formats import record_file
from tailo_pl.data.formats.parquet import ParquetFile, write_parquet
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

STATES = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
FLOATS = pa.list_(pa.float32())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.parquet"


read = partial(read_whole, ParquetFile)
refused = partial(refusal, ParquetFile)


def save(path: Path, arguments: dict[str, Any] | None = None, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, **arguments or {})
    return path


class TestReading:
    @pytest.mark.parametrize("batch_bytes", [1, 100, 1 << 20])
    @pytest.mark.parametrize(
        "kind", [FLOATS, pa.list_(pa.float32(), 3), pa.large_list(pa.float32())], ids=["list", "fixed", "large"]
    )
    @pytest.mark.parametrize("group", [7, 50])
    def test_vectors(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int, kind: pa.DataType, group: int
    ) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        save(path, {"row_group_size": group}, x=pa.array(STATES.tolist(), kind), y=np.arange(50))
        got = read(path)
        np.testing.assert_array_equal(got["x"], STATES)
        assert got["x"].dtype == np.float32
        np.testing.assert_array_equal(got["y"], np.arange(50))

    @pytest.mark.parametrize("code", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
    def test_every_number_type(self, path: Path, code: str) -> None:
        numbers = np.arange(6).astype(code)
        got = read(save(path, x=pa.array(numbers)))["x"]
        np.testing.assert_array_equal(got, numbers)
        assert got.dtype == numbers.dtype

    @pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
    @pytest.mark.parametrize("more", [{}, {"use_dictionary": False, "data_page_version": "2.0"}])
    def test_however_it_is_packed(self, path: Path, compression: str, more: dict[str, Any]) -> None:
        save(path, {"compression": compression, "data_page_size": 64, **more}, x=STATES[:, 0], y=np.arange(50) % 3)
        got = read(path)
        np.testing.assert_array_equal(got["x"], STATES[:, 0])
        np.testing.assert_array_equal(got["y"], np.arange(50) % 3)

    def test_names_of_episodes(self, path: Path) -> None:
        names = ["run a", "run é", "run a"]
        save(path, s=names, d=pa.array(names).dictionary_encode(), l=pa.array(names, pa.large_string()))
        assert {name: column.tolist() for name, column in read(path).items()} == {"s": names, "d": names, "l": names}

    def test_fields(self, path: Path) -> None:
        save(path, x=pa.array(STATES.tolist(), FLOATS), y=np.arange(50), s=["a"] * 50, none=pa.nulls(50))
        with ParquetFile(path) as file:
            assert {name: (field.dtype.str, field.width) for name, field in file.fields.items()} == {
                "x": ("<f4", 3),
                "y": ("<i8", None),
                "s": ("|O", None),
                "none": ("|O", None),
            }

    def test_names_with_dots(self, path: Path) -> None:
        save(path, **{"obs": np.arange(3), "obs.0": np.arange(3) + 1, "obs.0.1": np.arange(3) + 2})
        assert read(path, "obs.0", "obs")["obs.0"].tolist() == [1, 2, 3]

    def test_what_is_not_used_may_be_anything(self, path: Path) -> None:
        save(
            path,
            when=pa.array([datetime.datetime(2020, 1, 1)] * 2),
            info=pa.array([{"seed": 1, "tags": ["a"]}, None]),
            x=pa.array([1.0, 2.0]),
        )
        assert read(path, "x")["x"].tolist() == [1, 2]

    def test_no_rows(self, path: Path) -> None:
        save(path, x=pa.array([], FLOATS), y=pa.array([], pa.float32()))
        with ParquetFile(path) as file:
            assert list(file.batches(["x", "y"])) == []

    def test_memory_is_bounded(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Even where all rows are in one group."""
        monkeypatch.setattr(record_file, "BATCH_BYTES", 1 << 20)
        rows = 1_000_000
        save(path, {"row_group_size": rows}, x=np.arange(rows) * 0.5, y=np.arange(rows, dtype=np.float32))
        pool = pa.default_memory_pool()
        before, most, count = pool.bytes_allocated(), 0, 0
        with ParquetFile(path) as file:
            for batch in file.batches(["x", "y"]):
                most = max(most, pool.bytes_allocated() - before)
                count += len(batch["x"])
        assert count == rows
        assert most < 8 << 20  # of 12 MB in memory


class TestRefusing:
    def test_not_parquet(self, path: Path) -> None:
        for content in (b"", b"PAR1", b"PAR1" * 10, b"\0" * 100):
            path.write_bytes(content)
            assert "damaged or not a Parquet file" in refused(path)

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([datetime.datetime(2020, 1, 1)]),
            pa.array([datetime.date(2020, 1, 1)]),
            pa.array([{"a": 1.0}]),
            pa.array([Decimal("1.5")]),
            pa.array([b"a"]),
            pa.array([["a"]]),
            pa.array([[[1.0]]]),
            pa.nulls(1),
        ],
        ids=lambda column: str(column.type),
    )
    def test_other_types(self, path: Path, column: pa.Array) -> None:
        assert refused(save(path, x=column)) == f"x: type {column.type} found, expected numbers".replace(
            "item: ", "element: "
        )

    @pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
    def test_missing_values(self, path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        message = "x: nothing found in row 2 (counted from 0), expected a value in every row"
        for column in ([1.0, 2.0, None], [True, False, None], ["a", "b", None], [[1.0], [2.0], None]):
            assert refused(save(path, x=column)) == message
        assert refused(save(path, x=[[1.0, 2.0], [3.0, 4.0], [5.0, None]])).startswith(
            "x: a number is missing in row 2 (counted from 0)"
        )

    @pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
    def test_lists_of_different_lengths(self, path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        save(path, x=[[1.0, 2.0], [3.0, 4.0], [5.0]])
        assert refused(path) == "x: 1 numbers found in row 2 (counted from 0), expected the same in every row"
        save(path, x=[[1.0, 2.0], [], [5.0, 6.0, 7.0, 8.0]])
        assert refused(path) == "x: 0 numbers found in row 1 (counted from 0), expected the same in every row"

    def test_names_twice(self, path: Path) -> None:
        pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), path)
        assert refused(path) == "column 'x' found twice, expected each name once"

    def test_changed_pages(self, path: Path) -> None:
        save(path, {"write_page_checksum": True, "compression": "none", "use_dictionary": False}, x=STATES[:, 0])
        content = bytearray(path.read_bytes())
        content[content.index(STATES[25, 0].tobytes())] ^= 1
        path.write_bytes(content)
        assert "damaged" in refused(path)

    def test_a_changed_description(self, path: Path) -> None:
        """It has no checksum. An 8 in it stands for 4 rows or for the type float, each of which is said twice."""
        save(path, {"row_group_size": 4, "write_page_checksum": True}, x=STATES[:12, 0], y=STATES[:12, 1])
        content, messages = path.read_bytes(), []
        begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        for place in range(begin, len(content) - 8):
            for bit in range(8) if content[place] == 8 else []:
                harmed = bytearray(content)
                harmed[place] ^= 1 << bit
                path.write_bytes(harmed)
                try:
                    got = read(path, "x", "y")
                except UserError as error:
                    messages.append(str(error))
                else:
                    np.testing.assert_array_equal(np.stack([got["x"], got["y"]], axis=1), STATES[:12, :2])
        assert any("rows found, 12 announced" in message for message in messages)
        assert any("its description contradicts itself" in message for message in messages)

    def test_far_more_content_than_file(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_ALWAYS_ALLOWED", 1 << 16)
        assert "unpacks from" in refused(save(path, x=np.zeros(10_000_000)))

    def test_far_more_text_than_file(self, path: Path) -> None:
        save(path, {"compression": "zstd"}, x=pa.array(["a" * (100 << 20)]))
        before = pa.default_memory_pool().bytes_allocated()
        assert "unpacks from" in refused(path)
        assert pa.default_memory_pool().bytes_allocated() - before < 1 << 20

    def test_a_vector_of_millions(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_MOST_EXPANSION", 1 << 30)
        lists = pa.ListArray.from_arrays(pa.array([0, 4_000_000], pa.int32()), pa.array(np.zeros(4_000_000)))
        assert refused(save(path, x=lists)) == "x: 4,000,000 numbers in a row found, expected a vector"

    def test_names_that_differ_from_arrows_own(self, path: Path) -> None:
        """The description at the end has no checksum, but most files have two."""
        save(path, actions=np.arange(3), odd=np.arange(3))
        content = path.read_bytes()
        path.write_bytes(content.replace(b"odd", b"add"))
        assert "have other names as well" in refused(path, "actions")


def test_written_file(path: Path) -> None:
    recording = Recording(
        STATES, np.array([0, 30]), actions=STATES[:, :1].astype(np.float64), terminals=np.arange(50) == 29
    )
    write_parquet(path, Trajectories.of(recording))
    table = pq.read_table(path, page_checksum_verification=True)
    states = ["observations_0", "observations_1", "observations_2"]
    assert table.schema.names == [*states, "actions_0", "terminals", "episode"]
    assert [str(kind) for kind in table.schema.types] == ["float"] * 3 + ["double", "bool", "int64"]
    np.testing.assert_array_equal(table["observations_1"], STATES[:, 1])
    np.testing.assert_array_equal(table["episode"], [0] * 30 + [1] * 20)
