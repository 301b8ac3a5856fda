"""D4RL's files: by name and by path, with the trajectories D4RL means."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tailo_pl.config.compose import composed
from tailo_pl.data.formats import record_file
from tailo_pl.data.sources import antmaze, d4rl, d4rl_datasets
from tailo_pl.data.sources.antmaze import AntMazeRecipe
from tailo_pl.data.sources.d4rl import D4RL
from tailo_pl.data.sources.d4rl_datasets import DATASETS, dataset_path
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.reference_scores import REFERENCES
from tailo_pl.errors import UserError

ROOT = "http://rail.eecs.berkeley.edu/datasets/offline_rl"


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("D4RL_DATASET_DIR", str(tmp_path / "d4rl"))
    (tmp_path / "d4rl").mkdir()


def write(
    path: Path,
    steps: int,
    *,
    terminals: list[int] | None = None,
    timeouts: list[int] | None = None,
    dims: tuple[int, int] = (11, 3),
    without: tuple[str, ...] = (),
) -> dict[str, np.ndarray]:
    """A file as D4RL lays it out; `terminals` and `timeouts` are the rows that are marked, None: no such field."""
    rng = np.random.default_rng(steps)
    states = rng.standard_normal((steps + 1, dims[0])).astype(np.float32)
    arrays = {
        "observations": states[:-1],
        "next_observations": states[1:],
        "actions": rng.uniform(-1, 1, (steps, dims[1])).astype(np.float32),
        "rewards": rng.standard_normal(steps).astype(np.float32),
        "infos/action_log_probs": rng.standard_normal(steps).astype(np.float32),
        "infos/qpos": rng.standard_normal((steps, 6)),
        "infos/qvel": rng.standard_normal((steps, 6)),
    }
    for name, rows in (("terminals", terminals), ("timeouts", timeouts)):
        if rows is not None:
            arrays[name] = np.isin(np.arange(steps), rows)
    arrays = {name: array for name, array in arrays.items() if name not in without}
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
        file["metadata/algorithm"], file["metadata/iteration"] = np.bytes_("SAC"), 3
        file["metadata/policy/fc0/weight"] = np.zeros((4, dims[0]), np.float32)
        file["metadata/policy/nonlinearity"] = np.bytes_("relu")
    return arrays


def lengths(trajectories: Trajectories) -> list[int]:
    return trajectories.lengths.tolist()


class TestByName:
    @pytest.mark.parametrize(
        ("name", "file", "dims"),
        [
            ("hopper-expert-v2", "hopper_expert-v2.hdf5", (11, 3)),
            ("halfcheetah-medium-replay-v2", "halfcheetah_medium_replay-v2.hdf5", (17, 6)),
            ("walker2d-medium-expert-v2", "walker2d_medium_expert-v2.hdf5", (17, 6)),
            ("ant-random-v2", "ant_random-v2.hdf5", (111, 8)),
        ],
    )
    def test_locomotion(self, tmp_path: Path, name: str, file: str, dims: tuple[int, int]) -> None:
        arrays = write(tmp_path / "d4rl" / file, 2600, terminals=[249, 1300], timeouts=[1249, 2300], dims=dims)
        part = D4RL().part(name)
        assert lengths(part) == [250, 1000, 51, 1000, 299]
        assert set(part.origins) == {name}
        recorded = part.recording.arrays()
        assert recorded.keys() == {"observations", "actions", "rewards", "terminals", "timeouts"}
        for key, array in recorded.items():
            np.testing.assert_array_equal(array, arrays[key])
            assert array.dtype == arrays[key].dtype

    def test_timeouts_go_before_the_episode_length(self, tmp_path: Path) -> None:
        """A file that says when episodes timed out is believed, also where they are longer than the task's."""
        write(tmp_path / "d4rl" / "hopper_expert-v2.hdf5", 2500, terminals=[], timeouts=[1499])
        assert lengths(D4RL().part("hopper-expert-v2")) == [1500, 1000]

    def test_episode_length_where_there_are_no_timeouts(self, tmp_path: Path) -> None:
        write(tmp_path / "d4rl" / "hopper_medium.hdf5", 2600, terminals=[249, 1300])
        assert lengths(D4RL().part("hopper-medium-v0")) == [250, 1000, 51, 1000, 299]

    def test_terminal_on_the_last_step_of_the_episode_length(self, tmp_path: Path) -> None:
        write(tmp_path / "d4rl" / "hopper_medium.hdf5", 2001, terminals=[999, 1999, 2000])
        assert lengths(D4RL().part("hopper-medium-v0")) == [1000, 1000, 1]

    @pytest.mark.parametrize(
        ("name", "file", "expected"),
        [
            ("maze2d-open-v0", "maze2d-open-sparse.hdf5", [100, 150, 150, 150, 150, 150, 150]),
            ("maze2d-umaze-v1", "maze2d-umaze-sparse-v1.hdf5", [100, 300, 300, 300]),
            ("maze2d-medium-dense-v1", "maze2d-medium-dense-v1.hdf5", [100, 600, 300]),
            ("maze2d-large-v1", "maze2d-large-sparse-v1.hdf5", [100, 800, 100]),
            ("kitchen-complete-v0", "mini_kitchen_microwave_kettle_light_slider-v0.hdf5", [100, 280, 280, 280, 60]),
            ("pen-human-v0", "pen-v0_demos_clipped.hdf5", [100] * 10),
            ("door-expert-v0", "door-v0_expert_clipped.hdf5", [100, 200, 200, 200, 200, 100]),
        ],
    )
    def test_episode_lengths_of_other_tasks(self, tmp_path: Path, name: str, file: str, expected: list[int]) -> None:
        write(tmp_path / "d4rl" / file, 1000, terminals=[99], dims=(4, 2))
        assert lengths(D4RL().part(name)) == expected

    def test_antmaze(self, tmp_path: Path) -> None:
        file = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5"
        write(tmp_path / "d4rl" / file, 2000, terminals=[300], timeouts=[700, 1400], dims=(29, 8))
        assert lengths(D4RL().part("antmaze-umaze-v2")) == [301, 400, 700, 599]
        file = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse.hdf5"
        write(tmp_path / "d4rl" / file, 2000, terminals=[300], dims=(29, 8))
        assert lengths(D4RL().part("antmaze-umaze-v0")) == [301, 700, 700, 299]

    def test_antmazes_random_steps_are_made_in_the_same_body(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """D4RL has published none; the authors' file can be named instead."""
        monkeypatch.setattr(antmaze, "ROWS", 1)
        monkeypatch.setattr(antmaze, "RANDOM_HORIZON", 5)
        recipe = AntMazeRecipe(body="d4rl", random_steps=3)
        source = D4RL({"goal": "antmaze-umaze-v2", "random": None}, recipe=recipe)
        assert source.part("random").steps == 3 and source.body("random") == source.body("goal") == "d4rl"
        steps = [{"state": np.full(29, n, np.float32), "action": np.zeros(8, np.float32), "terminal": n == 3}
                 for n in range(6)]  # fmt: skip
        torch.save(steps, tmp_path / "random.pt")
        read = D4RL({"random": str(tmp_path / "random.pt")}, recipe=recipe).part("random")
        assert lengths(read) == [4, 2] and read.observations[:, 0].tolist() == [*range(6)]
        assert D4RL({}).body("hopper-expert-v2") is None

    @pytest.mark.parametrize(("env", "dims"), [("halfcheetah", (17, 6)), ("ant", (111, 8))])
    def test_the_authors_mismatched_expert_is_ts(self, tmp_path: Path, env: str, dims: tuple[int, int]) -> None:
        for part in ("expert", "random"):
            write(tmp_path / "d4rl" / f"{env}_{part}-v2.hdf5", 40, timeouts=[9, 19, 29, 39], dims=dims)
        steps = [{"state": np.full(dims[0], n, np.float32), "action": np.zeros(dims[1], np.float32), "terminal": n == 4}
                 for n in range(5)]  # fmt: skip
        torch.save(steps, tmp_path / "other_body.pt")
        given = [
            f"experiment=mismatch_{env}",
            f"source.parts.mismatch={tmp_path / 'other_body.pt'}",
            "setting.experts=3",
        ]
        task = composed(given).task
        assert lengths(task.ts) == [5] and task.ts.observations[:, 0].tolist() == [*range(5)]
        assert lengths(task.ta) == [10] * 7

    def test_columns_of_one_number(self, tmp_path: Path) -> None:
        """Some of the old files have rewards and terminals as (steps, 1)."""
        path = tmp_path / "d4rl" / "hopper_medium.hdf5"
        arrays = write(path, 40, terminals=[9])
        with h5py.File(path, "a") as file:
            for name in ("rewards", "terminals"):
                del file[name]
                file[name] = arrays[name][:, None].astype(np.float64)
        part = D4RL().part("hopper-medium-v0")
        assert lengths(part) == [10, 30]
        np.testing.assert_array_equal(part.recording.rewards, arrays["rewards"])
        assert part.recording.terminals is not None and part.recording.terminals.dtype == bool

    @settings(max_examples=30)
    @given(st.data())
    def test_ends_in_batches_of_any_size(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        folder = tmp_path_factory.mktemp("any")
        steps = data.draw(st.integers(1, 400))
        marks = st.lists(st.integers(0, steps - 1), max_size=5)
        terminals, timeouts = data.draw(marks), data.draw(st.none() | marks)
        arrays = write(folder / "maze2d-open-sparse.hdf5", steps, terminals=terminals, timeouts=timeouts, dims=(4, 2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TAILO_HOME", str(folder / "home"))
            patch.setenv("D4RL_DATASET_DIR", str(folder))
            patch.setattr(record_file, "BATCH_BYTES", data.draw(st.integers(1, 5000)))
            part = D4RL().part("maze2d-open-v0")
        expected, age = [], 0
        for row in range(steps):  # one step after the other, as D4RL's own loop goes
            age += 1
            timed_out = age == 150 if timeouts is None else row in timeouts
            if row in terminals or timed_out:
                expected.append(age)
                age = 0
        assert lengths(part) == expected + [age] * (age > 0)
        np.testing.assert_array_equal(part.recording.observations, arrays["observations"])

    def test_parts_have_other_names(self, tmp_path: Path) -> None:
        write(tmp_path / "d4rl" / "hopper_expert-v2.hdf5", 30, terminals=[9], timeouts=[])
        source = D4RL({"expert": "hopper-expert-v2"})
        assert lengths(source.part("expert")) == [10, 20]
        assert source.part("expert") is source.part("expert")
        assert source.describe() == "d4rl: hopper-expert-v2"

    def test_folder_of_d4rl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("D4RL_DATASET_DIR", "/data/d4rl")
        assert dataset_path("hopper-expert-v2") == Path("/data/d4rl/hopper_expert-v2.hdf5")
        monkeypatch.delenv("D4RL_DATASET_DIR")
        monkeypatch.setenv("HOME", "/nowhere")
        assert dataset_path("ant-medium-v0") == Path("/nowhere/.d4rl/datasets/ant_medium.hdf5")


class TestByPath:
    def test_path(self, tmp_path: Path) -> None:
        write(tmp_path / "mine.h5", 40, terminals=[9], timeouts=[29])
        part = D4RL({"expert": str(tmp_path / "mine.h5")}).part("expert")
        assert lengths(part) == [10, 20, 10]
        assert set(part.origins) == {"mine"}

    def test_relative_to_here_or_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        write(tmp_path / "mine.hdf5", 20, terminals=[9])
        for given_path in ("mine.hdf5", "./mine.hdf5", "~/mine.hdf5"):
            assert lengths(D4RL().part(given_path)) == [10, 10]

    def test_no_task_is_known(self, tmp_path: Path) -> None:
        write(tmp_path / "mine.hdf5", 4000, terminals=[9])
        assert lengths(D4RL().part(str(tmp_path / "mine.hdf5"))) == [10, 3990]

    def test_without_rewards(self, tmp_path: Path) -> None:
        write(tmp_path / "mine.hdf5", 20, timeouts=[9], without=("rewards",))
        part = D4RL().part(str(tmp_path / "mine.hdf5"))
        assert part.recording.arrays().keys() == {"observations", "actions", "timeouts"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({}, "no field terminals found among actions, next_observations, observations, rewards, expected it or"),
            ({"terminals": [], "without": ("observations",)}, "observations: no field 'observations' found"),
            ({"terminals": [], "without": ("actions",)}, "actions: no field 'actions' found"),
        ],
    )
    def test_missing_fields(self, tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
        path = tmp_path / "mine.hdf5"
        write(path, 20, **arguments)
        with pytest.raises(UserError) as caught:
            D4RL().part(str(path))
        assert str(caught.value).startswith(f"{path}: {message}") and "\n" not in str(caught.value)

    def test_misspelt_end(self, tmp_path: Path) -> None:
        path = tmp_path / "d4rl" / "hopper_expert-v2.hdf5"
        write(path, 20, terminals=[9], timeouts=[14])
        with h5py.File(path, "a") as file:
            file.move("timeouts", "timeout")
        with pytest.raises(UserError, match="field timeout found, expected timeouts"):
            D4RL().part("hopper-expert-v2")

    @pytest.mark.parametrize("row", [0, 1500])
    def test_numbers_that_are_none(self, tmp_path: Path, row: int) -> None:
        path = tmp_path / "mine.hdf5"
        write(path, 2000, terminals=[9])
        with h5py.File(path, "a") as file:
            file["observations"][row, 2] = np.nan
        with pytest.raises(UserError, match=f"observations: nan found in row {row} .counted from 0., dimension 2"):
            D4RL().part(str(path))
        assert not list((tmp_path / "home" / "data").iterdir())

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"none\.hdf5: cannot be read \(No such file"):
            D4RL().part(str(tmp_path / "none.hdf5"))

    def test_damaged_file(self, tmp_path: Path) -> None:
        path = tmp_path / "d4rl" / "hopper_expert-v2.hdf5"
        write(path, 2000, terminals=[9])
        path.write_bytes(path.read_bytes()[:-5000])
        with pytest.raises(UserError, match=rf"^{path}: .*truncated"):
            D4RL().part("hopper-expert-v2")


class TestCache:
    def test_imported_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "d4rl" / "hopper_expert-v2.hdf5"
        write(path, 30, terminals=[9], timeouts=[])
        first, mark = D4RL().part("hopper-expert-v2"), D4RL().fingerprint("hopper-expert-v2")
        monkeypatch.setattr(d4rl, "import_files", lambda *_, **__: pytest.fail("imported again"))
        again = D4RL()
        np.testing.assert_array_equal(again.part("hopper-expert-v2").observations, first.observations)
        assert again.fingerprint("hopper-expert-v2") == mark
        assert isinstance(again.part("hopper-expert-v2").recording.observations, np.memmap)

    def test_a_changed_file_is_imported_again(self, tmp_path: Path) -> None:
        path = tmp_path / "d4rl" / "hopper_expert-v2.hdf5"
        write(path, 30, terminals=[9], timeouts=[])
        mark = D4RL().fingerprint("hopper-expert-v2")
        write(path, 30, terminals=[19], timeouts=[])
        os.utime(path, ns=(0, 0))
        assert lengths(D4RL().part("hopper-expert-v2")) == [20, 10]
        assert D4RL().fingerprint("hopper-expert-v2") != mark

    def test_fingerprint_is_of_the_content(self, tmp_path: Path) -> None:
        write(tmp_path / "one.hdf5", 30, terminals=[9])
        (tmp_path / "copy").mkdir()
        shutil.copy(tmp_path / "one.hdf5", tmp_path / "copy" / "one.hdf5")
        marks = {D4RL().fingerprint(str(path)) for path in (tmp_path / "one.hdf5", tmp_path / "copy" / "one.hdf5")}
        assert len(marks) == 1


class TestWhatIsMissing:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("hoper-expert-v2", "hopper-expert-v2"),
            ("hopper-expert-v3", "hopper-expert-v2"),
            ("Hopper-medium-v2", "hopper-medium-v2"),
            ("mismatch", "tailo data list d4rl"),
        ],
    )
    def test_unknown_names(self, name: str, hint: str) -> None:
        with pytest.raises(UserError) as caught:
            D4RL({"expert": name}).part("expert")
        message = str(caught.value)
        assert hint in message and repr(name) in message and "source.parts.expert=PATH.hdf5" in message
        assert "\n" not in message

    def test_without_downloads(self, tmp_path: Path) -> None:
        with pytest.raises(UserError) as caught:
            D4RL(download=False).part("hopper-expert-v2")
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}/d4rl/hopper_expert-v2.hdf5: not there")
        assert f"{ROOT}/gym_mujoco_v2/hopper_expert-v2.hdf5" in message and "source=bundled" in message

    def test_downloaded_from_the_published_address(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = []

        def fetch(url: str, target: Path, *, check: Callable[[Path], None]) -> None:
            asked.append(url)
            write(target, 30, terminals=[9], timeouts=[])
            check(target)

        monkeypatch.setattr(d4rl, "fetch", fetch)
        assert lengths(D4RL().part("hopper-expert-v2")) == [10, 20]
        D4RL().part("hopper-expert-v2")
        assert asked == [f"{ROOT}/gym_mujoco_v2/hopper_expert-v2.hdf5"]

    @pytest.mark.parametrize("without", ["observations", "actions"])
    def test_what_a_download_must_hold(self, tmp_path: Path, without: str) -> None:
        write(tmp_path / "got.hdf5", 20, terminals=[], without=(without,))
        with pytest.raises(UserError, match=f"no field {without} found"):
            d4rl._require_steps(tmp_path / "got.hdf5")

    def test_rows_of_a_download_must_agree(self, tmp_path: Path) -> None:
        arrays = write(tmp_path / "got.hdf5", 20, terminals=[], without=("actions",))
        with h5py.File(tmp_path / "got.hdf5", "a") as file:
            file["actions"] = arrays["observations"][1:]
        with pytest.raises(UserError, match="19 rows found, expected 20"):
            d4rl._require_steps(tmp_path / "got.hdf5")


class TestTable:
    def test_count(self) -> None:
        assert len(DATASETS) == 155
        assert len({dataset.file_name for dataset in DATASETS.values()}) == 155

    def test_every_name_with_a_reference_score_has_a_file(self) -> None:
        assert DATASETS.keys() >= REFERENCES.keys()

    @pytest.mark.parametrize(
        ("name", "location", "horizon"),
        [
            ("hopper-expert-v2", "gym_mujoco_v2/hopper_expert-v2.hdf5", 1000),
            ("ant-full-replay-v1", "gym_mujoco_v1/ant_full_replay-v1.hdf5", 1000),
            ("walker2d-medium-replay-v0", "gym_mujoco/walker_mixed.hdf5", 1000),
            ("halfcheetah-medium-replay-v0", "gym_mujoco/halfcheetah_mixed.hdf5", 1000),
            ("halfcheetah-medium-expert-v0", "gym_mujoco/halfcheetah_medium_expert.hdf5", 1000),
            ("bullet-walker2d-medium-replay-v0", "bullet/bullet-walker2d_medium_replay.hdf5", 1000),
            ("maze2d-eval-large-dense-v1", "maze2d/maze2d-eval-large-dense-v1.hdf5", 800),
            ("maze2d-umaze-v1", "maze2d/maze2d-umaze-sparse-v1.hdf5", 300),
            ("maze2d-open-dense-v0", "maze2d/maze2d-open-dense.hdf5", 150),
            ("bullet-maze2d-medium-v0", "bullet/bullet-maze2d-medium-sparse.hdf5", 600),
            (
                "antmaze-large-play-v0",
                "ant_maze_new/Ant_maze_hardest-maze_noisy_multistart_True_multigoal_False_sparse.hdf5",
                1000,
            ),
            (
                "antmaze-umaze-diverse-v2",
                "ant_maze_v2/Ant_maze_u-maze_noisy_multistart_True_multigoal_True_sparse_fixed.hdf5",
                700,
            ),
            ("kitchen-mixed-v0", "kitchen/kitchen_microwave_kettle_bottomburner_light-v0.hdf5", 280),
            ("pen-cloned-v0", "hand_dapg/pen-demos-v0-bc-combined.hdf5", 100),
            ("relocate-expert-v1", "hand_dapg_v1/relocate-expert-v1.hdf5", 200),
            ("flow-merge-controller-v0", "flow/flow-merge-v0-idm.hdf5", 750),
            ("carla-lane-v0", "carla/carla_lane_follow_flat-v0.hdf5", 250),
        ],
    )
    def test_facts(self, name: str, location: str, horizon: int) -> None:
        assert DATASETS[name].url == f"{ROOT}/{location}"
        assert DATASETS[name].horizon == horizon
        assert d4rl_datasets.ADDRESS == ROOT


@pytest.mark.parametrize(
    ("setting", "ts", "origins"),
    [
        ("standard", {"hopper-expert-v2": 1}, {"hopper-expert-v2": 40, "hopper-random-v2": 250}),
        ("offline_rl", {"hopper-medium-v2": 1}, {"hopper-medium-v2": 250}),
    ],
)
def test_settings_on_d4rl_data(tmp_path: Path, setting: str, ts: dict[str, int], origins: dict[str, int]) -> None:
    for kind in ("expert", "random", "medium"):
        file = tmp_path / "d4rl" / f"hopper_{kind}-v2.hdf5"
        write(file, 5000, terminals=[], timeouts=list(range(19, 5000, 20)))
    experiment = composed(["env=hopper", "source=d4rl", f"setting={setting}"])
    assert Counter(experiment.task.ts.origins.tolist()) == ts
    assert Counter(experiment.task.ta.origins.tolist()) == origins
    assert experiment.source.describe() == f"d4rl: {', '.join(origins)}"
