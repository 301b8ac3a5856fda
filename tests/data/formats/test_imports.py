"""Importing files: the same arrays and trajectories whatever the batches, and every odd number named by its place."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailo_pl.data.formats import open_file, record_file
from tailo_pl.data.formats.array_files import ArrayWriter
from tailo_pl.data.formats.columns import Columns
from tailo_pl.data.formats.imports import import_files, read_exactly
from tailo_pl.data.formats.step_reader import Ending
from tailo_pl.errors import UserError

NAMES = ("starts", "origins", "state_names", "action_names")
Save = Callable[..., Path]


@pytest.fixture(params=[1, 60, 1 << 20], ids=["row by row", "some rows", "all rows"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many bytes of a file are read at a time."""
    monkeypatch.setattr(record_file, "BATCH_BYTES", request.param)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Makes an archive of the given arrays; without observations, some are added."""

    def save(name: str = "x", **arrays: Any) -> Path:
        steps = len(next(iter(arrays.values())))
        arrays = {"obs": np.arange(steps * 2, dtype=np.float32).reshape(steps, 2), **arrays}
        np.savez(tmp_path / f"{name}.npz", **{key: np.asarray(array) for key, array in arrays.items()})
        return tmp_path / f"{name}.npz"

    return save


def imported(*paths: Path, **arguments: Any) -> dict[str, np.ndarray]:
    """What the folder holds in the end."""
    with tempfile.TemporaryDirectory() as scratch:
        import_files(paths, open_file, Path(scratch), arguments.pop("columns", Columns()), **arguments)
        return {path.stem: np.load(path, allow_pickle=False) for path in Path(scratch).iterdir()}


def refused(*paths: Path, **arguments: Any) -> str:
    with pytest.raises(UserError) as caught:
        imported(*paths, **arguments)
    message = str(caught.value)
    assert message.startswith(f"{paths[-1]}: ") and message.isprintable()
    return message.removeprefix(f"{paths[-1]}: ")


def starts(*paths: Path, **arguments: Any) -> list[int]:
    return imported(*paths, **arguments)["starts"].tolist()


@pytest.mark.usefixtures("batches")
class TestTrajectories:
    def test_by_episode(self, save: Save) -> None:
        assert starts(save(episode=[5, 5, 3, 3, 3, 4])) == [0, 2, 5]
        assert starts(save(episode=[0.5, 0.5, -1])) == [0, 2]
        assert starts(save(episode=[[1], [2], [2]])) == [0, 1]

    def test_episodes_decide_alone(self, save: Save) -> None:
        path = save(episode=[0, 0, 0, 1], step=[3, 2, 1, 0], terminals=[1, 1, 0, 0], timeouts=[0, 1, 1, 1])
        assert starts(path, ending=Ending(horizon=2)) == [0, 3]

    def test_by_step(self, save: Save) -> None:
        assert starts(save(step=[0, 1, 2, 0, 1, 0])) == [0, 3, 5]
        assert starts(save(step=[7, 9, 12, 12, 13])) == [0, 3]
        assert starts(save(step=np.array([250, 251, 3], dtype=np.uint8))) == [0, 2]

    def test_by_terminals_and_timeouts(self, save: Save) -> None:
        assert starts(save(terminals=[0, 1, 0, 0, 1])) == [0, 2]
        assert starts(save(timeouts=[False, False, True, False])) == [0, 3]
        assert starts(save(terminals=[0, 1, 0, 0, 0], timeouts=[0, 0, 0, 1, 0])) == [0, 2, 4]
        assert starts(save(terminals=[1, 1, 1])) == [0, 1, 2]

    def test_by_step_and_terminals(self, save: Save) -> None:
        assert starts(save(step=[0, 1, 2, 3, 0], terminals=[0, 1, 0, 0, 0])) == [0, 2, 4]

    def test_by_horizon(self, save: Save) -> None:
        three = Ending(horizon=3)
        assert starts(save(rewards=np.zeros(8)), ending=three) == [0, 3, 6]
        assert starts(save(terminals=[0, 1, 0, 0, 0, 0, 0, 1, 0]), ending=three) == [0, 2, 5, 8]
        assert starts(save(rewards=np.zeros(2)), ending=three) == [0]

    def test_timeouts_know_better_than_the_horizon(self, save: Save) -> None:
        assert starts(save(timeouts=[0, 0, 0, 0, 1, 0]), ending=Ending(horizon=3)) == [0, 5]

    def test_whole_file(self, save: Save) -> None:
        path = save(rewards=np.zeros(4))
        assert starts(path, columns=Columns(episode=None)) == [0]
        assert starts(path, ending=Ending(whole_file=True)) == [0]
        assert "no field found that tells trajectories apart" in refused(path)
        assert "no field found that tells trajectories apart" in refused(path, columns=Columns(), ending=Ending())

    def test_whole_file_unless_it_says_otherwise(self, save: Save) -> None:
        assert starts(save(terminals=[0, 1, 0]), columns=Columns(episode=None)) == [0, 2]

    def test_episodes_that_come_apart(self, save: Save) -> None:
        message = refused(save(episode=[1, 1, 2, 1]))
        assert message == "episode: 1 begins a second time, expected its rows to stand together"

    def test_text_episodes(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_text("obs_0,episode\n1,a\n2,a\n3,b\n")
        assert starts(path) == [0, 2]
        path.write_text("obs_0,episode\n1,a\n2,b\n3,a\n")
        assert refused(path) == "episode: 'a' begins a second time, expected its rows to stand together"

    def test_several_files(self, save: Save) -> None:
        """A trajectory never goes on in the next file, whatever the episodes are called there."""
        paths = save("a", episode=[0, 0, 1]), save("b", episode=[1, 1, 0]), save("c", terminals=[0, 0])
        got = imported(*paths)
        assert got["starts"].tolist() == [0, 2, 3, 5, 6]
        assert got["origins"].tolist() == ["a", "a", "b", "b", "c"]
        np.testing.assert_array_equal(got["observations"], [[0, 1], [2, 3], [4, 5]] * 2 + [[0, 1], [2, 3]])

    @settings(max_examples=30)
    @given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30), st.integers(1, 7))
    def test_against_the_rule_step_by_step(self, flags: list[tuple[bool, bool]], horizon: int) -> None:
        terminals, timeouts = zip(*flags, strict=True)
        for arrays, cut in (
            ({"terminals": terminals}, horizon),
            ({"terminals": terminals, "timeouts": timeouts}, None),
        ):
            expected, age = [0], 0
            for row in range(1, len(flags)):
                age += 1
                if any(values[row - 1] for values in arrays.values()) or (cut and age == cut):
                    expected.append(row)
                    age = 0
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "x.npz"
                np.savez(path, obs=np.zeros((len(flags), 1)), **arrays)
                assert starts(path, ending=Ending(horizon=cut)) == expected


@pytest.mark.usefixtures("batches")
class TestNumbers:
    def test_all_roles(self, save: Save) -> None:
        states = np.arange(10, dtype=np.float64).reshape(5, 2)
        path = save(
            observations=states,
            obs=states,
            actions=-states[:, :1],
            next_observations=states + 2,
            rewards=np.arange(5),
            terminals=[0, 0, 1, 0, 0],
            timeouts=[0.0, 0, 0, 0, 1],
        )
        got = imported(path, columns=Columns(observations="observations"))
        np.testing.assert_array_equal(got["observations"], states)
        np.testing.assert_array_equal(got["actions"], -states[:, :1])
        np.testing.assert_array_equal(got["next_observations"], states + 2)
        np.testing.assert_array_equal(got["rewards"], [0, 1, 2, 3, 4])
        np.testing.assert_array_equal(got["terminals"], [False, False, True, False, False])
        np.testing.assert_array_equal(got["timeouts"], [False] * 4 + [True])
        assert {name: got[name].dtype.str for name in got if name not in NAMES} == {
            **{"observations": "<f4", "actions": "<f4", "next_observations": "<f4", "rewards": "<f4"},
            **{"terminals": "|b1", "timeouts": "|b1"},
        }

    def test_fields_are_put_side_by_side(self, save: Save) -> None:
        path = save(a=[1, 2, 3], b=[[0.5, 1], [1, 1], [2, 1]], c=np.array([True, False, True]), episode=[0, 0, 0])
        got = imported(path, columns=Columns(observations=["b", "a"], actions="c"))
        np.testing.assert_array_equal(got["observations"], [[0.5, 1, 1], [1, 1, 2], [2, 1, 3]])
        np.testing.assert_array_equal(got["actions"], [[1], [0], [1]])

    def test_ignored_roles(self, save: Save) -> None:
        got = imported(save(actions=np.ones((3, 1)), episode=[0, 0, 0]), ignored=("actions",))
        assert set(got) == {"observations", "starts", "origins", "state_names"}

    def test_a_role_that_one_file_has_not(self, save: Save) -> None:
        one = save("a", actions=np.ones((2, 1)), rewards=[1, 2], terminals=[0, 1])
        two = save("b", rewards=[3, 4, 5], step=[0, 1, 0])
        for paths, begins in (((one, two), [0, 2, 4]), ((two, one), [0, 2, 3])):
            got = imported(*paths)
            assert set(got) == {"observations", "rewards", "starts", "origins", "state_names"}
            assert got["starts"].tolist() == begins
            assert len(got["observations"]) == len(got["rewards"]) == 5

    def test_different_widths(self, save: Save) -> None:
        one, two = save("a", obs=np.zeros((2, 3)), episode=[0, 0]), save("b", obs=np.zeros((2, 4)), episode=[0, 0])
        assert refused(one, two) == f"observations: 4 dimensions found, expected 3 as in {one}"

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, save: Save, value: float) -> None:
        states = np.zeros((7, 3))
        states[5, 2] = value
        end = {"episode": np.zeros(7)}
        assert refused(save(obs=states, **end)) == (
            f"observations: {value} found in row 5 (counted from 0), dimension 2, expected finite numbers"
        )
        assert refused(save(actions=states[:, 2], **end)) == (
            f"actions: {value} found in row 5 (counted from 0), dimension 0, expected finite numbers"
        )
        for role in ("rewards", "terminals", "timeouts", "step", "episode"):
            message = refused(save(**{**end, role: states[:, 2]}))
            assert message == f"{role}: {value} found in row 5 (counted from 0), expected finite numbers"

    def test_too_large_for_float32(self, save: Save) -> None:
        states = np.zeros((4, 2))
        states[2, 1] = -1e39
        path = save(obs=states, episode=np.zeros(4))
        assert refused(path) == (
            "observations: a number too large for float32 found in row 2 (counted from 0), dimension 1, "
            "expected finite numbers"
        )
        assert imported(path, exact=True)["observations"][2, 1] == -1e39

    @pytest.mark.parametrize("value", [2, -1, 0.5])
    def test_flags_are_0_or_1(self, save: Save, value: float) -> None:
        flags = np.zeros(6, dtype=np.asarray(value).dtype)
        flags[4] = value
        for role in ("terminals", "timeouts"):
            assert refused(save(**{role: flags})) == f"{role}: {value} found in row 4 (counted from 0), expected 0 or 1"

    def test_text_instead_of_numbers(self, tmp_path: Path) -> None:
        path = tmp_path / "x.csv"
        path.write_text("obs_0,obs_1,episode\na,1,0\nb,2,0\n")
        assert refused(path) == "obs_0: type text found, expected numbers"
        path.write_text("obs_0,rewards,episode\n1,a,0\n")
        assert refused(path) == "rewards: type text found, expected numbers"

    def test_no_rows(self, save: Save) -> None:
        assert refused(save(obs=np.zeros((0, 2)), episode=[])) == "no rows found, expected at least one step"

    def test_one_bad_file_among_good_ones(self, save: Save, tmp_path: Path) -> None:
        assert "No such file" in refused(save("a", episode=[0]), tmp_path / "b.npz")

    def test_exact_types(self, save: Save) -> None:
        got = imported(
            save(obs=np.ones((2, 1)), actions=np.ones((2, 1), dtype=np.int16), rewards=[1, 2], done=[0, 1.0]),
            exact=True,
        )
        types = {name: got[name].dtype.str for name in ("observations", "actions", "rewards", "terminals")}
        assert types == {"observations": "<f8", "actions": "<i2", "rewards": "<i8", "terminals": "|b1"}

    def test_exact_types_of_several_files(self, save: Save) -> None:
        """The type that holds the numbers of all: nothing is rounded because of the order of the files."""
        one = save("a", obs=np.ones((1, 1), dtype=np.int8), rewards=np.float32([1]), episode=[0])
        two = save("b", obs=np.full((1, 1), 0.1), rewards=np.float32([2]), episode=[0])
        for paths in ((one, two), (two, one)):
            got = imported(*paths, exact=True)
            assert sorted(got["observations"].ravel().tolist()) == [0.1, 1.0]
            assert got["rewards"].dtype == np.float32

    def test_numbers_and_text_in_several_files(self, save: Save, tmp_path: Path) -> None:
        text = tmp_path / "text.csv"
        text.write_text("obs_0,obs_1,episode\na,b,0\n")
        assert refused(save(episode=[0]), text, exact=True) == "obs_0: type text found, expected numbers"


class TestReadExactly:
    def test_trajectories(self, save: Save, tmp_path: Path) -> None:
        got = read_exactly(
            [save("a", obs=np.full((3, 1), 0.1), episode=[0, 0, 1]), save("b", obs=[[1.0]], episode=[0])]
        )
        assert got.lengths.tolist() == [2, 1, 1]
        assert got.origins.tolist() == ["a", "a", "b"]
        assert got.observations.ravel().tolist() == [0.1, 0.1, 0.1, 1.0]

    def test_nothing_is_left_behind(self, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        got = read_exactly([save(episode=[0, 0])])
        assert list(scratch.iterdir()) == []
        assert got.observations.tolist() == [[0, 1], [2, 3]]
        with pytest.raises(UserError):
            read_exactly([save(episode=[0, 1, 0])])
        assert list(scratch.iterdir()) == []

    def test_no_room_for_temporary_files(self, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        path = save(episode=[0])
        monkeypatch.setattr(ArrayWriter, "add", full)
        with pytest.raises(UserError, match=r"cannot write temporary files \(No space left on device\); set TMPDIR$"):
            read_exactly([path])

    def test_columns(self, save: Save) -> None:
        path = save(obs=np.zeros((2, 1)), pose=[[1.0], [2.0]])
        got = read_exactly([path], Columns(observations="pose", episode=None))
        assert got.observations.tolist() == [[1], [2]] and len(got) == 1

    def test_number_types_of_csv(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tailo_pl.data.formats.imports.BATCH_BYTES", 8)
        path = tmp_path / "x.csv"
        path.write_text("obs_0,rewards,episode\n0.5,0.5,0\n1,0.1,0\n-96,1e39,0\n")
        got = read_exactly([path]).recording
        assert got.observations.dtype == np.float32 and got.observations.ravel().tolist() == [0.5, 1, -96]
        assert got.rewards is not None and got.rewards.dtype == np.float64
        assert got.rewards.tolist() == [0.5, 0.1, 1e39]
