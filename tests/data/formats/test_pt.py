"""PyTorch files as the method's authors write them: read without running anything that is in them."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.reading import read_whole, refusal

from tailo_pl.data.formats import record_file
from tailo_pl.data.formats.pt import PtFile, write_pt
from tailo_pl.data.trajectories import Recording, Trajectories

STATES = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.pt"


read = partial(read_whole, PtFile)
refused = partial(refusal, PtFile)


def save(path: Path, content: Any) -> Path:
    torch.save(content, path)
    return path


def repacked(path: Path, change: Callable[[str, bytes], bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Change the members of a file and pack it again, with right checksums."""
    with zipfile.ZipFile(path) as archive:
        members = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def as_the_authors() -> list[dict[str, Any]]:
    return [
        {
            "state": state,
            "action": np.float64([number, -number]),
            "next_state": state + 1,
            "terminal": np.bool_(number == 4),
            "step": number,
        }
        for number, state in enumerate(STATES)
    ]


class TestReading:
    @pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
    @pytest.mark.parametrize("module", [b"numpy._core.multiarray", b"numpy.core.multiarray"])
    def test_the_authors_files(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int, module: bytes
    ) -> None:
        """The module has one name before numpy 2 and another one since."""
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        save(path, as_the_authors())
        repacked(path, lambda name, content: content.replace(b"numpy._core.multiarray", module))
        got = read(path)
        np.testing.assert_array_equal(got["state"], STATES)
        np.testing.assert_array_equal(got["action"], np.arange(5)[:, None] * [1.0, -1.0])
        np.testing.assert_array_equal(got["next_state"], STATES + 1)
        np.testing.assert_array_equal(got["terminal"], [False] * 4 + [True])
        np.testing.assert_array_equal(got["step"], np.arange(5))
        assert [array.dtype.str for array in got.values()] == ["<f4", "<f8", "<f4", "|b1", "<i8"]

    @pytest.mark.parametrize(
        "value",
        [1, 1.5, True, np.float32(1.5), np.int8(-1), torch.tensor(1.5), np.array(2.5), np.bool_(False)],
        ids=lambda value: f"{type(value).__name__}-{value}",
    )
    def test_single_numbers(self, path: Path, value: Any) -> None:
        got = read(save(path, [{"x": value}, {"x": value}]))["x"]
        np.testing.assert_array_equal(got, [np.asarray(value)] * 2)
        assert got.dtype == np.asarray(value).dtype

    @pytest.mark.parametrize(
        "code", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i8"]
    )
    def test_every_number_type(self, path: Path, code: str) -> None:
        numbers = np.arange(3).astype(code)
        got = read(save(path, [{"x": numbers, "y": numbers[1]}]))
        np.testing.assert_array_equal(got["x"], numbers[None])
        np.testing.assert_array_equal(got["y"], numbers[1:2])
        assert got["x"].dtype == got["y"].dtype == np.dtype(code).newbyteorder("=")

    def test_tensors(self, path: Path) -> None:
        whole = torch.from_numpy(STATES)
        got = read(save(path, [{"x": row, "part": row[1:], "grad": row.clone().requires_grad_()} for row in whole]))
        np.testing.assert_array_equal(got["x"], STATES)
        np.testing.assert_array_equal(got["part"], STATES[:, 1:])
        np.testing.assert_array_equal(got["grad"], STATES)

    @pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
    def test_a_dict_of_arrays(self, path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int) -> None:
        monkeypatch.setattr(record_file, "BATCH_BYTES", batch_bytes)
        save(path, {"x": torch.from_numpy(STATES), "y": np.asfortranarray(STATES), "step": np.arange(5), "info": "a"})
        got = read(path, "x", "y", "step")
        for name, expected in {"x": STATES, "y": STATES, "step": np.arange(5)}.items():
            np.testing.assert_array_equal(got[name], expected)
        with PtFile(path) as file:
            assert {name: field.width for name, field in file.fields.items()} == {
                **{"x": 3, "y": 3, "step": None, "info": None}
            }

    def test_what_is_not_used_may_be_anything(self, path: Path) -> None:
        save(path, [{"x": 1.0, "info": {"a": None}, 5: "b"}, {"x": 2.0}])
        assert read(path, "x")["x"].tolist() == [1, 2]


class TestRefusing:
    def test_not_a_file_of_torch(self, path: Path, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", x=STATES)
        for content in (b"", b"PK", b"\x80\x02]q\x00.", (tmp_path / "x.npz").read_bytes()):
            path.write_bytes(content)
            assert "damaged or not a PyTorch file" in refused(path)

    def test_the_format_before_2020(self, path: Path) -> None:
        torch.save(as_the_authors(), path, _use_new_zipfile_serialization=False)
        assert "damaged or not a PyTorch file" in refused(path)

    @pytest.mark.parametrize("content", [[], 1.0, STATES, torch.ones(3), [[1.0]], ["a"], (1, 2)], ids=repr)
    def test_other_content(self, path: Path, content: Any) -> None:
        assert "expected a list of dicts, one per step" in refused(save(path, content))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda steps: steps[3].pop("action"), "entry 3: no 'action' found, expected the keys of entry 0"),
            (
                lambda steps: steps[3].update(state=STATES[0, :2]),
                "entry 3: state: float32 of shape (2,) found, expected float32 of shape (3,)",
            ),
            (
                lambda steps: steps[3].update(state=np.float64(STATES[0])),
                "entry 3: state: float64 of shape (3,) found, expected float32 of shape (3,)",
            ),
            (lambda steps: steps[3].update(step="3"), "entry 3: step: a str found, expected numbers"),
            (lambda steps: steps[3].update(step=None), "entry 3: step: a NoneType found, expected numbers"),
            (lambda steps: steps.insert(3, [1]), "entry 3: a list found, expected a dict"),
            (lambda steps: steps[0].update(step="0"), "step: type object found, expected numbers"),
            (lambda steps: steps[0].update(step=1j), "step: type object found, expected numbers"),
            (lambda steps: steps[0].update(step=10**30), "step: type object found, expected numbers"),
            (lambda steps: steps[0].update(step=[1]), "step: type object found, expected numbers"),
            (
                lambda steps: steps[0].update(state=STATES[:1]),
                "entry 0: state: float32 of shape (1, 3) found, expected float32 of shape (3,)",
            ),
        ],
    )
    def test_odd_entries(self, path: Path, change: Callable[[list[Any]], Any], message: str) -> None:
        steps = as_the_authors()
        change(steps)
        assert refused(save(path, steps)) == message

    def test_odd_arrays_in_a_dict(self, path: Path) -> None:
        assert refused(save(path, {"x": STATES, "y": STATES[:4]})) == "y: 4 rows found, expected 5 as in x"
        assert "shape (1, 5, 3) found" in refused(save(path, {"x": STATES[None]}))
        assert "shape () found" in refused(save(path, {"x": 1.0}))

    @pytest.mark.parametrize(
        "array", [np.array([None]), np.array(["a"]), np.array([1j]), np.zeros(1, dtype=[("a", "f4")])], ids=repr
    )
    def test_arrays_of_anything_but_numbers(self, path: Path, array: np.ndarray) -> None:
        message = "x: type object found, expected numbers"
        assert refused(save(path, [{"x": array}])) == refused(save(path, {"x": array})) == message
        assert read(save(path, {"x": array, "y": np.ones(2)}), "y")["y"].tolist() == [1, 1]

    def test_arrays_without_numbers(self, path: Path) -> None:
        with PtFile(save(path, {"x": STATES[:0]})) as file:
            assert list(file.batches(["x"])) == []
        with PtFile(save(path, [{"x": STATES[0, :0]}])) as file:
            assert file.fields["x"].width == 0

    @pytest.mark.parametrize(
        "tensor",
        [
            torch.ones(2, dtype=torch.complex64),
            torch.ones(2, dtype=torch.bfloat16),
            torch.ones(2).to_sparse(),
            torch.ones(2, device="meta"),
        ],
        ids=["complex", "bfloat16", "sparse", "meta"],
    )
    def test_unusual_tensors(self, path: Path, tensor: torch.Tensor) -> None:
        assert "expected numbers" in refused(save(path, [{"x": tensor}]))

    def test_changed_numbers_are_noticed(self, path: Path) -> None:
        save(path, {"x": torch.from_numpy(STATES)})
        content = bytearray(path.read_bytes())
        content[content.index(STATES[2].tobytes())] ^= 1
        path.write_bytes(content)
        assert "the checksum of" in refused(path)

    def test_compressed(self, path: Path) -> None:
        repacked(save(path, as_the_authors()), lambda name, content: content, zipfile.ZIP_DEFLATED)
        assert "is compressed or encrypted" in refused(path)

    def test_keys_that_cannot_be_shown(self, path: Path) -> None:
        assert "expected printable names" in refused(save(path, [{"x\n": 1.0}]))


class Hostile:
    """Runs something when it is unpickled."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> Any:
        return self._reduced


class TestHostile:
    @pytest.mark.parametrize(
        "function", [os.mkdir, os.system, eval, Path.mkdir], ids=lambda function: function.__name__
    )
    @pytest.mark.parametrize("place", ["content", "entry", "value", "key"])
    def test_nothing_is_run(self, path: Path, tmp_path: Path, function: Callable[..., Any], place: str) -> None:
        marker = tmp_path / "marker"
        argument = {"system": f"mkdir {marker}", "eval": f"__import__('os').mkdir({str(marker)!r})"}
        hostile = Hostile(function, argument.get(function.__name__, marker))
        content = {"content": hostile, "entry": [hostile], "value": [{"x": hostile}], "key": [{hostile: 1.0}]}[place]
        assert refused(save(path, content)).endswith("is needed to read its content, expected nothing but numbers")
        assert not marker.exists()

    @pytest.mark.parametrize("size", [20, 1000], ids=str)
    def test_a_tensor_larger_than_its_numbers(self, path: Path, size: int) -> None:
        """What follows is another part of the same file, or nothing, never memory that is not the file's."""
        save(path, [{"x": torch.ones(size)}])
        repacked(path, lambda name, content: content[:40] if name.endswith("data/0") else content)
        if size * 4 > path.stat().st_size:
            assert "damaged or not a PyTorch file" in refused(path)
        else:
            assert read(path)["x"].tobytes() in path.read_bytes()

    def test_one_number_that_claims_to_be_many(self, path: Path) -> None:
        save(path, [{"x": torch.ones(1).expand(10**12)}])
        assert "unpacks from" in refused(path)

    def test_one_array_shared_by_many_steps(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_file, "_ALWAYS_ALLOWED", 1 << 16)
        save(path, [{"x": torch.ones(100_000)}] * 100_000)
        assert "unpacks from" in refused(path)

    @pytest.mark.parametrize("shape", [(10**12,), (-5,), (2, 2), "abc", None])
    def test_an_array_of_another_size_than_announced(self, path: Path, shape: Any) -> None:
        class Array:
            def __reduce__(self) -> Any:
                make = np.ones(0).__reduce__()[0]
                return make, (np.ndarray, shape, b"b"), (1, shape, np.dtype("f4"), False, b"\0" * 20)

        assert "damaged or not a PyTorch file" in refused(save(path, [{"x": Array()}]))

    def test_an_array_that_is_never_filled(self, path: Path) -> None:
        """Numpy would hand out whatever is in memory."""

        class Array:
            def __reduce__(self) -> Any:
                return np.ones(0).__reduce__()[0], (np.ndarray, (10**12,), b"b")

        assert refused(save(path, [{"x": Array()}])) == "x: type object found, expected numbers"

    def test_a_type_that_lies_about_itself(self, path: Path) -> None:
        class Type:
            def __reduce__(self) -> Any:
                state = (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 63)
                return np.dtype, ("V8", False, True), state

        class Array:
            def __reduce__(self) -> Any:
                make = np.ones(0).__reduce__()[0]
                return make, (np.ndarray, (0,), b"b"), (1, (1,), Type(), False, b"\1" * 8)

        assert "expected numbers" in refused(save(path, [{"x": Array()}]))


def test_written_file(path: Path) -> None:
    recording = Recording(
        STATES,
        np.array([0, 3]),
        actions=STATES[:, :2].astype(np.float64),
        next_observations=STATES + 1,
        rewards=np.arange(5, dtype=np.float32),
        terminals=np.arange(5) == 2,
    )
    write_pt(path, Trajectories.of(recording))
    steps = torch.load(path, weights_only=False)  # written by ourselves
    assert [step["step"] for step in steps] == [0, 1, 2, 0, 1]
    assert [step["episode"] for step in steps] == [0, 0, 0, 1, 1]
    assert [step["terminal"] for step in steps] == [False, False, True, False, False]
    assert list(steps[0]) == ["state", "action", "next_state", "reward", "terminal", "episode", "step"]
    for number, step in enumerate(steps):
        assert type(step["state"]) is np.ndarray and step["state"].dtype == np.float32
        np.testing.assert_array_equal(step["next_state"], STATES[number] + 1)
        assert step["action"].dtype == np.float64
        assert step["reward"] == number and step["reward"].dtype == np.float32
