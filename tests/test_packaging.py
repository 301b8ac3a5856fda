"""The wheel is whole: configs, callbacks and experts are in it, and `tailo` runs from it outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_wheel_contains_configs_callbacks_and_experts(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "tailo_pl/py.typed",
        "tailo_pl/configs/train.yaml",
        "tailo_pl/configs/env/pointmaze.yaml",
        "tailo_pl/callbacks/rollout.py",
        "tailo_pl/experts/manifest.json",
        "tailo_pl/experts/hopper.npz",
        "tailo_pl/report/page.css",
        "tailo_pl/report/page.js",
        "tailo_pl/runs/measured.jsonl",
    } <= names
    assert not any(name.startswith(("configs/", "callbacks/", "tests/")) for name in names)


def test_a_checkout_without_links_says_so_in_one_line(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src/tailo_pl").mkdir(parents=True)
    (tmp_path / "src/tailo_pl/configs").write_text("../../configs")  # what git leaves where it makes no links
    done = subprocess.run([sys.executable, "setup.py", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "src/tailo_pl/configs is no folder, expected a link to configs/" in done.stderr


@pytest.mark.slow
def test_tailo_runs_from_the_wheel_in_a_fresh_venv(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    # The dependencies are those of the running environment; the package itself must come from the wheel.
    packages = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    where = subprocess.check_output(
        [python, "-c", "import tailo_pl; print(tailo_pl.__file__)"], cwd=tmp_path, env=environment, text=True
    )
    assert str(packages) in where
    small = ["preset.policy_steps=5", "preset.rollout.episodes=1", "preset.rollout.every_n_steps=0", "trainer=cpu"]
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "tailo", "train", "method=bc", "name=wheel", *small],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs/pointmaze/examples/bc/wheel/summary.json").is_file()
