"""A policy for the Hub: the folder holds all of it, is read without running anything, and goes there and back."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.hub_server import Hub, serving

from tailo_pl import cli, load_policy
from tailo_pl.errors import UserError
from tailo_pl.policies.hub import FILES, write_hub_folder

STATES = np.random.default_rng(0).normal(4, 1, (50, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hub_folder(run_dir, tmp_path_factory.mktemp("hub") / "policy")


def test_the_folder_is_the_policy(run_dir: Path, folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    np.testing.assert_array_equal(load_policy(folder)(STATES), load_policy(run_dir)(STATES))
    card, summary = (folder / "README.md").read_text(), json.loads((run_dir / "summary.json").read_text())
    assert card.startswith("---\nlibrary_name: tailo_pl\n")
    for said in ("method `tailo`", summary["data"]["fingerprint"], f"torch {summary['versions']['torch']}", "53,542"):
        assert said in card


def test_export(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(run_dir), "--format", "hub", "--out", str(tmp_path)]) == 0
    assert load_policy(tmp_path / "hub").action_dim == 2
    assert cli.main(["export", str(run_dir), "--format", "hub", "--out", str(tmp_path)]) == 2
    assert "already there" in capsys.readouterr().err


def test_there_and_back(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By huggingface_hub itself, against a server on this machine."""
    monkeypatch.setenv("TAILO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_TOKEN", "made-up")
    monkeypatch.chdir(tmp_path)
    hub = Hub()
    with serving(hub) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert cli.main(["push", str(run_dir), "me/arm", "--private"]) == 0, capsys.readouterr().err
        assert hub.created[0]["name"] == "arm" and "private" in str(hub.created[0])
        files = {line["value"]["path"]: base64.b64decode(line["value"]["content"])
                 for line in hub.commits[0] if line["key"] == "file"}  # fmt: skip
        assert sorted(files) == sorted(FILES)
        hub.repositories["me/arm"] = files
        np.testing.assert_array_equal(load_policy("me/arm")(STATES), load_policy(run_dir)(STATES))
        with pytest.raises(UserError, match="me/other: neither a folder here nor to be had from the Hub"):
            load_policy("me/other")
    assert cli.main(["push", str(run_dir), "no-slash"]) == 2
    assert "push: 'no-slash' given, expected a repository such as org/name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 0}, "expected library tailo_pl and schema"),
        ({"module": "os.system"}, "module: 'os.system' found, expected class_path"),
        ({"module": {"class_path": "os.system", "init_args": {}}}, "os"),
        ({"module": {"class_path": "tailo_pl.models.PUDiscriminator", "init_args": {}}}, "module"),
    ],
)
def test_descriptions_that_ask_for_more(folder: Path, tmp_path: Path, changes: dict, said: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(UserError) as caught:
        load_policy(copy)
    assert str(caught.value).startswith(str(copy)) and said in str(caught.value)


def test_damage_and_links(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    content = (copy / "model.safetensors").read_bytes()
    for harmed in (content[:100], b"", content[:-10], b"\xff" * 8 + content[8:]):
        (copy / "model.safetensors").write_bytes(harmed)
        with pytest.raises(UserError, match="cannot be read as the policy's weights"):
            load_policy(copy)
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(UserError, match="is a link or behind one"):
        load_policy(copy)
