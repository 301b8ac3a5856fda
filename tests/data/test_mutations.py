"""A corpus of harmed and hostile files: each is refused in one line, or loads to sound numbers that are the right ones.

Every mutation says what it may change. Nothing else may differ from the original, no other error may come, nothing in a
file may run, and memory stays small.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tailo_pl.data.formats import open_file, write_file
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.imports import import_files
from tailo_pl.data.formats.writing import numbered_columns
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.errors import UserError

Arrays = dict[str, np.ndarray]
STEPS = 40
ALLOWANCE = 48 << 20
"""Bytes of memory beside twice the decoded size: a few batches."""


@cache
def original() -> Arrays:
    """The unharmed recording. (Vectors of three: a name with one flipped bit then never is another one's.)"""
    random = np.random.default_rng(0)
    return {
        "observations": random.standard_normal((STEPS, 3)).astype(np.float32),
        "actions": random.standard_normal((STEPS, 3)).astype(np.float32),
        "rewards": random.standard_normal(STEPS).astype(np.float32),
        "terminals": np.isin(np.arange(STEPS), [9, 24]),
        "timeouts": np.arange(STEPS) == STEPS - 1,
        "episode": np.repeat([0, 1, 2], [10, 15, 15]),
    }


def decoded(arrays: Mapping[str, Any]) -> Arrays:
    """What loading should give: all but the episodes, and where trajectories start."""
    episode = arrays.get("episode", original()["episode"])
    return {
        **{name: array for name, array in arrays.items() if name != "episode"},
        "starts": np.flatnonzero(np.append(True, episode[1:] != episode[:-1])),
    }


# Files of given arrays, one function per way of writing them. None: this way cannot hold them.


def _own(path: Path, arrays: Arrays) -> None:
    fields = {name: array for name, array in arrays.items() if name != "episode"}
    write_file(path, Trajectories.of(Recording(starts=decoded(arrays)["starts"], **fields)))


def _stored(path: Path, arrays: Arrays) -> None:
    np.savez(path, **arrays)


def _deflated(path: Path, arrays: Arrays) -> None:
    np.savez_compressed(path, **arrays)


def _table(path: Path, arrays: Arrays) -> None:
    columns = numbered_columns({name: np.atleast_1d(array) for name, array in arrays.items()})
    rows = max(len(column) for column in columns.values())
    cells = [[str(value) for value in _exact(column)] + [""] * (rows - len(column)) for column in columns.values()]
    lines = [",".join(columns), *[",".join(row) for row in zip(*cells, strict=True)]]
    path.write_text("\n".join(lines) + "\n")


def _exact(column: np.ndarray) -> list[Any]:
    return (column.astype(np.float64) if column.dtype == np.float32 else column).tolist()


def _lists(path: Path, arrays: Arrays) -> None:
    table = pa.table({name: array if array.ndim == 1 else pa.array(array.tolist()) for name, array in arrays.items()})
    for name, array in arrays.items():
        if array.ndim == 2:
            column = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
            table = table.set_column(table.schema.get_field_index(name), name, column)
    pq.write_table(table, path, write_page_checksum=True)


def _as_d4rl(path: Path, arrays: Arrays) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")


def _contiguous(path: Path, arrays: Arrays) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)


def _tensors(path: Path, arrays: Arrays) -> None:
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, path)


def _dict(path: Path, arrays: Arrays) -> None:
    torch.save(dict(arrays), path)


@dataclass(frozen=True)
class Kind:
    """A way of writing files.

    Args:
        suffix: ending.
        write: of given arrays.
        checked: whether everything in such a file is covered by checksums, or at least all numbers are.
    """

    suffix: str
    write: Callable[[Path, Arrays], None]
    checked: bool = True


KINDS = {
    "npz": Kind(".npz", _own),
    "npz of numpy": Kind(".npz", _stored),
    "npz deflated": Kind(".npz", _deflated),
    "csv": Kind(".csv", _own, checked=False),
    "parquet": Kind(".parquet", _own),
    "parquet of lists": Kind(".parquet", _lists),
    "hdf5": Kind(".hdf5", _own),
    "hdf5 as d4rl": Kind(".hdf5", _as_d4rl),
    "hdf5 contiguous": Kind(".hdf5", _contiguous, checked=False),
    "pt": Kind(".pt", _own),
    "pt of tensors": Kind(".pt", _tensors),
}


@cache
def written(kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"x{KINDS[kind].suffix}"
        KINDS[kind].write(path, original())
        return path.read_bytes()


# What may differ from the original in a file that loads.


def cells_that_differ(got: Arrays, expected: Arrays) -> int:
    assert got.keys() == expected.keys()
    assert {name: array.shape for name, array in got.items() if name != "starts"} == {
        name: array.shape for name, array in expected.items() if name != "starts"
    }
    return sum(int((got[name] != expected[name]).sum()) for name in expected if name != "starts")


def nothing(got: Arrays, expected: Arrays) -> None:
    assert cells_that_differ(got, expected) == 0
    np.testing.assert_array_equal(got["starts"], expected["starts"])


def one_cell(got: Arrays, expected: Arrays) -> None:
    """One number, one step's episode, or the name of one field or column: that is left out then, and said to be."""
    missing = expected.keys() - got.keys()
    narrower = {name for name in got if got[name].ndim == 2 and got[name].shape[1] == expected[name].shape[1] - 1}
    if len(missing | narrower) == 1:
        same = expected.keys() - missing - narrower
        nothing({name: got[name] for name in same}, {name: expected[name] for name in same})
        return
    moved = not np.array_equal(got["starts"], expected["starts"])
    assert cells_that_differ(got, expected) + moved <= 1


def last_rows(got: Arrays, expected: Arrays) -> None:
    """Rows are missing at the end, and the last cell (the episode's name) may be cut short. CSV has no length."""
    rows = len(got["observations"])
    for name in expected.keys() - {"starts"}:
        np.testing.assert_array_equal(got[name], expected[name][:rows])
    begun = expected["starts"][expected["starts"] < rows - 1].tolist()
    assert got["starts"].tolist() in (begun, [*begun, rows - 1])


def anything(got: Arrays, expected: Arrays) -> None:
    """Sound numbers of the right shapes; where there are no checksums, no more can be said."""
    cells_that_differ(got, expected)


@dataclass(frozen=True)
class Mutant:
    """A harmed file.

    Args:
        label: what was done to it.
        suffix: under which it goes.
        content: its bytes.
        may_differ: asserts that a load differs from `expected` in nothing but this; None: it must be refused.
        expected: what the original holds.
    """

    label: str
    suffix: str
    content: bytes
    may_differ: Callable[[Arrays, Arrays], None] | None = None
    expected: Mapping[str, Any] | None = None


def flips(kind: str) -> Iterator[Mutant]:
    """One bit; every second time in a byte that is not zero, since some formats leave much room."""
    content, random = written(kind), np.random.default_rng([1, len(kind)])
    filled = np.flatnonzero(np.frombuffer(content, dtype=np.uint8))
    for number in range(36):
        place = int(random.choice(filled)) if number % 2 else int(random.integers(len(content)))
        bit = int(random.integers(8))
        harmed = bytearray(content)
        harmed[place] ^= 1 << bit
        allowed = nothing if KINDS[kind].checked else one_cell
        yield Mutant(f"bit {bit} of byte {place} flipped", KINDS[kind].suffix, bytes(harmed), allowed)


def cuts(kind: str) -> Iterator[Mutant]:
    content, random = written(kind), np.random.default_rng([2, len(kind)])
    lengths = [0, 1, 4, 8, len(content) // 2, len(content) - 1, *random.integers(len(content), size=6).tolist()]
    for length in lengths:
        allowed = last_rows if kind == "csv" else None
        yield Mutant(f"cut to {length} bytes", KINDS[kind].suffix, content[:length], allowed)


def shifts(kind: str) -> Iterator[Mutant]:
    """Some bytes inserted or removed."""
    content, random = written(kind), np.random.default_rng([3, len(kind)])
    for number in range(12):
        place, count = int(random.integers(len(content))), int(random.integers(1, 9))
        if number % 2:
            harmed = content[:place] + content[place + count :]
        elif number % 4:
            harmed = content[:place] + bytes(random.integers(256, size=count, dtype=np.uint8)) + content[place:]
        else:
            harmed = content[:place] + bytes(random.choice(list(b'0123456789,.-\n"'), count)) + content[place:]
        allowed = {"csv": one_cell, "hdf5 contiguous": anything}.get(kind, nothing)
        yield Mutant(
            f"{count} bytes {'removed' if number % 2 else 'inserted'} at {place}", KINDS[kind].suffix, harmed, allowed
        )


def _with(**changed: Any) -> Arrays:
    return {**original(), **{name: np.asarray(array) for name, array in changed.items()}}


def _without(*names: str) -> Arrays:
    return {name: array for name, array in original().items() if name not in names}


def _set(name: str, place: Any, value: Any, dtype: Any = None) -> Arrays:
    array = original()[name].astype(dtype or original()[name].dtype)
    array[place] = value
    return _with(**{name: array})


def _renamed(old: str, new: str) -> Arrays:
    return {new if name == old else name: array for name, array in original().items()}


def _swapped(one: str, two: str) -> Arrays:
    return _with(**{one: original()[two], two: original()[one]})


def changed_arrays() -> Iterator[tuple[str, Arrays, bool]]:
    """Recordings that something is wrong with, or only seems to be; and whether they load."""
    states, text = original()["observations"], np.array([f"t{number}" for number in range(STEPS)])
    yield "unharmed", original(), True
    yield "states and actions swapped", _swapped("observations", "actions"), True
    yield "ends swapped", _swapped("terminals", "timeouts"), True
    yield "rewards and terminals swapped", _swapped("rewards", "terminals"), False
    yield "a vector where a number belongs", _swapped("rewards", "actions"), False
    yield "states are text", _with(observations=np.stack([text, text], axis=1)), False
    yield "rewards are text", _with(rewards=text), False
    yield "terminals are text", _with(terminals=text), False
    yield "rewards are complex", _with(rewards=original()["rewards"] * 1j), False
    yield "rewards are dates", _with(rewards=np.arange(STEPS).astype("M8[s]")), False
    yield "rewards are objects", _with(rewards=np.array([{} for _ in range(STEPS)])), False
    yield "states of three dimensions", _with(observations=states[:, :, None]), False
    yield "states are one number", _with(observations=np.float32(1)), False
    yield "states of width 0", _with(observations=states[:, :0]), False
    yield "no rows", {name: array[:0] for name, array in original().items()}, False
    yield "an action is missing", _with(actions=original()["actions"][:-1]), False
    yield "a state is missing", _with(observations=states[1:]), False
    yield "a reward too many", _with(rewards=np.append(original()["rewards"], 1)), False
    yield "a terminal is missing", _with(terminals=original()["terminals"][1:]), False
    yield "ends of two numbers", _with(terminals=np.zeros((STEPS, 2), dtype=bool)), False
    for value in (np.nan, np.inf, -np.inf):
        yield f"{value} in states", _set("observations", (7, 1), value), False
        yield f"{value} in actions", _set("actions", (STEPS - 1, 2), value), False
        yield f"{value} in rewards", _set("rewards", 0, value), False
        yield f"{value} in terminals", _set("terminals", 3, value, np.float32), False
        yield f"{value} in episodes", _set("episode", 3, value, np.float64), False
    yield "a terminal of 2", _set("terminals", 3, 2, np.int64), False
    yield "a timeout of -1", _set("timeouts", 3, -1, np.int8), False
    yield "terminals as floats", _with(terminals=original()["terminals"].astype(np.float64)), True
    yield "an episode that comes back", _set("episode", STEPS - 1, 0), False
    yield "nothing that ends a trajectory", _without("episode", "terminals", "timeouts"), False
    yield "no states", _without("observations"), False
    for old, new in (
        ("observations", "obsevations"),
        ("observations", "x"),
        ("actions", "actoins"),
        ("rewards", "Rewards"),
        ("terminals", "termnals"),
        ("timeouts", "time_outs"),
        ("episode", "epsiode"),
    ):
        # Only a field that is needed: what else is left out is said, and the marked ends tell episodes apart as well.
        yield f"{old} called {new}", _renamed(old, new), old != "observations"
    yield "states twice", _with(states=states), False
    yield "more fields", _with(qpos=states, note=text), True
    yield "bytes as states", _with(observations=np.arange(STEPS * 3, dtype=np.uint8).reshape(STEPS, 3)), True
    yield "numbers of float64", _with(observations=states * np.float64(1e300)), True
    yield "tiny numbers", _with(observations=np.full((STEPS, 3), 5e-324)), True


def structures(kind: str) -> Iterator[Mutant]:
    write = {".csv": _table, ".parquet": _lists, ".hdf5": KINDS[kind].write, ".npz": _stored, ".pt": _dict}
    for label, arrays, loads in changed_arrays():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{KINDS[kind].suffix}"
            if path.suffix == ".csv" and label in ("a vector where a number belongs", "ends of two numbers"):
                continue  # a table has no vectors: columns rewards_0, rewards_1, ... are others, and are left out
            try:
                write[path.suffix](path, arrays)
            except (pa.ArrowException, TypeError, ValueError, ZeroDivisionError):  # not to be had in this format
                continue
            content = path.read_bytes()
        known = {name: array for name, array in arrays.items() if name in original()}
        yield Mutant(label, path.suffix, content, nothing if loads else None, decoded(known) if loads else None)


def disguises() -> Iterator[Mutant]:
    """The bytes of each format under the endings of the others."""
    for kind in KINDS:
        for suffix in {other.suffix for other in KINDS.values()} - {KINDS[kind].suffix}:
            yield Mutant(f"{kind} as {suffix}", suffix, written(kind))


FAMILIES = {"flips": flips, "cuts": cuts, "shifts": shifts}
STRUCTURED = ("npz of numpy", "csv", "parquet of lists", "hdf5 as d4rl", "hdf5 contiguous", "pt")


def load(path: Path) -> Arrays:
    """Import a file as a cache entry would hold it, and open it as a recording."""
    with tempfile.TemporaryDirectory() as folder:
        import_files([path], open_file, Path(folder), Columns(), exact=True)
        arrays = {file.stem: np.load(file, allow_pickle=False) for file in Path(folder).iterdir()}
    for name in ("origins", "state_names", "action_names"):
        arrays.pop(name, None)
    recording = Recording(**arrays)
    for array in recording.arrays().values():
        assert np.isfinite(array).all()
    return arrays


def survive(mutant: Mutant, path: Path) -> None:
    """Load a harmed file, or see it refused as it should be."""
    path = path.with_suffix(mutant.suffix)
    path.write_bytes(mutant.content)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    size = 0
    try:
        got = load(path)
    except UserError as error:
        message = str(error)
        assert message.startswith(f"{path}: ") and message.isprintable() and len(message) < len(str(path)) + 700
    else:
        size = sum(array.nbytes for array in got.values())
        assert mutant.may_differ is not None, "should have been refused"
        mutant.may_differ(got, dict(mutant.expected or decoded(original())))
    peak = tracemalloc.get_traced_memory()[1] - before
    assert peak <= 2 * size + ALLOWANCE


def survive_all(mutants: Iterator[Mutant], path: Path) -> None:
    tracemalloc.start()
    try:
        for number, mutant in enumerate(mutants):
            try:
                survive(mutant, path)
            except Exception as error:
                raise AssertionError(f"mutant {number} of {path.stem}: {mutant.label}: {error!r}") from error
    finally:
        tracemalloc.stop()
    assert pa.default_memory_pool().bytes_allocated() < ALLOWANCE


@pytest.mark.parametrize("kind", KINDS)
def test_unharmed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x{KINDS[kind].suffix}"
    path.write_bytes(written(kind))
    nothing(load(path), decoded(original()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_harmed_bytes(tmp_path: Path, family: str, kind: str) -> None:
    survive_all(FAMILIES[family](kind), tmp_path / "x")


@pytest.mark.parametrize("kind", STRUCTURED)
def test_odd_structures(tmp_path: Path, kind: str) -> None:
    survive_all(structures(kind), tmp_path / "x")


def test_wrong_endings(tmp_path: Path) -> None:
    survive_all(disguises(), tmp_path / "x")


# Files made by someone who means harm.


class Hostile:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self._folder,)


def _hostile_npz(path: Path, marker: Path) -> None:
    np.savez(path, **_with(observations=np.array([Hostile(marker)] * STEPS, dtype=object)))


def _hostile_member(path: Path, marker: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observations.npy", pickle.dumps(Hostile(marker)))


def _hostile_pt(path: Path, marker: Path) -> None:
    torch.save({**original(), "observations": Hostile(marker)}, path)


def _hostile_unused(path: Path, marker: Path) -> None:
    torch.save({**original(), "more": Hostile(marker)}, path)


def _bare_pickle(path: Path, marker: Path) -> None:
    path.write_bytes(pickle.dumps(Hostile(marker)))


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".npz", _hostile_npz),
        (".npz", _hostile_member),
        (".npz", _bare_pickle),
        (".pt", _hostile_pt),
        (".pt", _hostile_unused),
        (".pt", _bare_pickle),
    ],
)
def test_nothing_is_run(tmp_path: Path, suffix: str, write: Callable[[Path, Path], None]) -> None:
    path, marker = tmp_path / f"x{suffix}", tmp_path / "marker"
    write(path, marker)
    with pytest.raises(UserError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ") and str(caught.value).isprintable()
    assert not marker.exists()


def _external_link(file: h5py.File, secret: Path) -> None:
    file["observations"] = h5py.ExternalLink(str(secret), "observations")


def _soft_link(file: h5py.File, secret: Path) -> None:
    file["observations"] = h5py.SoftLink("/actions")


def _dangling_link(file: h5py.File, secret: Path) -> None:
    file["observations"] = h5py.SoftLink("/nowhere")


def _virtual(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((STEPS, 3), np.float32)
    layout[:] = h5py.VirtualSource(str(secret), "observations", (STEPS, 3))
    file.create_virtual_dataset("observations", layout)


def _external_storage(file: h5py.File, secret: Path) -> None:
    file.create_dataset("observations", (STEPS, 3), np.float32, external=[(str(secret), 0, STEPS * 12)])


@pytest.mark.parametrize("put", [_external_link, _soft_link, _dangling_link, _virtual, _external_storage])
def test_other_files_stay_closed(tmp_path: Path, put: Callable[[h5py.File, Path], None]) -> None:
    path, secret = tmp_path / "x.hdf5", tmp_path / "secret.hdf5"
    _contiguous(secret, original())
    _contiguous(path, _without("observations"))
    with h5py.File(path, "a") as file:
        put(file, secret)
    with pytest.raises(UserError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: observations: ")


def test_numbers_that_lie_on_others(tmp_path: Path) -> None:
    """In HDF5 without checksums, an address is all that says where numbers are."""
    path = tmp_path / "x.hdf5"
    _contiguous(path, original())
    with h5py.File(path) as file:
        ours, others = (struct.pack("<Q", file[name].id.get_offset()) for name in ("actions", "observations"))
    content = path.read_bytes()
    assert content.count(ours) == 1
    path.write_bytes(content.replace(ours, others))
    with pytest.raises(UserError, match="damaged, its numbers lie on those of"):
        load(path)


def test_a_name_for_two_fields(tmp_path: Path) -> None:
    """An old HDF5 file in which the name of one field has come to be that of another: the latter would be gone."""
    path = tmp_path / "x.hdf5"
    _as_d4rl(path, original())
    content = path.read_bytes()
    names = content.index(b"terminals\0")
    heap = content.rindex(b"HEAP", 0, names)
    start = struct.unpack_from("<Q", content, heap + 24)[0]  # where the names begin, from which places are counted
    nodes = content.index(b"SNOD")
    places = {name: struct.pack("<Q", content.index(name) - start) for name in (b"terminals\0", b"timeouts\0")}
    at = content.index(places[b"timeouts\0"], nodes)
    path.write_bytes(content[:at] + places[b"terminals\0"] + content[at + 8 :])
    with pytest.raises(UserError, match="field 'terminals' found twice"):
        load(path)


# Files that would fill memory or disk: loaded where little of both is to be had.


def _npz_bomb(path: Path) -> None:
    """Zeros without end: what header and directory say fits together, and the content unpacks as they say."""
    rows = (0xFFFF0000 - 128) // 12
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (rows, 3)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("observations.npy", stream.getvalue() + bytes(1 << 20))
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\1\2")
    content[entry + 24 : entry + 28] = struct.pack("<I", len(stream.getvalue()) + rows * 12)
    path.write_bytes(content)


def _npz_lie(path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 3)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observations.npy", stream.getvalue() + bytes(1200))


def _hdf5_nothing_there(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (10**12, 3), np.float32, chunks=(1000, 3), compression="gzip")


def _hdf5_nothing_there_contiguous(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (10**12, 3), np.float32)


def _hdf5_large_chunk(path: Path) -> None:
    with h5py.File(path, "w") as file:
        large = file.create_dataset(
            "observations", (300_000_000, 3), np.float32, chunks=(300_000_000, 3), compression=1
        )
        large.id.write_direct_chunk((0, 0), b"x\x9c" + b"\0" * 100)


def _parquet_footer(path: Path) -> None:
    """Announces a description that is longer than the file."""
    content = written("parquet")
    path.write_bytes(content[:-8] + struct.pack("<I", 0x7FFFFFF0) + b"PAR1")


def _parquet_of_zeros(path: Path) -> None:
    part = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, dtype=np.int8)), pa.array([0.0]))
    column = pa.chunked_array([part] * 70)
    pq.write_table(pa.table({"obs_0": column, "obs_1": column}), path, row_group_size=len(column))


def _parquet_of_one_list(path: Path) -> None:
    count = 60_000_000
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array(np.zeros(count, dtype=np.int8)))
    pq.write_table(pa.table({"observations": lists}), path)


def _parquet_of_one_name(path: Path) -> None:
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, dtype=np.int8)), pa.array(["a" * (1 << 20)]))
    pq.write_table(pa.table({"obs_0": np.zeros(1000), "step": names}), path)


def _csv_without_lines(path: Path) -> None:
    path.write_bytes(b"observations_0,episode\n" + b"1" * (50 << 20))


def _csv_of_one_quote(path: Path) -> None:
    path.write_bytes(b'observations_0,episode\n"' + b"1,0\n" * (8 << 20))


def _csv_of_names(path: Path) -> None:
    path.write_bytes(b",".join(b"observations_%d" % number for number in range(50_000)) + b"\n")


def _pt_of_one_number(path: Path) -> None:
    torch.save({"state": torch.zeros(1, 1).expand(10**9, 3), "step": torch.zeros(1).expand(10**9)}, path)


def _pt_shared(path: Path) -> None:
    torch.save([{"state": torch.zeros(200_000), "step": 0}] * 10_000, path)


# Each with a part of the line that refuses it.
BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "bomb.npz": (_npz_bomb, "unpacks from"),
    "lie.npz": (_npz_lie, "1,200 bytes are stored, expected 12,000,000,000,000"),
    "nothing.hdf5": (_hdf5_nothing_there, "0 chunks are stored"),
    "nothing_contiguous.hdf5": (_hdf5_nothing_there_contiguous, "0 bytes are stored"),
    "large_chunk.hdf5": (_hdf5_large_chunk, "unpacks from"),
    "footer.parquet": (_parquet_footer, "damaged"),
    "zeros.parquet": (_parquet_of_zeros, "unpacks from"),
    "list.parquet": (_parquet_of_one_list, "60,000,000 numbers in a row found"),
    "name.parquet": (_parquet_of_one_name, "text of more than 1,000 letters found"),
    "lines.csv": (_csv_without_lines, "not a CSV table"),
    "quote.csv": (_csv_of_one_quote, "not a CSV table"),
    "names.csv": (_csv_of_names, "50,000 columns found"),
    "expanded.pt": (_pt_of_one_number, "unpacks from"),
    "shared.pt": (_pt_shared, "unpacks from"),
}


def _large(path: Path) -> None:
    """100 MB of zeros, honestly meant: it loads, in batches."""
    rows = 4_000_000
    arrays = {"observations": np.zeros((rows, 6), dtype=np.float32), "terminals": np.zeros(rows, dtype=bool)}
    if path.suffix == ".npz":
        np.savez_compressed(path, **arrays)
    elif path.suffix == ".hdf5":
        _as_d4rl(path, arrays)
    else:
        pq.write_table(pa.table(numbered_columns(arrays)), path, row_group_size=rows)


IN_LITTLE_MEMORY = """
import resource, sys, tempfile
from pathlib import Path
import h5py, numpy, pyarrow.csv, pyarrow.parquet, torch
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats import csv_table, hdf5, npz, open_file, parquet, pt
from tailo_pl.data.formats.imports import import_files
from tailo_pl.errors import UserError

status = Path("/proc/self/status").read_text().split()
now = int(status[status.index("VmData:") + 1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (now + int(sys.argv[1]), resource.RLIM_INFINITY))
for path in sorted(Path(sys.argv[2]).iterdir()):
    with tempfile.TemporaryDirectory(dir=sys.argv[3]) as folder:
        try:
            import_files([path], open_file, Path(folder), Columns(episode=None), exact=True)
        except UserError as error:
            assert str(error).startswith(f"{path}: ") and str(error).isprintable(), error
            print(path.name, "refused", str(error).removeprefix(f"{path}: "))
        else:
            print(path.name, len(numpy.load(Path(folder) / "observations.npy", mmap_mode="r")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux counts it")
def test_little_memory_is_enough(tmp_path: Path) -> None:
    files, scratch = tmp_path / "files", tmp_path / "scratch"
    files.mkdir()
    scratch.mkdir()
    for name, (write, _) in BOMBS.items():
        write(files / name)
    honest = [f"honest{suffix}" for suffix in (".npz", ".hdf5", ".parquet")]
    for name in honest:
        _large(files / name)
    # Arrow's own allocator reserves memory ahead, used or not.
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", IN_LITTLE_MEMORY, str(200 << 20), str(files), str(scratch)]
    result = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    outcomes = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    assert outcomes.keys() == {*BOMBS, *honest}
    for name, (_, reason) in BOMBS.items():
        assert reason in outcomes[name], outcomes[name]
    for name in honest:
        assert outcomes[name] == "4000000"


def test_size_of_the_corpus() -> None:
    mutants = [mutant for family in FAMILIES.values() for kind in KINDS for mutant in family(kind)]
    mutants += [mutant for kind in STRUCTURED for mutant in structures(kind)]
    mutants += disguises()
    assert len({(mutant.suffix, mutant.content) for mutant in mutants}) >= 500
