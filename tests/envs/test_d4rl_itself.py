"""d4rl 1.1 itself is the judge of what is said of it: names, addresses and reference scores, out of its own wheel.

The package does not install on current Python. `make test` brings its wheel, of which one file is read.
"""

from __future__ import annotations

import ast
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tailo_pl.data.sources.d4rl_datasets import DATASETS
from tailo_pl.envs.reference_scores import REFERENCES

WHEEL = Path(sys.prefix) / "d4rl-1.1-py3-none-any.whl"
# Tables, loops over lists of names, and texts put together: what the file is made of, and all that is evaluated.
HARMLESS = (
    ast.Module, ast.Expr, ast.Assign, ast.For, ast.Dict, ast.List, ast.Constant, ast.Name, ast.Subscript, ast.BinOp,
    ast.UnaryOp, ast.Add, ast.Mod, ast.USub, ast.Call, ast.Attribute, ast.Load, ast.Store,
)  # fmt: skip


@pytest.fixture(scope="module")
def infos() -> dict[str, Any]:
    """The tables of d4rl/infos.py."""
    if not WHEEL.exists():
        said = f"{WHEEL}: not there, expected d4rl's wheel (`make test` downloads it)"
        if os.environ.get("REQUIRE_D4RL"):
            pytest.fail(said)
        pytest.skip(said)
    tree = ast.parse(zipfile.ZipFile(WHEEL).read("d4rl/infos.py"))
    for node in ast.walk(tree):
        assert isinstance(node, HARMLESS), ast.dump(node)
        assert not isinstance(node, ast.Attribute) or node.attr == "replace"
    tables: dict[str, Any] = {"__builtins__": {}}
    exec(compile(tree, "infos.py", "exec"), tables)
    return tables


def test_every_data_set_has_d4rls_name_and_address(infos: dict[str, Any]) -> None:
    assert {name: dataset.url for name, dataset in DATASETS.items()} == infos["DATASET_URLS"]


def test_every_reference_score_is_d4rls(infos: dict[str, Any]) -> None:
    assert {name: returns.low for name, returns in REFERENCES.items()} == infos["REF_MIN_SCORE"]
    assert {name: returns.high for name, returns in REFERENCES.items()} == infos["REF_MAX_SCORE"]
