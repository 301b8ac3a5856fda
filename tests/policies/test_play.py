"""Films of a policy: real pictures where the machine can draw, one clear line where it cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
import yaml

from tailo_pl import cli
from tailo_pl.envs.bodies import load_model
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.locomotion import Locomotion
from tailo_pl.envs.pointmaze import PointMaze
from tailo_pl.envs.simulator import Drawn
from tailo_pl.errors import UserError
from tailo_pl.policies.film import record
from tailo_pl.policies.render import pictures


@pytest.fixture(scope="module")
def renderer() -> None:
    """Skips where nothing can be drawn."""
    model = load_model("hopper")
    try:
        list(pictures(model, model.qpos0[None], 32, 32))
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [(PointMaze(), 0.01), (Locomotion("hopper"), 0.008), (Locomotion("ant"), 0.05)],
)
def test_poses_are_those_of_the_simulation(environment: Environment, seconds: float) -> None:
    simulator = environment.simulator(2)
    assert isinstance(simulator, Drawn)
    rows = np.arange(2)
    simulator.reset(rows, np.array([1, 2]))
    before = simulator.pose(1)
    simulator.step(rows, np.full((2, simulator.action_dim), 0.5))
    after = simulator.pose(1)
    assert before.shape == (simulator.model.nq,) and not np.array_equal(before, after)
    assert not np.array_equal(after, simulator.pose(0))
    assert simulator.step_seconds == pytest.approx(seconds)
    simulator.close()


def test_the_picture_follows_the_pose(renderer: None) -> None:
    model = load_model("hopper")
    poses = np.repeat(model.qpos0[None], 3, axis=0)
    poses[2, 3] = -1.0  # bends the thigh
    first, same, bent = pictures(model, poses, 64, 48)
    assert first.shape == (48, 64, 3) and first.std() > 5
    assert np.array_equal(first, same) and not np.array_equal(first, bent)


def test_episodes_side_by_side_last_some_seconds(renderer: None, run_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "play.mp4"
    played = record(run_dir, path, episodes=3, width=64, height=48, side_by_side=True)
    with imageio.get_reader(path) as reader:
        seconds, film = reader.get_meta_data()["duration"], [np.asarray(picture) for picture in reader]
    assert len(played) == 3 and film[0].shape == (48, 3 * 64, 3) and seconds >= 3


@pytest.mark.parametrize("name", ["play.gif", "play.mp4"])
def test_a_film(renderer: None, run_dir: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["play", str(run_dir), "--out", str(tmp_path / name), "--width", "64", "--height", "48"]
    assert cli.main([*arguments, "--episodes", "2", "--seed", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"film {tmp_path / name}" in shown and len(shown.splitlines()) == 5  # title, header, two episodes, film
    with imageio.get_reader(tmp_path / name) as reader:
        film = [np.asarray(picture)[..., :3] for picture in reader]
    # Two episodes of 200 steps of 0.01 s at most 30 a second: every third. (A gif drops pictures that do not change.)
    # Its last picture stays for a second.
    assert film[0].shape == (48, 64, 3) and 60 <= len(film) <= 134 + 34
    assert film[0].std() > 5 and any(not np.array_equal(film[0], later) for later in film)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert cli.main(arguments) == 2
    assert "this file exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "play.avi"], "play.avi: cannot write .avi, expected one of .mp4, .gif"),
        (["--width", "63"], "width: 63 given, expected an even number"),
        (["--height", "8"], "height: 8 given, expected a number in [16, 4096]"),
        (["--episodes", "0"], "episodes: 0 given"),
    ],
)
def test_what_is_not_filmed(
    run_dir: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["play", str(run_dir), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_without_renderer_package_run_or_environment(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    film = ["--out", str(tmp_path / "film.mp4")]

    def refused(*arguments: str) -> str:
        assert cli.main(["play", *arguments, *film]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "Traceback" not in error
        return error

    assert "expected the folder of a run" in refused(str(tmp_path / "none"))
    incomplete = tmp_path / "incomplete"
    incomplete.mkdir()
    (incomplete / "config.yaml").write_text((run_dir / "config.yaml").read_text())
    assert "expected a finished run" in refused(str(incomplete))
    config = yaml.safe_load((run_dir / "config.yaml").read_text())
    config["env"] |= {"name": "none", "class_path": None}
    (incomplete / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    assert "this run has no environment to play in (env=none)" in refused(str(incomplete))
    if sys.platform == "linux":
        monkeypatch.setenv("MUJOCO_GL", "nonsense")  # which MuJoCo refuses when the drawing process imports it
        assert "no offscreen renderer works here (nonsense: " in refused(str(run_dir))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert "needs the package imageio_ffmpeg: pip install 'tailo_pl[video]'" in refused(str(run_dir))
    assert not list(tmp_path.glob("*film*"))
