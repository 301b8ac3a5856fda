"""A corpus of harmed and hostile files: each is refused in one line, or loads to sound numbers that are the right ones.

Every mutation says what it may change. Nothing else may differ from the original, no other error may come, nothing in a
file may run, and memory stays small.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
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

from tailo_pl.data.columns import Columns
from tailo_pl.data.formats import open_file, write_file
from tailo_pl.data.formats.writing import numbered_columns
from tailo_pl.data.imports import import_files
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
    episode = arrays["episode"]
    return {
        **{name: array for name, array in arrays.items() if name != "episode"},
        "starts": np.flatnonzero(np.append(True, episode[1:] != episode[:-1])),
    }


# Files of given arrays, one function per way of writing them. None: this way cannot hold them.


def _trajectories(arrays: Arrays) -> Trajectories:
    fields = {name: array for name, array in arrays.items() if name != "episode"}
    return Trajectories.of(Recording(starts=decoded(arrays)["starts"], **fields))


def _own(suffix: str) -> Callable[[Path, Arrays], None]:
    return lambda path, arrays: write_file(path, _trajectories(arrays))


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
    "npz": Kind(".npz", _own(".npz")),
    "npz of numpy": Kind(".npz", _stored),
    "npz deflated": Kind(".npz", _deflated),
    "csv": Kind(".csv", _own(".csv"), checked=False),
    "parquet": Kind(".parquet", _own(".parquet")),
    "parquet of lists": Kind(".parquet", _lists),
    "hdf5": Kind(".hdf5", _own(".hdf5")),
    "hdf5 as d4rl": Kind(".hdf5", _as_d4rl),
    "hdf5 contiguous": Kind(".hdf5", _contiguous, checked=False),
    "pt": Kind(".pt", _own(".pt")),
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
    """One number, or one step's episode."""
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
        yield f"{old} called {new}", _renamed(old, new), False
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
    del arrays["origins"]
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


def test_size_of_the_corpus() -> None:
    mutants = [mutant for family in FAMILIES.values() for kind in KINDS for mutant in family(kind)]
    mutants += [mutant for kind in STRUCTURED for mutant in structures(kind)]
    mutants += disguises()
    assert len({(mutant.suffix, mutant.content) for mutant in mutants}) >= 500
