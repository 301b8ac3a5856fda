"""A policy that leaves the project: the same actions from every file, and nothing in a file is run or unpickled."""

from __future__ import annotations

import pickletools
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from tailo_pl import cli, load_policy, run
from tailo_pl.envs.pointmaze import OpenPlane
from tailo_pl.errors import UserError
from tailo_pl.export import CHECKED_STATES, Exported, export, representative_states
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.policies import deterministic


@pytest.fixture(scope="module")
def exported(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    """The run in all formats."""
    return {one.format: one for one in export(run_dir, out=tmp_path_factory.mktemp("out"))}


def test_every_format_acts_like_the_policy(exported: dict[str, Exported]) -> None:
    assert sorted(exported) == ["onnx", "torch_export"]
    for one in exported.values():
        assert one.path.exists() and one.difference < 1e-5


def test_states_of_the_check_are_spread_as_the_data(run_dir: Path) -> None:
    policy = run.load_run_policy(run_dir)
    states = representative_states(policy)
    assert states.shape == (CHECKED_STATES, 4) and CHECKED_STATES == 1000
    # Standard error of a mean of 1,000 normal numbers: 0.03 deviations.
    standardised = (states - policy.standardise.mean.numpy()) / policy.standardise.std.numpy()
    assert np.abs(standardised.mean(0)).max() < 0.2 and np.abs(standardised.std(0) - 1).max() < 0.2


def test_run_checkpoint_and_onnx_load_as_the_same_policy(run_dir: Path, exported: dict[str, Exported]) -> None:
    module = run.load_run_policy(run_dir)
    states = representative_states(module)
    with torch.inference_mode():
        expected = module(torch.from_numpy(states)).numpy()
    for path in (run_dir, str(run_dir), run_dir / "policy/checkpoints/last.ckpt", exported["onnx"].path):
        policy = load_policy(path)
        assert (policy.observation_dim, policy.action_dim) == (4, 2)
        batch = policy(states)
        assert batch.dtype == np.float32 and np.abs(batch - expected).max() < 1e-5
        one = policy(states[3].astype(np.float64).tolist())
        assert one.shape == (2,) and np.abs(one - expected[3]).max() < 1e-5
        assert policy(states[:0]).shape == (0, 2)
        for wrong in (np.zeros(3), np.zeros((2, 5)), np.zeros((1, 1, 4)), 1.0):
            with pytest.raises(ValueError, match=r"states: shape .* given, expected \(4,\) or \(rows, 4\)"):
                policy(wrong)


def test_a_gymnasium_loop(run_dir: Path) -> None:
    policy, env = load_policy(run_dir), OpenPlane()
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        action = policy(observation["observation"])
        assert env.action_space.contains(action)
        observation, *_ = env.step(action)
    env.close()


def test_actions_never_leave_odd_bounds() -> None:
    low, high = [0.1, -3.0, 1e-3], [0.7, 1e4, 2e-3]
    policy = WeightedBCPolicy(2, low, high)
    with torch.no_grad():
        for weight in policy.network.parameters():
            weight.mul_(50)  # saturates tanh
    actions = deterministic(policy)(torch.randn(500, 2, generator=torch.Generator().manual_seed(0)))
    assert bool((actions >= policy.action_low).all()) and bool((actions <= policy.action_high).all())


def test_no_file_holds_a_pickle(exported: dict[str, Exported]) -> None:
    with zipfile.ZipFile(exported["torch_export"].path) as archive:
        members = {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}
    assert any(name.startswith("data/weights/") for name in members)
    for name, content in members.items():
        assert '"use_pickle": true' not in content.decode("latin1"), name
        if content:
            with pytest.raises(ValueError):
                list(pickletools.genops(content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("there.pt2", b"x", "torch.export.load unpickles"),
        ("there.pkl", b"x", "unknown kind of file, expected the folder of a run, a .ckpt or a .onnx file"),
        ("missing.onnx", None, "not there, expected the folder of a run"),
        ("broken.onnx", b"nothing of the kind", "not a readable ONNX file"),
        ("broken.ckpt", b"nothing of the kind", "cannot be read as a WeightedBCPolicy"),
    ],
)
def test_what_is_not_loaded(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        load_policy(tmp_path / name)


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "ran",)  # type: ignore[return-value]

    torch.save({"state_dict": Evil()}, tmp_path / "evil.ckpt")
    with pytest.raises(UserError, match=r"evil\.ckpt: cannot be read"):
        load_policy(tmp_path / "evil.ckpt")
    assert not (tmp_path / "ran").exists()


def test_the_command(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert cli.main(["export", str(run_dir), "--format", "torch_export", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "max difference" in shown and "1,000 states" in shown and str(out / "policy.pt2") in shown
    example = shown.split("# torch_export\n")[1]
    assert len(example.splitlines()) <= 10
    names: dict[str, torch.Tensor] = {}
    exec(example, names)  # what is printed runs as it stands
    assert names["actions"].shape == (1, 2)
    assert [path.name for path in out.iterdir()] == ["policy.pt2"]
    assert cli.main(["export", str(run_dir), "--format", "torch_export", "--out", str(out)]) == 2
    assert "this file exists" in capsys.readouterr().err


def test_what_cannot_be_exported(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    incomplete = tmp_path / "incomplete"
    shutil.copytree(run_dir, incomplete)
    (incomplete / "summary.json").unlink()
    monkeypatch.setitem(sys.modules, "onnxscript", None)  # as if it were not installed
    for arguments, message in (
        (["--format", "tf"], "--format: 'tf' given, expected one of onnx, torch_export"),
        (["--format", "onnx"], "needs the package onnxscript: pip install 'tailo_pl[export]'"),
    ):
        assert cli.main(["export", str(run_dir), "--out", str(tmp_path / "none"), *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert cli.main(["export", str(incomplete)]) == 2
    assert "expected a finished run" in capsys.readouterr().err
    assert not list(tmp_path.rglob("*policy.onnx*"))


def test_imports_are_lazy() -> None:
    """`tailo --help` must not load torch."""
    import subprocess

    code = "import sys, tailo_pl, tailo_pl.cli; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
