"""A configuration cannot make the program import what it likes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.small_runs import SMALL, finish, start
from jsonargparse import ArgumentParser

from tailo_pl.config.parsing import parse
from tailo_pl.config.trusted import import_class
from tailo_pl.data.sources.source import Source
from tailo_pl.errors import UserError
from tailo_pl.models import IQL
from tailo_pl.models.policy import PolicyModule

BRIEF = (
    *SMALL,
    "method=bc",
    "preset.policy_steps=5",
    "preset.rollout.every_n_steps=0",
    "preset.held_out.trajectories=0",
)
HOSTILE: dict[str, Any] = {"class_path": "subprocess.Popen", "init_args": {"args": ["touch", "owned"]}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trusted")
    code, out = finish(start(folder, *BRIEF))
    assert code == 0, out
    return folder


@pytest.mark.parametrize("group", ["trainer", "logger", "source", "callbacks"])
def test_a_run_from_elsewhere_cannot_run_code(finished: Path, group: str) -> None:
    config = yaml.safe_load((finished / "runs/pointmaze/examples/bc/a/config.yaml").read_text())
    flat = {"class_path": "subprocess.Popen", "args": ["touch", "owned"]}
    added: dict[str, Any] = {"trainer": {"profiler": HOSTILE}, "callbacks": {"mine": flat}}.get(group, flat)
    (finished / group).mkdir()
    (finished / group / "config.yaml").write_text(yaml.safe_dump({**config, group: {**config[group], **added}}))
    code, out = finish(start(finished, f"resume={group}"))
    assert code == 2 and out.count("\n") == 1, out
    assert "'subprocess.Popen' given, expected a class of tailo_pl, lightning" in out
    assert not (finished / "owned").exists()


def test_a_stage_config_from_elsewhere_cannot_run_code(finished: Path) -> None:
    stage = yaml.safe_load((finished / "runs/pointmaze/examples/bc/a/policy/config.yaml").read_text())
    stage["trainer"]["callbacks"] = [HOSTILE]
    (finished / "stage.yaml").write_text(yaml.safe_dump(stage))
    code, out = finish(start(finished, "--config", "stage.yaml", command="fit"))
    assert code == 2 and "Traceback" not in out
    assert "'subprocess.Popen' given, expected a class of tailo_pl, lightning" in out
    assert not (finished / "owned").exists()


def test_variables_of_the_environment_are_not_read_from_a_saved_config(finished: Path) -> None:
    config = yaml.safe_load((finished / "runs/pointmaze/examples/bc/a/config.yaml").read_text())
    (finished / "curious").mkdir()
    (finished / "curious/config.yaml").write_text(yaml.safe_dump({**config, "seed": "${oc.env:SECRET}"}))
    code, out = finish(start(finished, "resume=curious", SECRET="7"))
    assert (code, out) == (2, "tailo: seed: '${oc.env:SECRET}' given, expected int\n")


def test_the_library_is_restricted_as_the_command_is() -> None:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(Source, "source")
    with pytest.raises(UserError, match=r"'subprocess\.Popen' given, expected a class of tailo_pl, lightning"):
        parse(parser, {"source": HOSTILE})


def test_a_class_that_is_imported_is_trusted_and_of_the_kind() -> None:
    assert import_class("model", "tailo_pl.models.IQL", PolicyModule) is IQL
    for path, line in {
        "os.system": "'os.system' given, expected a class of tailo_pl, lightning (or of yours: --allow os)",
        "tailo_plus.models.IQL": "'tailo_plus.models.IQL' given, expected a class of tailo_pl, lightning",
        "tailo_pl.models.PUDiscriminator": "'tailo_pl.models.PUDiscriminator' given, expected a PolicyModule",
        "tailo_pl.models.Nothing": "'tailo_pl.models.Nothing' given, expected a PolicyModule",
        "tailo_pl.nothing.IQL": "'tailo_pl.nothing.IQL' given, which cannot be imported",
    }.items():
        with pytest.raises(UserError, match=re.escape(f"model: {line}")):
            import_class("model", path, PolicyModule)


OWN = "from tailo_pl.models import WeightedBCPolicy\n\nclass Mine(WeightedBCPolicy):\n    pass\n"


def test_a_class_of_ones_own_is_used_once_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    own = "method.stages.policy.model.class_path=mine.Mine"
    code, out = finish(start(tmp_path, *BRIEF, own))
    line = "'mine.Mine' given, expected a class of tailo_pl, lightning (or of yours: --allow mine)"
    assert (code, out) == (2, f"tailo: method.stages.policy.model: {line}\n")
    code, out = finish(start(tmp_path, "--allow", "mine", *BRIEF, own))
    assert code == 0, out
    code, out = finish(start(tmp_path, "--allow", "not a name", *BRIEF))
    assert (code, out) == (2, "tailo: allow: 'not a name' given, expected the name of a package (my_package)\n")
