"""What README and documentation tell people to type: every line is run at test size, or what it needs that a test has
not is said beside it and the rest of it is checked: commands and options exist, configurations compose."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import partial
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import click
import numpy as np
import pytest
from helpers.runs import SMALL, small_run

import tailo_pl
from tailo_pl import TAILO, load_policy
from tailo_pl.cli import app, main
from tailo_pl.config.compose import composed_config
from tailo_pl.data.formats import write_file
from tailo_pl.data.trajectories import Trajectories

ROOT = Path(__file__).parents[1]
MADE = ("configuration.md", "paper.md", "results.md")  # by `make docs`, from the project itself
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = ("tailo", "make", "pip", "uv", "python", "sbatch", "git", "source")
# What a line needs that a test has not. A training that needs it is composed, another command's options are looked at.
NEEDS = {
    "hydra/launcher=": "another launcher, or a cluster",
    "conf ": "the reader's own folder of configurations; tests/test_extending.py runs it",
    "--allow ": "the reader's own package; tests/test_extending.py runs it",
    "resume=": "a run of the reader's own; tests/runs/test_resume.py does it",
    "--cfg": "nothing: Hydra shows what is composed",
    "hoper": "nothing: the page shows what is said of it",
    "source=d4rl": "D4RL's files",
    "source=minari": "Minari's files",
    "source.parts.": "a file of the reader's own",
    "source=lerobot": "a robot's recordings; tests/commands/test_robot_data.py has some",
    "source=robomimic": "a robot's recordings; tests/commands/test_robot_data.py has some",
    "source=zarr": "a robot's recordings; tests/commands/test_robot_data.py has some",
    "arm/": "a robot's recordings; tests/test_hand_guided_arm.py makes them",
    "path/": "a robot's recordings; tests/commands/test_robot_data.py has some",
    "--feature": "a robot's recordings; tests/commands/test_robot_data.py has some",
    "walk.csv": "columns of the reader's own; tests/commands/test_own_data.py has some",
    "env.id=": "data of another environment; tests/commands/test_gym.py has some",
    "trainer=ddp": "two processes; tests/training/test_ddp.py has them",
    "env=hopper": "data that takes minutes to make",
    "env=antmaze": "data that takes minutes to make",
    "env=kitchen": "data that takes minutes to make",
    "tailo compare": "many trainings; tests/commands/test_compare.py does it",
    "tailo reproduce": "many trainings; tests/paper/test_reproduce.py does it",
    "tailo advise": "several runs, or many trainings; tests/runs/test_trials.py does it",
    "--hours": "an hour",
    "--source d4rl": "D4RL's files, and days",
    "tailo push": "the Hub; tests/policies/test_hub.py has one",
    "--format hub": "a package beside; tests/policies/test_hub.py does it",
    "--video": "a film of the reader's own; tests/report/test_report.py has one",
    "method.pu=two_step": "nothing: it is one of many methods, and each is trained elsewhere",
    "git clone": "the network",
    "source .venv": "the environment that `make` sets up",
    "tensorboard": "a package beside",
}


def lines_of(path: Path) -> list[str]:
    """The commands of a page: whole lines of indented and fenced blocks that begin with one of the programs."""
    text = re.sub(r"<!-- output:begin -->.*?<!-- output:end -->", "", path.read_text(), flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    found = re.findall(rf"^(?: {{4}})?\$? ?((?:{'|'.join(PROGRAMS)}) \S.*)$", "\n".join(_blocks(text)), re.MULTILINE)
    return [re.sub(r"\s+#.*$", "", line).strip() for line in found]


def _blocks(text: str, language: str = r"\w*") -> list[str]:
    fenced = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return re.findall(r"(?:^ {4}.*\n)+", text, re.MULTILINE) + fenced


COMMANDS = sorted({(path.name, line) for path in PAGES if path.name not in MADE for line in lines_of(path)})


def reason(line: str) -> str | None:
    """What a line needs that a test has not."""
    return next((why for mark, why in NEEDS.items() if mark in line), None)


def of(*programs: str) -> list[tuple[str, str]]:
    return [pair for pair in COMMANDS if pair[1].startswith(programs)]


def here(line: str) -> str:
    """A line with the test's own run in place of the reader's."""
    line = re.sub(r"\bRUN\b|runs/(?:\w+/\w+/\w+/(?:NAME|mine)|\.\.\.|\w+/\w+/\w+/\*)", RUN, line)
    return re.sub(r" name=\w+", "", line)


RUN = "runs/pointmaze/examples/tailo/small"
RUN_HERE = {here(line): page for page, line in of("tailo ") if reason(line) is None and page != "tutorial.md"}


def test_there_are_commands_and_every_mark_marks_one() -> None:
    assert len(COMMANDS) > 80 and len(RUN_HERE) > 15
    assert [mark for mark in NEEDS if not any(mark in line for _, line in COMMANDS)] == []


def test_every_line_of_a_shell_block_is_a_command() -> None:
    for path in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", path.read_text().replace("\\\n", " "), re.DOTALL):
            for line in block.splitlines():
                first = line.removeprefix("$ ").split(" ")[0]
                assert first in (*PROGRAMS, "", "#") or line.startswith("tailo:"), f"{path.name}: {line}"


@pytest.mark.parametrize(("page", "line"), [pair for pair in of("tailo ") if pair[1].split()[1] != "train"])
def test_command_and_options_exist(page: str, line: str) -> None:
    _, *words = shlex.split(line)
    words = [word for word in words if word not in ("…",)]
    command: click.Command = app
    while isinstance(command, click.Group) and words:
        name = words.pop(0)
        assert name in command.commands, f"{page}: {line}"
        command = command.commands[name]
    known = {option for parameter in command.params for option in parameter.opts}
    if command.name in ("fit", "validate"):  # Lightning CLI's options stand behind them
        known |= {word.split("=")[0] for word in words if word.startswith(("--trainer.", "--model.", "--data."))}
        known |= {"--config", "--ckpt_path", "--print_config", "--options"}
    for word in words:
        if word.startswith("--"):
            assert word.split("=")[0] in known, f"{page}: {line}"


@pytest.mark.parametrize(("page", "line"), of("tailo train"))
def test_what_is_to_be_trained_composes(page: str, line: str) -> None:
    alone = ("hydra/launcher=", "conf ", "resume=", "--cfg", "hoper")  # nothing there to compose with
    if any(mark in line for mark in alone):
        pytest.skip(reason(line) or "")
    assert _composed(line)["method"]["stages"]


def _composed(line: str) -> dict[str, dict[str, object]]:
    _, _, *words = shlex.split(line)
    overrides = [word for word in words if not word.startswith("-")]
    if "-m" in words:  # its first job
        overrides = [word if word.split("=")[1][:1] == "[" else word.split(",")[0] for word in overrides]
    return composed_config(overrides)


@pytest.mark.parametrize(("page", "line"), of("make "))
def test_what_make_is_told_it_would_do(page: str, line: str) -> None:
    """Not more: set-up alone takes minutes. What it trains composes."""
    command = [
        *shlex.split(line),
        "--dry-run",
        "--no-print-directory",
    ]  # which it would print where make runs the tests
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{page}: {line}\n{done.stderr}"
    last = done.stdout.strip().splitlines()[-1]
    if "RESUME" not in line and line.split()[1] == "train":
        assert last.startswith(".venv/bin/tailo train ")
        assert _composed(last)["method"]["stages"]


@pytest.mark.parametrize(("page", "line"), of("pip ", "uv "))
def test_what_is_to_be_installed_is_there(page: str, line: str) -> None:
    """Not more: torch alone is larger than all else."""
    words = shlex.split(line)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in re.findall(r"tailo_pl\[(\w+)\]", line):
        assert extra in extras, f"{page}: {line}"
    if "--constraint" in words:
        lock = (ROOT / words[words.index("--constraint") + 1]).read_text().splitlines()
        # Read by pip and uv alike: names and exact versions, no options of either.
        assert lock and all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", one) for one in lock)


@pytest.mark.parametrize(("page", "line"), of("python ", "sbatch "))
def test_files_that_are_to_be_run_are_there(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    if words[0] == "-m":
        assert find_spec(words[1]) is not None, f"{page}: {line}"
        return
    names = [word for word in words if "/" in word]
    assert names and all((ROOT / name).exists() for name in names), f"{page}: {line}"
    for name in names:
        if name.endswith(".sbatch"):
            subprocess.run(["bash", "-n", str(ROOT / name)], check=True)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, pointmaze_data: Trajectories) -> Iterator[Path]:
    """A folder with the files that the pages speak of, and a run."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "logs").mkdir()
    some = pointmaze_data.take(range(0, len(pointmaze_data), 24))
    expert = pointmaze_data.take(range(3))
    for name in ("logs.npz", "logs.csv", "logs.pt", "new_logs.csv", "logs/one.parquet"):
        write_file(folder / name, some)
    for name in ("expert.csv", "expert.npz"):
        write_file(folder / name, expert)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        small_run(Path("runs"), "env=pointmaze")
        yield folder


def type_in(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a line in the folder one is in, at test size."""
    _, command, *words = shlex.split(line)
    words = [one for word in words for one in (sorted(glob(word)) if "*" in word and "=" not in word else [word])]
    if command == "train":
        words += [one for one in SMALL if not one.startswith("preset.rollout.ep") or "env=" in line]
    if command == "fit":
        words += ["--trainer.max_steps=5"]
    if command == "play":
        words += ["--width=64", "--height=48"]
    if command in ("evaluate", "play"):
        words += ["--episodes=2"]
    status = main([command, *words])
    said = capsys.readouterr().err
    if command in ("play", "export") and status == 2 and "renderer" in said:
        return  # a machine that cannot draw
    assert status == 0 or (status == 3 and "--strict" in words), f"{line}\n{said}"


@pytest.mark.slow
@pytest.mark.parametrize("line", RUN_HERE)
def test_it_runs(line: str, workshop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for made in ("scores.csv", "logs.parquet", "play.mp4", f"{RUN}/export/policy.onnx"):  # by a line before
        (workshop / made).unlink(missing_ok=True)
    type_in(line, capsys)


# Blocks of Python but those that others run: the tutorial's below, and those of extending.md in its own test.
PYTHON = [
    (path.name, block)
    for path in PAGES
    if path.name not in (*MADE, "tutorial.md", "extending.md")
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    + [
        dedent(one)
        for one in re.findall(r"(?:^ {4}.*\n)+", path.read_text(), re.MULTILINE)
        if "    from tailo_pl" in one
    ]
]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[page for page, _ in PYTHON])
def test_python_runs(page: str, block: str, workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With data in place of the reader's, and few steps."""
    few = {"pretrain_steps": 3, "formal_steps": 3, "policy_steps": 3, "overrides": ["trainer=cpu"]}
    monkeypatch.setattr(tailo_pl, "TAILO", partial(TAILO, **few))
    rng = np.random.default_rng(0)
    states = rng.normal(size=(20, 4))  # as many numbers as in those of the run in the workshop
    logs = [(rng.normal(size=(20, 4)), rng.uniform(-1, 1, (20, 2))) for _ in range(8)]
    names = {"ts": states, "ta": logs, "states": states, "observation": states[0], "load_policy": load_policy}
    exec(here(block), names)
    made = {name: value for name, value in names.items() if name in ("model", "action", "actions", "policy")}
    assert made, "nothing was made"
    for value in made.values():
        assert not isinstance(value, np.ndarray) or np.isfinite(value).all()


def test_python_is_found_on_the_pages_that_show_some() -> None:
    assert {page for page, _ in PYTHON} == {"README.md", "heads.md", "index.md", "policy.md"}


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL):
        if language == "python":
            exec(block, {})
            continue
        for line in block.strip().splitlines():
            type_in(line, capsys)
    assert (tmp_path / "report.html").exists() and (tmp_path / "fits").is_dir()
