"""CSV tables: numbers exactly as written, whatever wrote them; each odd cell named in one line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.formats import csv_table
from tailo_pl.data.formats.csv_table import CsvFile, write_csv
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.csv"


def read(path: Path, content: bytes | str, *names: str) -> dict[str, Any]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with CsvFile(path) as file:
        batches = list(file.batches(names or list(file.fields)))
    return {name: np.concatenate([batch[name] for batch in batches]).tolist() for name in batches[0]} if batches else {}


def refused(path: Path, content: bytes | str, *names: str) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(UserError) as caught:
        read(path, content, *names)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and message.isprintable() and len(message) < len(str(path)) + 400
    return message.removeprefix(f"{path}: ")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read some fifty bytes at a time."""
    monkeypatch.setattr(csv_table, "_BLOCK_BYTES", 50)


class TestReading:
    @pytest.mark.parametrize(
        "content",
        [
            b"x,y\n1,2\n3,4.5\n",
            b"x,y\n1,2\n3,4.5",
            b"x,y\r\n1,2\r\n3,4.5\r\n",
            b"\xef\xbb\xbfx,y\n1,2\n3,4.5\n",
            b'"x","y"\n"1","2"\n"3","4.5"\n',
            b" x , y\n 1 , 2\n 3,\t4.5\n",
            b"x,y\n\n1,2\n\n3,4.5\n\n\n",
            b"x,y\n1e0,2.000\n0.3e1,45e-1\n",
        ],
        ids=["plain", "no last line break", "windows", "bom", "quotes", "spaces", "empty lines", "exponents"],
    )
    def test_however_it_is_written(self, path: Path, content: bytes) -> None:
        assert read(path, content) == {"x": [1.0, 3.0], "y": [2.0, 4.5]}

    def test_fields(self, path: Path) -> None:
        read(path, "n,f,b,t,none,episode,odd,day\n1,0.5,True,a,,7,7,2020-01-02\n2,1,False,5,,8,x,2020-01-03\n", "n")
        with CsvFile(path) as file:
            assert {name: (field.dtype.str, field.width) for name, field in file.fields.items()} == {
                "n": ("<f8", None),
                "f": ("<f8", None),
                "b": ("|b1", None),
                "t": ("|O", None),
                "none": ("<f8", None),
                "episode": ("|O", None),
                "odd": ("<f8", None),
                "day": ("|O", None),
            }

    def test_order_of_the_names_asked_for(self, path: Path) -> None:
        assert list(read(path, "x,y,z\n1,2,3\n", "z", "x")) == ["z", "x"]

    def test_booleans(self, path: Path) -> None:
        content = "a,b\nTrue,false\nFALSE,true\n"
        assert read(path, content) == {"a": [True, False], "b": [False, True]}

    def test_names_of_episodes_stay_text(self, path: Path) -> None:
        content = "episode,x\n9007199254740993,1\n007,2\nrun a,3\n"
        assert read(path, content)["episode"] == ["9007199254740993", "007", "run a"]

    def test_text_with_commas_quotes_and_accents(self, path: Path) -> None:
        assert read(path, 'episode,x\n"a, b",1\n"say ""é""",2\n')["episode"] == ["a, b", 'say "é"']

    def test_whole_numbers_that_become_fractions(self, path: Path, small_blocks: None) -> None:
        """The first rows say what a column is, but not that it stays whole: sparse rewards begin with zeros."""
        content = "rewards\n" + "0\n" * 100 + "0.25\n"
        assert read(path, content)["rewards"] == [0.0] * 100 + [0.25]

    def test_rows_across_blocks(self, path: Path, small_blocks: None) -> None:
        content = "x,episode\n" + "".join(f"{number / 8},e{number}\n" for number in range(300))
        got = read(path, content)
        assert got["x"] == [number / 8 for number in range(300)]
        assert got["episode"] == [f"e{number}" for number in range(300)]

    def test_no_rows(self, path: Path) -> None:
        assert read(path, "x,y\n") == {}

    def test_not_a_number_and_infinite_are_left_to_the_importer(self, path: Path) -> None:
        got = read(path, "x\n1\nnan\ninf\n-inf\n1e999\n")["x"]
        np.testing.assert_array_equal(got, [1, np.nan, np.inf, -np.inf, np.inf])

    def test_what_is_not_used_may_be_anything(self, path: Path, small_blocks: None) -> None:
        content = b"x,note\n" + b"1,0.5\n" * 20 + b"2,caf\xe9\n3,\n4,0x10\n"
        assert read(path, content, "x")["x"] == [1.0] * 20 + [2.0, 3.0, 4.0]


class TestRefusing:
    def test_nothing(self, path: Path) -> None:
        assert refused(path, "").startswith("not a CSV table")
        assert refused(path, "\n\n").startswith("not a CSV table")

    @pytest.mark.parametrize("row", ["1", "1,2,3", '"1,2', "1;2"])
    def test_another_number_of_cells(self, path: Path, row: str) -> None:
        assert "Row #3: Expected 2 columns" in refused(path, f"x,y\n1,2\n{row}\n3,4\n")

    @pytest.mark.parametrize("cell", ["abc", "0x1f", "1_000", "1.2.3", "1,5", "--1", "NA", "1\0", "½"])
    def test_a_cell_that_is_no_number(self, path: Path, small_blocks: None, cell: str) -> None:
        content = "x,y\n" + "1,2\n" * 30 + f'3,"{cell}"\n'
        assert refused(path, content) == f"y: '{cell.replace(chr(0), '?')}' found in line 32, expected a number"

    def test_an_empty_cell(self, path: Path) -> None:
        assert refused(path, "x,y\n1,2\n3,\n") == "y: an empty cell found in line 3, expected a number"
        assert refused(path, "x,y\n1,2\n3, \n") == "y: '' found in line 3, expected a number"
        assert refused(path, "b,x\nTrue,1\n,1\n") == "b: an empty cell found in line 3, expected a number"
        assert refused(path, "episode,x\na,1\n,1\n") == "episode: an empty cell found in line 3, expected text"

    def test_an_empty_line_where_there_is_one_column(self, path: Path) -> None:
        assert refused(path, "x\n1\n\n3\n") == "x: an empty cell found in line 3, expected a number"

    def test_names_twice(self, path: Path) -> None:
        assert refused(path, "x,y,x\n1,2,3\n") == "column 'x' found twice, expected each name once"
        assert refused(path, "x,y, x\n1,2,3\n") == "column 'x' found twice, expected each name once"

    @pytest.mark.parametrize("content", [b"x\0,y\n1,2\n", b"\x1b[31mx,y\n1,2\n", b'"x\nz",y\n1,2\n'])
    def test_names_that_cannot_be_shown(self, path: Path, content: bytes) -> None:
        assert "expected a line of names" in refused(path, content)

    @pytest.mark.parametrize("content", [b"x\xff,y\n1,2\n", "x,y\n1,2\n".encode("utf-16")])
    def test_not_utf8(self, path: Path, content: bytes) -> None:
        assert "not a CSV table" in refused(path, content)
        assert "not UTF-8" in refused(path, b"episode,x\n\xff,1\n")

    @pytest.mark.parametrize("names", [("x",), ("x", "note")])
    @pytest.mark.parametrize("note", ['"a\n2,b\n3,c\n', '"a\n2,b"\n3,c\n', '"a\r2,b"\n3,c\n'])
    def test_rows_swallowed_by_a_quote(self, path: Path, names: tuple[str, ...], note: str) -> None:
        assert refused(path, f"x,note\n0,z\n1,{note}", *names).startswith(
            "note: a line break within quotes found in line 3"
        )

    def test_whole_numbers_too_large(self, path: Path) -> None:
        """Read as float64, neighbouring time stamps would be the same."""
        message = "timestep: an integer of more than 53 bits found in line 3, expected numbers that float64 can hold"
        assert refused(path, "timestep\n1\n9007199254740993\n") == message
        assert read(path, "timestep\n1.5\n9007199254740993\n") == {"timestep": [1.5, 9007199254740992.0]}

    def test_too_many_columns(self, path: Path) -> None:
        assert refused(path, "\n" + "," * 10_000 + "\n") == "10,001 columns found, expected at most 10,000"

    def test_a_line_without_end(self, path: Path, small_blocks: None) -> None:
        assert "not a CSV table" in refused(path, "x,y\n1," + "2" * 1000 + "\n")
        assert "not a CSV table" in refused(path, "x" * 1000)


class TestWriting:
    def test_as_people_read_it(self, path: Path) -> None:
        recording = Recording(
            np.array([[0.5, -1], [2, 0.1]]),
            np.array([0, 1]),
            actions=np.array([[1], [2]], dtype=np.float32),
            rewards=np.array([0.1, 3], dtype=np.float32),
            terminals=np.array([True, False]),
        )
        write_csv(path, Trajectories.of(recording))
        assert path.read_text().splitlines() == [
            "observations_0,observations_1,actions_0,rewards,terminals,episode",
            "0.5,-1,1,0.10000000149011612,1,0",
            "2,0.1,2,3,0,1",
        ]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_every_number_survives(self, tmp_path_factory: pytest.TempPathFactory, dtype: type) -> None:
        path = tmp_path_factory.mktemp("csv") / "made.csv"
        width = np.finfo(dtype).bits

        @given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=width), min_size=1))
        def survives(values: list[float]) -> None:
            states = np.array(values, dtype=dtype)[:, None]
            write_csv(path, Trajectories.of(Recording(states, np.array([0]))))
            with CsvFile(path) as file:
                (batch,) = file.batches(["observations_0"])
            assert batch["observations_0"].astype(dtype).tobytes() == states.tobytes()

        survives()


class TestDialects:
    """Tables as spreadsheets and loggers write them."""

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("x.csv", "q0,q1,note\n1.5,-2,a\n0.25,3e-2,b\n"),
            ("x.csv", "q0;q1;note\n1.5;-2;a\n0.25;3e-2;b\n"),
            ("x.csv", "q0;q1;note\r\n1,5;-2;a\r\n0,25;3e-2;b\r\n"),
            ("x.csv", '"q0";"q1";"note"\n"1,5";-2;"a"\n"0,25";3e-2;"b"\n'),
            ("x.csv", "\ufeffq0;q1;note\n1,5;-2,0;a\n0,25;3,0e-2;b\n"),
            ("x.tsv", "q0\tq1\tnote\n1.5\t-2\ta\n0.25\t3e-2\tb\n"),
            ("x.tsv", "q0\tq1\tnote\n1,5\t-2\ta\n0,25\t0,03\tb\n"),
            ("x.csv", "q0|q1|note\n1.5|-2|a\n0.25|3e-2|b\n"),
            ("x.csv.gz", "q0,q1,note\n1.5,-2,a\n0.25,3e-2,b\n"),
            ("x.tsv.gz", "q0\tq1\tnote\n1.5\t-2\ta\n0.25\t3e-2\tb\n"),
        ],
    )
    def test_found_by_themselves(self, tmp_path: Path, name: str, content: str) -> None:
        encoded = content.encode()
        path, written = tmp_path / name, gzip.compress(encoded) if name.endswith(".gz") else encoded
        assert read(path, written, "q0", "q1") == {"q0": [1.5, 0.25], "q1": [-2.0, 0.03]}

    def test_lines_count_empty_ones(self, tmp_path: Path) -> None:
        """As an editor shows them, whatever the reader leaves out."""
        content = "q0;q1\n1;2\n\n\n3;\n"
        assert refused(tmp_path / "x.csv", content) == "q1: an empty cell found in line 5, expected a number"
        packed = gzip.compress(content.replace("3;", "3;x").encode())
        assert refused(tmp_path / "x.csv.gz", packed) == "q1: 'x' found in line 5, expected a number"

    def test_a_damaged_archive(self, tmp_path: Path) -> None:
        packed = gzip.compress(b"q0,q1\n" + b"1,2\n" * 10_000)
        assert "not a CSV table" in refused(tmp_path / "x.csv.gz", packed[: len(packed) // 2])
