"""Rows are a list of numbers, however they are held."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailo_pl.data.rows import Rows

indices = st.lists(st.integers(0, 20), min_size=1, max_size=40).map(lambda rows: np.array(rows, dtype=np.int64))


def test_runs_by_hand() -> None:
    rows = Rows.of(np.array([3, 4, 5, 9, 0, 1]))
    assert rows.starts.tolist() == [3, 9, 0]
    assert rows.offsets.tolist() == [0, 3, 4, 6]
    assert rows.at(np.array([0, 2, 3, 5])).tolist() == [3, 5, 9, 1]


def test_all_rows_are_one_run() -> None:
    rows = Rows.all(5)
    assert rows.starts.tolist() == [0] and rows.offsets.tolist() == [0, 5]
    assert rows.to_array().tolist() == [0, 1, 2, 3, 4]
    assert len(Rows.all(0)) == 0 and Rows.all(0).to_array().tolist() == []


@given(indices)
def test_there_and_back(index: np.ndarray) -> None:
    rows = Rows.of(index)
    assert len(rows) == len(index)
    np.testing.assert_array_equal(rows.to_array(), index)
    np.testing.assert_array_equal(rows.at(np.arange(len(index))), index)
    np.testing.assert_array_equal(rows.shifted(7).to_array(), index + 7)


@given(indices, st.data())
def test_spans_are_slices(index: np.ndarray, data: st.DataObject) -> None:
    ends = st.tuples(st.integers(0, len(index)), st.integers(0, len(index)))
    pairs = [sorted(pair) for pair in data.draw(st.lists(ends, max_size=5)) if pair[0] != pair[1]]
    begins, stops = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    expected = [row for begin, stop in pairs for row in index[begin:stop]]
    assert Rows.of(index).spans(begins, stops).to_array().tolist() == expected


@given(st.lists(indices, min_size=1, max_size=4))
def test_concat_joins_runs(parts: list[np.ndarray]) -> None:
    joined = Rows.concat([Rows.of(part) for part in parts])
    whole = np.concatenate(parts)
    np.testing.assert_array_equal(joined.to_array(), whole)
    assert len(joined.starts) == len(Rows.of(whole).starts)
