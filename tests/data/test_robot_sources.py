"""Sources lerobot, robomimic and zarr: the numbers of the recordings, what is chosen of them, and training on them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.hub_server import Hub, serving
from helpers.robot_sets import ENDS, JOINTS, Logs, write_lerobot, write_robomimic, write_zarr
from helpers.runs import small_run

from tailo_pl.data.sources.imported import Imported
from tailo_pl.data.sources.lerobot import LeRobot
from tailo_pl.data.sources.robomimic import Robomimic
from tailo_pl.data.sources.zarr import Zarr
from tailo_pl.errors import UserError

LOGS = Logs()
KEYS = ["joints", "object"]


def require_logs(source: Imported, episodes: tuple[int, ...] = (0, 1, 2)) -> None:
    """TA holds these episodes of `LOGS`, TS the states of all of them."""
    ta, rows = source.part("ta"), np.isin(LOGS.episode, episodes)
    np.testing.assert_array_equal(ta.observations, LOGS.states[rows])
    np.testing.assert_array_equal(ta.actions, LOGS.actions[rows])
    assert ta.lengths.tolist() == [LOGS.lengths[number] for number in episodes]
    ts = source.part("ts")
    np.testing.assert_array_equal(ts.observations, LOGS.states)
    assert ts.recording.actions is None


class TestLeRobot:
    @pytest.mark.parametrize("version", ["v3.0", "v2.1"])
    @pytest.mark.parametrize("options", [{}, {"as_pandas": True}, {"files": (0, 1, 1)}], ids=str)
    def test_numbers_names_and_bounds(
        self, tmp_path: Path, version: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = write_lerobot(tmp_path / "logs", LOGS, version, **options)
        demos = write_lerobot(tmp_path / "demos", LOGS, version, actions=False)
        with caplog.at_level(logging.INFO):
            source = LeRobot(str(demos), str(folder))
            require_logs(source)
            bounds = source.action_bounds("ta")
        recording = source.part("ta").recording
        assert (list(recording.state_names), list(recording.action_names)) == (JOINTS, ENDS)
        np.testing.assert_array_equal(recording.rewards, LOGS.rewards)
        assert bounds == (tuple(LOGS.actions.min(0).tolist()), tuple(LOGS.actions.max(0).tolist()))
        said = " ".join(record.getMessage() for record in caplog.records)
        assert "images and videos are left out: observation.images.top (video)" in said
        assert f"action bounds: from logs/meta/{'stats.json' if version == 'v3.0' else 'episodes_stats.jsonl'}" in said
        again = LeRobot(str(demos), str(folder))  # from the cache
        assert again.fingerprint("ta") == source.fingerprint("ta")
        require_logs(again)

    def test_choices(self, tmp_path: Path) -> None:
        logs = Logs(tasks=(0, 1, 0))
        folder = str(write_lerobot(tmp_path / "logs", logs, files=(0, 1, 2)))
        require_logs(LeRobot(folder, folder, ta_episodes="1:3"), (1, 2))
        require_logs(LeRobot(folder, folder, ta_episodes=[0, 2]), (0, 2))
        require_logs(LeRobot(folder, folder, ta_tasks=["push the block"]), (0, 2))
        require_logs(LeRobot(folder, folder, ta_tasks=[1]), (1,))
        joined = LeRobot(folder, folder, features=["observation.state", "next.reward"]).part("ta")
        np.testing.assert_array_equal(joined.observations, np.column_stack([LOGS.states, LOGS.rewards]))
        assert joined.recording.state_names == (*JOINTS, "next.reward")

    def test_several_sets(self, tmp_path: Path) -> None:
        one, two = (str(write_lerobot(tmp_path / name, Logs(seed=seed))) for name, seed in (("a.1", 0), ("a.2", 1)))
        ta = LeRobot(one, [one, two]).part("ta")
        assert ta.origins.tolist() == ["a.1"] * 3 + ["a.2"] * 3
        np.testing.assert_array_equal(ta.observations, np.concatenate([LOGS.states, Logs(seed=1).states]))

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"ta_episodes": [7]}, "episode 7 asked for, expected some of 0 to 2 (3 episodes)"),
            ({"ta_tasks": ["fly"]}, "task 'fly' asked for, expected one of 'push the block' (0), 'lift the block' (1)"),
            ({"ta_tasks": [1]}, "no row of the chosen tasks found (task_index [1])"),
            ({"features": ["observation.images.top"]}, "'observation.images.top' is of type video"),
            ({"features": ["observation.stat"]}, "no feature 'observation.stat', expected some of observation.state"),
            ({"download": False, "ta": "org/name"}, "source.ta: 'org/name' is not there"),
        ],
    )
    def test_choices_that_are_not_there(self, tmp_path: Path, options: dict[str, Any], said: str) -> None:
        folder = str(write_lerobot(tmp_path / "logs", LOGS))
        with pytest.raises(UserError) as caught:
            LeRobot(**{"ts": folder, "ta": folder, **options}).part("ta")
        assert said in str(caught.value)

    def test_rates(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        slow, quick = (str(write_lerobot(tmp_path / f"at{fps}", LOGS, fps=fps)) for fps in (10, 50))
        with pytest.raises(UserError, match=r"source.ta: data sets of different fps found \(at10 10, at50 50\)"):
            LeRobot(slow, [slow, quick]).part("ta")
        source = LeRobot(slow, quick)
        source.part("ts")
        source.part("ta")
        assert "recorded at different fps" in caplog.text

    def test_from_the_hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By huggingface_hub itself, from a server on this machine; only once, and without the videos."""
        monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        hub = Hub()
        hub.add_folder("me/arm", write_lerobot(tmp_path / "logs", LOGS))
        hub.repositories["me/arm"]["videos/x.mp4"] = b"film"
        with serving(hub) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            require_logs(LeRobot("me/arm", "me/arm"))
            assert not any("videos" in asked for asked in hub.asked)
            with pytest.raises(UserError, match="me/other: neither a folder here nor to be had from the Hub"):
                LeRobot("me/other", "me/arm").part("ts")
        require_logs(LeRobot("me/arm", "me/arm"))  # the server is gone


class TestRobomimic:
    def test_numbers(self, tmp_path: Path) -> None:
        path = str(write_robomimic(tmp_path / "x.hdf5", LOGS))
        source = Robomimic(path, path, features=KEYS)
        require_logs(source)
        recording = source.part("ta").recording
        np.testing.assert_array_equal(recording.next_observations, LOGS.states + 1)
        assert recording.state_names == ("obs/joints[0]", "obs/joints[1]", "obs/object[0]")
        assert source.action_bounds("ta") == ((-1.0, -1.0), (1.0, 1.0))

    def test_filters_and_choices(self, tmp_path: Path) -> None:
        path = str(write_robomimic(tmp_path / "x.hdf5", LOGS))
        require_logs(Robomimic(path, path, features=KEYS, ta_filter="train"), (1, 2))
        require_logs(Robomimic(path, path, features=KEYS, ta_episodes=[0, 2]), (0, 2))
        assert Robomimic(path, path, features=["states"]).part("ta").observations.shape[1] == 6
        with pytest.raises(UserError, match="filter key 'test' asked for, expected one of train, valid"):
            Robomimic(path, path, features=KEYS, ta_filter="test").part("ta")
        with pytest.raises(UserError, match=r"source.features=\[...\] among agentview_image, joints, object, states"):
            Robomimic(path, path).part("ta")

    def test_demos_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        logs = Logs(lengths=[3] * 12)
        path = str(write_robomimic(tmp_path / "x.hdf5", logs))
        np.testing.assert_array_equal(Robomimic(path, path, features=KEYS).part("ts").observations, logs.states)

    def test_bounds_of_the_controller(self, tmp_path: Path) -> None:
        controller = {"env_kwargs": {"controller_configs": {"input_min": [-2, -3], "input_max": [2, 3]}}}
        path = str(write_robomimic(tmp_path / "x.hdf5", LOGS, env_args=controller))
        assert Robomimic(path, path, features=KEYS).action_bounds("ta") == ((-2.0, -3.0), (2.0, 3.0))


class TestZarr:
    @pytest.mark.parametrize("name", ["x.zarr", "x.zarr.zip"])
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_numbers(self, tmp_path: Path, name: str, zarr_format: int) -> None:
        path = str(write_zarr(tmp_path / name, LOGS, zarr_format))
        source = Zarr(path, path)
        require_logs(source)
        assert source.part("ta").origins.tolist() == ["x"] * 3
        require_logs(Zarr(path, path, ta_episodes="0,2"), (0, 2))

    @pytest.mark.parametrize("codec", ["Blosc", "Zlib", "GZip", "LZ4", "Zstd", None])
    def test_compressors(self, tmp_path: Path, codec: str | None) -> None:
        import numcodecs

        compressor = None if codec is None else getattr(numcodecs, codec)()
        path = str(write_zarr(tmp_path / "x.zarr", LOGS, compressors=compressor))
        require_logs(Zarr(path, path))


def test_bounds_given_clip_and_drop(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logs = Logs()
    logs.states[[3, 10, 11], 1] = np.nan  # in the first episode, and the first two steps of the second
    folder = str(write_lerobot(tmp_path / "logs", logs))
    demos = str(write_lerobot(tmp_path / "demos", LOGS))
    with pytest.raises(UserError, match=r"nan found in row 3 \(counted from 0\) of data/chunk-000/file-000.parquet"):
        LeRobot(demos, folder).part("ta")
    with caplog.at_level(logging.INFO):
        ta = LeRobot(demos, folder, drop_nan=True, clip_actions=True, action_low=-0.5, action_high=0.5).part("ta")
    kept = np.delete(np.arange(37), [3, 10, 11])
    np.testing.assert_array_equal(ta.observations, logs.states[kept])
    assert ta.lengths.tolist() == [9, 13, 12]
    np.testing.assert_array_equal(ta.actions, np.clip(logs.actions[kept], -0.5, 0.5))
    beyond = int((np.abs(logs.actions[kept]) > 0.5).any(1).sum())
    assert "3 of 37 steps left out because of a NaN" in caplog.text
    assert f"actions of {beyond} of 34 steps brought within their bounds" in caplog.text


@pytest.mark.parametrize("kind", ["lerobot v3", "lerobot v2", "robomimic", "zarr"])
def test_training(kind: str, tmp_path: Path) -> None:
    """From the recording to a policy, with nothing named but where the data is."""
    logs = Logs(lengths=[20, 30, 25, 25])
    write = {
        "lerobot v3": lambda at: write_lerobot(at, logs),
        "lerobot v2": lambda at: write_lerobot(at, logs, "v2.1"),
        "robomimic": lambda at: write_robomimic(at.with_suffix(".hdf5"), logs),
        "zarr": lambda at: write_zarr(at.with_suffix(".zarr"), logs),
    }[kind]
    path = write(tmp_path / "logs")
    options = ["source.features=[joints,object]"] if kind == "robomimic" else []
    overrides = [f"source={kind.split()[0]}", f"source.ts={path}", f"source.ta={path}", "source.ts_episodes=[0]"]
    run = small_run(tmp_path / "runs", *overrides, *options, "preset.held_out.trajectories=1")
    from tailo_pl import load_policy

    low, high = logs.actions.min(0) - 0.2, logs.actions.max(0) + 0.2
    actions = load_policy(run)(logs.states)
    assert actions.shape == logs.actions.shape and ((actions > low) & (actions < high)).all()
