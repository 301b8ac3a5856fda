"""The command as a user types it: exit codes, one-line errors, and `tailo fit` repeating a stage bit for bit."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
import yaml
from helpers.runs import SMALL

import tailo_pl
from tailo_pl import load_policy
from tailo_pl.cli import main


def tailo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tailo_pl.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small finished run, `runs/pointmaze/examples/tailo/a`."""
    folder = tmp_path_factory.mktemp("cli")
    done = tailo(folder, "train", "env=pointmaze", "name=a", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "policy runs/pointmaze/examples/tailo/a/policy/checkpoints/last.ckpt" in done.stdout
    assert "TA 53," in done.stderr and "bundled" in done.stderr
    return folder


RUN = Path("runs/pointmaze/examples/tailo/a")


@pytest.mark.parametrize("stage", ["formal", "policy"])
def test_fit_on_a_saved_stage_config_ends_with_the_same_weights(finished: Path, stage: str) -> None:
    done = tailo(finished, "fit", "--config", str(RUN / stage / "config.yaml"))
    assert done.returncode == 0, done.stderr
    ours = torch.load(finished / RUN / stage / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    folder = max((finished / "fits").glob(f"a-{stage}*"), key=lambda path: path.stat().st_mtime) / stage
    theirs = torch.load(folder / "checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_fit_takes_lightning_cli_overrides(finished: Path) -> None:
    config = str(RUN / "policy" / "config.yaml")
    done = tailo(
        finished, "fit", "--config", config, "--trainer.max_steps=7", "--model.learning_rate=3e-4",
        "--trainer.logger.name=other", "--trainer.logger.save_dir=elsewhere",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checkpoint elsewhere/other/checkpoints/last.ckpt\n"
    checkpoint = torch.load(finished / "elsewhere/other/checkpoints/last.ckpt", weights_only=True)
    assert checkpoint["global_step"] == 7
    assert checkpoint["tailo_module"]["init_args"]["learning_rate"] == 3e-4


def test_evaluate_prints_a_score(finished: Path) -> None:
    done = tailo(finished, "evaluate", str(RUN), "--episodes", "2")
    assert done.returncode == 0, done.stderr
    assert "2 episodes" in done.stdout and "±" in done.stdout


def test_sweep_runs_every_job_and_names_what_failed(finished: Path) -> None:
    done = tailo(finished, "train", "-m", "method=bc", "name=sweep", "seed=0,-1", *SMALL)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("tailo: job 1 (method=bc,") and "seed: -1 given" in last
    summary = json.loads((finished / "runs/pointmaze/examples/bc/sweep/summary.json").read_text())
    assert summary["seed"] == 0


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder in which nobody can make files, not even root")
def test_a_sweep_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    done = tailo(Path("/proc"), "train", "-m", "seed=-1,-2")
    assert done.returncode == 2
    assert done.stderr.startswith("tailo: /proc/runs: cannot be written (") and done.stderr.count("\n") == 1
    done = tailo(Path("/proc"), "train", "-m", "seed=-1,-2", f"runs={tmp_path}/runs")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert [line.split(" (")[0] for line in lines] == ["tailo: job 0", "tailo: job 1"]
    assert not list(tmp_path.iterdir())


def test_metrics_hold_losses_and_scores(finished: Path) -> None:
    with (finished / RUN / "policy" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert any(row["rollout/score"] for row in rows) and any(row["rollout/success"] for row in rows)


WRONG = {
    ("train", "env=pointmase"): "env: 'pointmase' given, expected one of",
    ("train", "setting=nope"): "setting: 'nope' given, expected one of examples",
    ("train", "nonsense=1"): "nonsense: unknown key",
    ("train", "policy_steps=1e4"): "policy_steps: unknown key (did you mean preset.policy_steps?)",
    ("train", "envs=hopper"): "envs: unknown key (did you mean env?)",
    ("train", "hopper"): "train: 'hopper' given, expected key=value (did you mean env=hopper?)",
    ("train", "standrd"): "(did you mean setting=standard?)",
    ("train", "head=null"): "head: 'null' given, expected one of censored, gaussian",
    ("train", "setting=null"): "setting: 'null' given, expected one of examples",
    ("train", "env=hopper,ant"): "(-m runs each of them)",
    ("train", "seed=1,2"): "seed: '1,2' given, expected one value (-m runs each of them",
    ("train", "method.alhpa=1"): "method.alhpa: unknown key (did you mean method.alpha?)",
    ("train", "method.beta1=1"): "method.beta1: unknown key (did you mean method.beta_1?)",
    ("train", "method.alpha=-1"): "method.alpha: -1 given, expected a number in [0, inf)",
    ("train", "method.gamma=1"): "method.gamma: 1 given, expected a number in [0, 1)",
    ("train", "method.gamma=high"): "method.gamma: 'high' given, expected a number",
    ("train", "method.beta_1=0"): "method.beta_1: 0 given, expected a number in (0, 1)",
    ("train", "method.eta_p=1"): "method.eta_p: 1 given, expected a number in (0, 1)",
    ("train", "preset.policy_steps=many"): "preset.policy_steps: 'many' given, expected a number",
    ("train", "preset.policy_batch=0"): "preset.policy_batch: 0 given, expected a number in [1, inf)",
    ("train", "compile=1"): "compile: 1 given, expected true or false",
    ("train", "source=files", "source.ts=données (1).csv", "source.ta=x.csv"): "données (1).csv: cannot be read",
    ("train", "trainer.precision=31"): "trainer.precision: expected",
    ("train", "+trainer.presicion=32"): "does not accept option 'presicion'",
    ("train", "+setting.every=3"): "option 'every' is not accepted",
    ("train", "name=../escape"): "name: '../escape' given, expected a plain folder name",
    ("train", "hydra.run.dir=x/y", "method.gamma=1"): "gamma: 1 given, expected a number in [0, 1)",
    ("train", "hydra.output_subdir=x", "env=hoper"): "env: 'hoper' given, expected one of",
    ("prepare", "hydra.run.dir=x", "seed=-1"): "seed: -1 given",
    ("train", "experiment=standrd"): "(did you mean standard?)",
    ("train", "--fast"): "train: unknown flag '--fast'",
    ("train", "--multrun"): "(did you mean --multirun?)",
    ("train", "-m", "seed=-1,-2"): "job 1 (seed=-2): seed: -2 given",
    ("train", "-m", "env=hoper,ant"): "env: 'hoper' given, expected one of",
    ("train", "-m", "method.beta1=1,2"): "method.beta1: unknown key (did you mean method.beta_1?)",
    ("train", "runs=null"): "runs: None given, expected str",
    ("train", "trainer.devices=auto"): "trainer.devices: 'auto' given, expected a number",
    ("fly",): "command: 'fly' given, expected one of train",
    ("tabel",): "completion (did you mean table?)",
    ("data", "lst"): "data: 'lst' given, expected one of list, inspect, make, convert (did you mean list?)",
    ("data",): "data: missing command",
    ("data", "list", "nowhere"): "data list: invalid value",
    ("evaluate",): "evaluate: missing argument 'RUN'",
    ("evaluate", "a", "b"): "evaluate: got unexpected extra argument (b)",
    ("evaluate", "a", "--episodes", "many"): "evaluate: invalid value for '--episodes': 'many' is not a valid integer",
    ("evaluate", "a", "--epsodes", "1"): "evaluate: no such option '--epsodes'. Did you mean '--episodes'?",
    ("score", "logs.csv"): "score: missing option '--run'",
    ("table", "--format", "xml", "a"): "table: invalid value for '--format': 'xml' is not one of 'rich', 'csv'",
    ("--fast",): "tailo: no such option '--fast'",
    ("prepare", "-m", "seed=1,2"): "prepare: no such option '-m'",
    ("evaluate", "nowhere"): "nowhere/config.yaml: cannot be read",
    ("fit", "--config", "nowhere.yaml"): "nowhere.yaml",
    ("fit", "--trainer.max_steps=1"): "config: not given, expected --config RUN/STAGE/config.yaml",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_mistake_is_one_line_with_exit_code_2_and_leaves_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = tailo(tmp_path, *arguments)
    assert done.returncode == 2
    *before, last = done.stderr.splitlines()
    assert WRONG[arguments] in last and last.startswith("tailo: ")
    assert before == [] or ("-m" in arguments and before[0].startswith("tailo: job 0") and len(before) == 1)
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_exists_is_one_line(finished: Path) -> None:
    done = tailo(finished, "train", "name=a", *SMALL)
    assert done.returncode == 2
    assert done.stderr == f"tailo: {RUN}: this run exists; choose another name=..., or delete it\n"


def test_only_the_command_line_imports_commands() -> None:
    package = Path(tailo_pl.__file__).parent
    files = {path.relative_to(package) for path in package.rglob("*.py") if "tailo_pl.commands" in path.read_text()}
    assert {path for path in files if path.parts[0] != "commands"} == {Path("cli.py")}


def test_version(tmp_path: Path) -> None:
    done = tailo(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"tailo {version('tailo_pl')}\n")


def test_hydra_and_lightning_answer_for_themselves(tmp_path: Path) -> None:
    overrides = ("preset=paper", "preset.policy_steps=2e4", "name=ü")
    shown = tailo(tmp_path, "train", "--cfg", "job", "-p", "preset", *overrides)
    assert shown.returncode == 0 and shown.stdout.startswith("# @package preset\n")
    assert "policy_steps: 20000\n" in shown.stdout  # as the run would have it
    assert "--trainer.max_steps" in tailo(tmp_path, "fit", "--options").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("data", "--allow", "not-a-name", "list"),
        ("data", "list", "--allow=not-a-name", "bundled"),
        ("train", "env=hopper", "--allow", "not-a-name", "seed=1"),
        ("fit", "--config", "x.yaml", "--allow", "not-a-name"),
        ("evaluate", "--allow", "not-a-name", "x"),
        ("run", "x", "--allow", "not-a-name"),
    ],
    ids=" ".join,
)
def test_allow_may_stand_anywhere_behind_the_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = tailo(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stderr == "tailo: allow: 'not-a-name' given, expected the name of a package (my_package)\n"


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so_and_counts_as_unfinished(tmp_path: Path, signum: int) -> None:
    arguments = ["train", "method=bc", "name=long", "preset.policy_steps=1000000", "trainer=cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tailo_pl.cli", *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A process started in the background inherits that SIGINT is ignored; a user's terminal does not do that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    stage = tmp_path / "runs/pointmaze/examples/bc/long/policy"
    try:
        for _ in range(600):
            if (stage / "metrics.csv").exists():
                break
            time.sleep(0.2)
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1].startswith("tailo: interrupted")
    assert not (stage / "stage.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["data", "list"],
        ["data", "inspect", "logs.csv"],
        ["table", "runs"],
        ["train", "--help"],
        ["fit", "--help"],
        ["train", "method.beta1=1"],
        ["train", "method.alpha=-1"],
        ["train", "setting.count=0"],
        ["train", "env=kitchen", "env.data.experts=0"],
        ["train", "source=files", "source.ts=nowhere.csv", "source.ta=nowhere.csv"],
    ],
    ids=" ".join,
)
def test_answers_without_training_import_neither_torch_nor_a_simulator(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "logs.csv").write_text("obs_0,act_0,episode\n1,2,0\n2,3,0\n")
    (tmp_path / "runs").mkdir()
    code = f"import sys; from tailo_pl.cli import main; main({arguments!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not {"torch", "lightning", "matplotlib", "mujoco", "gymnasium"} & set(done.stdout.splitlines()[-1].split())


def test_what_was_fitted_is_a_run(finished: Path) -> None:
    """With the user's options in its configuration; commands read it, and a stage before the last one can be gone on
    with."""
    done = tailo(
        finished, "fit", "--config", str(RUN / "policy/config.yaml"), "--trainer.max_steps=9",
        "--trainer.callbacks+=tailo_pl.callbacks.HeldOutChoice", "--trainer.callbacks.patience=7",
        "--ckpt_path", str(RUN / "policy/checkpoints/last.ckpt"), "--trainer.max_steps=25",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "stage policy of " in done.stderr and done.stdout.splitlines()[-1].startswith("run fits/a-policy")
    folder = finished / done.stdout.splitlines()[-1].removeprefix("run ")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert config["method"]["stages"]["policy"]["max_steps"] == 25
    assert config["callbacks"]["held_out"]["patience"] == 7 and config["callbacks"]["settled"] is not None
    summary = json.loads((folder / "summary.json").read_text())
    assert [stage["steps"] for stage in summary["stages"]] == [20, 20, 25]
    assert load_policy(folder).observation_dim == 4
    shown = tailo(finished, "table", str(folder), "--json")
    assert json.loads(shown.stdout)[0]["method"] == "tailo"
    held_out = tailo(finished, "validate", "--config", str(folder / "policy/config.yaml"))
    assert held_out.returncode == 0, held_out.stderr
    error = next(line.split()[1] for line in held_out.stdout.splitlines() if line.startswith("error"))
    assert 0 < float(error) < 4  # of actions in [-1, 1]


def test_a_fitted_stage_before_the_last_is_gone_on_with(finished: Path) -> None:
    done = tailo(finished, "fit", "--config", str(RUN / "formal/config.yaml"), "--trainer.max_steps=12")
    assert done.returncode == 0, done.stderr
    told = re.search(r"`tailo train resume=(fits/a-formal\S*)` trains", done.stdout)
    assert told is not None, done.stdout
    folder = finished / told[1]
    resumed = tailo(finished, "train", f"resume={folder}")
    assert resumed.returncode == 0, resumed.stderr
    summary = json.loads((folder / "summary.json").read_text())
    assert [stage["steps"] for stage in summary["stages"]] == [20, 12, 20]


def test_fit_says_before_training_that_nothing_can_be_written(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fits").write_text("a file, where fit would make a folder")
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "--config", str(finished / RUN / "policy/config.yaml")]) == 2
    assert "tailo: fits/a-policy/policy: cannot be written (Not a directory)\n" in capsys.readouterr().err


def test_a_run_s_configuration_is_no_stage_s(finished: Path) -> None:
    done = tailo(finished, "fit", "--config", str(RUN / "config.yaml"))
    assert done.returncode == 2 and "the configuration of a whole run found" in done.stderr
    assert str(RUN / "policy/config.yaml") in done.stderr and done.stderr.count("\n") == 1
