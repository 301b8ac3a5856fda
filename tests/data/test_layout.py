"""How TA is laid out, kept apart from the data: what is written is read, and labels tell experts where they can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tailo_pl.data.layout import Layout
from tailo_pl.data.settings import Task
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.errors import UserError


def laid_out(origins: list[str], ts: list[str]) -> Layout:
    return Layout(np.arange(len(origins) + 1), np.array(origins), np.array(ts))


def test_what_is_written_is_read(tmp_path: Path, trajectories_of: Callable[..., Trajectories]) -> None:
    ta = trajectories_of(np.zeros((6, 2)), [1, 3, 2], ["expert", "random", "random"])
    layout = Layout.of(Task(ta.take([0]), ta))
    layout.write(tmp_path / "layout.npz")
    again = Layout.read(tmp_path / "layout.npz")
    assert again.offsets.tolist() == [0, 1, 4, 6] and again.lengths.tolist() == [1, 3, 2] and again.steps == 6
    assert again.origins.tolist() == ["expert", "random", "random"] and again.labels == ["expert", "random"]
    assert again.experts is not None and again.experts.tolist() == [True, False, False]
    assert again.mean(np.array([1, 2, 3, 4, 5, 7], dtype=np.float32)).tolist() == [1, 3, 6]


@pytest.mark.parametrize(
    ("origins", "ts", "experts"),
    [
        (["left", "right", "left"], ["left"], [True, False, True]),  # labelled as TS is
        (["expert", "random"], ["other body"], [True, False]),  # labelled as the expert's
        (["hopper-expert-v2", "hopper-medium-expert-v2"], ["x"], [True, False]),
        (["medium", "medium"], ["medium"], None),  # all alike: nobody knows
        (["a", "b"], ["c"], None),
    ],
)
def test_labels_tell_the_experts_where_they_can(origins: list[str], ts: list[str], experts: list[bool] | None) -> None:
    found = laid_out(origins, ts).experts
    assert (None if found is None else found.tolist()) == experts


@pytest.mark.parametrize("offsets", [[0, 0, 2], [1, 2, 3], [0, 2], [[0, 1, 2]]])
def test_a_layout_that_cannot_be_is_refused(tmp_path: Path, offsets: list[int]) -> None:
    Layout(np.array(offsets), np.array(["a", "b"]), np.array(["a"])).write(tmp_path / "layout.npz")
    with pytest.raises(UserError, match="expected ascending offsets from 0 and one origin per trajectory"):
        Layout.read(tmp_path / "layout.npz")


def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path) -> None:
    laid_out(["a", "b"], ["a"]).write(tmp_path / "layout.npz")
    whole = (tmp_path / "layout.npz").read_bytes()
    (tmp_path / "layout.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError) as caught:
        Layout.read(tmp_path / "layout.npz")
    assert (
        str(caught.value).startswith(f"{tmp_path / 'layout.npz'}: cannot be read") and str(caught.value).isprintable()
    )
