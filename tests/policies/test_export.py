"""A policy that leaves the project: the same actions from every file, and nothing in a file is run or unpickled."""

from __future__ import annotations

import pickletools
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tailo_pl import cli, load_policy
from tailo_pl.envs.pointmaze import OpenPlane
from tailo_pl.errors import UserError
from tailo_pl.models import WeightedBCPolicy
from tailo_pl.models.heads import ClippedGaussian, Gaussian, Head, Mixture, Regression, TanhMeanGaussian
from tailo_pl.policies.export import CHECKED_STATES, FORMATS, Exported, export, representative_states
from tailo_pl.runs.trained import load_run_policy


@pytest.fixture(scope="module")
def exported(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
    """The run in all formats."""
    return {one.format: one for one in export(run_dir, out=tmp_path_factory.mktemp("out"))}


def test_every_format_acts_like_the_policy(exported: dict[str, Exported]) -> None:
    assert sorted(exported) == ["onnx", "torch_export"]
    for one in exported.values():
        assert one.path.exists() and one.difference < 1e-5


def test_states_of_the_check_are_spread_as_the_data(run_dir: Path) -> None:
    policy = load_run_policy(run_dir)
    states = representative_states(policy)
    assert states.shape == (CHECKED_STATES, 4) and CHECKED_STATES == 1000
    # Standard error of a mean of 1,000 normal numbers: 0.03 deviations.
    standardised = (states - policy.standardise.mean.numpy()) / policy.standardise.std.numpy()
    assert np.abs(standardised.mean(0)).max() < 0.2 and np.abs(standardised.std(0) - 1).max() < 0.2


def test_run_checkpoint_and_onnx_load_as_the_same_policy(run_dir: Path, exported: dict[str, Exported]) -> None:
    module = load_run_policy(run_dir)
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
        for weight in policy.actor.parameters():
            weight.mul_(50)  # saturates tanh
    actions = policy.deterministic()(torch.randn(500, 2, generator=torch.Generator().manual_seed(0)))
    assert bool((actions >= policy.bounds.low).all()) and bool((actions <= policy.bounds.high).all())


@pytest.mark.parametrize(
    ("head", "network"),
    [
        (Gaussian(), {}),
        (Gaussian("censored"), {}),
        (ClippedGaussian(0.5), {}),
        (TanhMeanGaussian(), {}),
        (Regression(), {}),
        (Regression("huber"), {"norm": "layer"}),
        (Mixture(Regression()), {}),
        (Mixture(Gaussian(), components=2), {"members": 2}),
        (Gaussian("censored"), {"members": 3}),
        (Regression(), {"members": 3, "norm": "layer"}),
    ],
)
def test_every_head_leaves_as_it_acts(head: Head, network: dict[str, Any], tmp_path: Path) -> None:
    policy = WeightedBCPolicy(3, [-2.0, 0.0], [1.0, 5.0], head=head, hidden=(8,), averaging=0.9, **network).eval()
    policy.standardise.set(torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.5, 1.0]))
    states = representative_states(policy)
    with torch.inference_mode():
        expected = policy(torch.from_numpy(states)).numpy()
    for name, format in FORMATS.items():
        found = format.write(policy.deterministic(), states, tmp_path / name)
        assert np.abs(found - expected).max() < 1e-5


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
        ("broken.ckpt", b"nothing of the kind", "cannot be read as a PolicyModule"),
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


def test_weights_that_are_not_finite_are_refused(run_dir: Path, exported: dict[str, Exported], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run_dir, tmp_path / "run"))
    path = copy / "policy/checkpoints/last.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    name = next(name for name in checkpoint["state_dict"] if name.endswith("weight"))
    checkpoint["state_dict"][name][0, 0] = float("nan")
    torch.save(checkpoint, path)
    for given in (copy, path):
        with pytest.raises(UserError) as caught:
            load_policy(given)
        assert str(caught.value) == f"{path}: {name}: a number that is not finite found, expected finite weights"
    import onnx

    model = onnx.load(exported["onnx"].path)
    for weights in model.graph.initializer:
        if len(weights.dims) in (2, 3):  # several networks side by side have one dimension more
            weights.raw_data = np.full(tuple(weights.dims), np.nan, dtype=np.float32).tobytes()
    onnx.save(model, tmp_path / "bad.onnx")
    with pytest.raises(UserError, match=r"bad\.onnx: an action that is not finite"):
        load_policy(tmp_path / "bad.onnx")


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
