"""A run folder from anyone: whatever its names, links and options say, nothing outside of it is touched."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.runs import SMALL
from lightning import Callback, Trainer

from tailo_pl.cli import main
from tailo_pl.config import places
from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import read_experiment
from tailo_pl.errors import UserError
from tailo_pl.files import whole_file, write_text
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare, run_folder
from tailo_pl.runs.resume import resume
from tailo_pl.runs.summary import read_summary

WHERE = Path("pointmaze/examples/tailo/small")
STAGES = ("pretrain", "formal", "policy")
ABSOLUTE = "<the victim's folder>"


def content(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder: names, and what the files hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder that is none of the run's business; it must stay as it is, byte for byte."""
    folder = tmp_path / "victim"
    (folder / "below").mkdir(parents=True)
    (folder / "precious.npy").write_bytes(b"precious\n")
    (folder / "below/thesis.txt").write_text("chapter one")
    before = content(folder)
    yield folder
    assert content(folder) == before


@pytest.fixture
def foreign(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run from elsewhere with a stage that is not recorded as finished, in a working directory beside the victim's.

    There is no index: nothing can be reused.
    """
    folder = tmp_path / "work/runs" / WHERE
    shutil.copytree(run_dir, folder)
    (folder / "summary.json").unlink()
    (folder / "formal/stage.json").unlink()
    monkeypatch.chdir(tmp_path / "work")
    return folder


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The command sets up logging and signals for a process of its own: put them back."""
    ours = logging.getLogger("tailo_pl")
    before, handler = (ours.level, ours.propagate, ours.handlers), signal.getsignal(signal.SIGTERM)
    yield
    ours.level, ours.propagate, ours.handlers = before
    signal.signal(signal.SIGTERM, handler)


def edited(folder: Path, change: Any) -> None:
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    change(config)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command is refused."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    out = capsys.readouterr().err
    lines = [
        line for line in out.splitlines() if line.startswith("tailo: ")
    ]  # without what a run shows of its progress
    assert len(lines) == 1 and out.endswith(f"{lines[0]}\n") and "Traceback" not in out, out
    return lines[0]


def test_the_folder_itself_can_be_gone_on_with(foreign: Path, victim: Path) -> None:
    """What the tests below spoil is sound to begin with."""
    assert main(["train", f"resume={foreign}"]) == 0
    assert read_summary(foreign)["stages"][-1]["stage"] == "policy"


BAD_NAMES = [
    ABSOLUTE, "../../../../../../victim", "..", ".", "", "a/b", "a\\b", ".hidden", "a\nb", "a\0b",
    7, None, True, ("a", 1),
]  # fmt: skip


@pytest.mark.parametrize("name", [*BAD_NAMES, "config.yaml", "Summary.json", "data.json", "checkpoints", "export"])
def test_names_of_stages(foreign: Path, victim: Path, capsys: pytest.CaptureFixture[str], name: Any) -> None:
    name = str(victim) if name == ABSOLUTE else name

    def rename(config: dict[str, Any]) -> None:
        stages = config["method"]["stages"]
        stages[name] = stages.pop("policy")

    config = yaml.safe_load((foreign / "config.yaml").read_text())
    rename(config)
    with pytest.raises(UserError, match=r"^method\.stages: "):
        read_experiment(config)
    if not isinstance(name, tuple):  # which a YAML file that is read safely cannot hold
        edited(foreign, rename)
        line = refused(capsys, "train", f"resume={foreign}")
        # A number is no key of a configuration in the first place.
        expected = f"config.yaml: key {name!r} found, expected text" if name in (7, True) else "tailo: method.stages: "
        assert expected in line


@pytest.mark.parametrize("field", ["env.name", "source.name", "setting.name", "method.name", "preset.name", "name"])
@pytest.mark.parametrize("name", [name for name in BAD_NAMES if name not in (None, 7, True)])
def test_other_names(run_dir: Path, victim: Path, field: str, name: Any) -> None:
    config = yaml.safe_load((run_dir / "config.yaml").read_text())
    group, _, key = field.rpartition(".")
    (config[group] if group else config)[key] = str(victim) if name == ABSOLUTE else name
    if (field, name) == ("env.name", "a/b"):  # an id of gymnasium's: the folder is a-b
        assert read_experiment(config).names["env"] == "a-b"
        return
    with pytest.raises(UserError, match=f"^{field}: "):
        read_experiment(config)


@pytest.mark.parametrize(
    "name", ["20261116-134536-seed0", "incomplete_ta", "v1.2", "größe", "method=bc,seed=1", 12, None]
)
def test_names_of_runs_that_are_fine(run_dir: Path, name: Any) -> None:
    config = yaml.safe_load((run_dir / "config.yaml").read_text())
    experiment = read_experiment({**config, "name": name})
    assert name is None or run_folder(experiment).name == str(name)


# Everything a run has, at the time at which it is gone on with or later.
FILES = [
    "config.yaml", "data.json", "trajectories.npz", "summary.json", ".lock",
    *(f"{stage}/{name}" for stage in STAGES for name in ("config.yaml", ".key", "stage.json", "metrics.csv")),
    *(f"{stage}/checkpoints/last.ckpt" for stage in STAGES),
    "pretrain/scores.npy", "formal/scores.npy", "formal/negatives.npy", "policy/weights.npy",
    "formal/tensorboard/events.out.tfevents.1.host", "formal/.stage.json.PID", "formal/hpc_ckpt_1.ckpt",
]  # fmt: skip
FOLDERS = [
    *STAGES,
    *(f"{stage}/checkpoints" for stage in STAGES),
    "formal/tensorboard",
    ".formal.PID",
]  # PID: of this process


@pytest.mark.parametrize("target", ["file", "nothing", "folder"])
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_links(
    foreign: Path, victim: Path, capsys: pytest.CaptureFixture[str], name: str, target: str, run_dir: Path
) -> None:
    link = foreign / name.replace("PID", str(os.getpid()))
    aim = {"file": victim / "precious.npy", "nothing": victim / "new", "folder": victim / "below"}[target]
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True, parents=True)
    if name == "config.yaml":  # what it leads to has to be a configuration, or it would not be read at all
        aim = foreign.parent / "elsewhere.yaml"
        shutil.copy(run_dir / "config.yaml", aim)
    link.symlink_to(aim)
    line = refused(capsys, "train", f"resume={foreign}")
    assert line == f"tailo: {link}: a link to {str(aim)!r}, expected no links in a run; remove it"
    assert link.is_symlink()


def test_a_pipe_is_not_waited_for(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(foreign / "formal/stage.json")
    assert "stage.json: neither a file nor a folder" in refused(capsys, "train", f"resume={foreign}")


def test_links_within_the_folder_of_wandb_are_its_own(foreign: Path, victim: Path) -> None:
    logs = foreign / "pretrain/wandb"
    (logs / "offline-run-1").mkdir(parents=True)
    (logs / "latest-run").symlink_to("offline-run-1")
    resume(foreign, [])
    (logs / "debug.log").symlink_to(victim / "precious.npy")
    with pytest.raises(UserError, match=r"debug\.log: a link to "):
        resume(foreign, [])


def test_files_are_not_written_through_links(tmp_path: Path, victim: Path) -> None:
    """Also where nobody looks for links first, as in the folder of a report."""
    target = tmp_path / "page.html"
    target.symlink_to(victim / "precious.npy")
    scratch = target.with_name(f".page.html.{os.getpid()}")
    scratch.symlink_to(victim / "below/thesis.txt")
    write_text(target, "a page")
    assert target.read_text() == "a page" and not target.is_symlink() and not scratch.exists()
    scratch.symlink_to(victim / "new")
    with whole_file(target) as path:
        assert path == scratch and path.is_file() and not path.is_symlink()


def test_an_export_does_not_follow_a_link(
    run_dir: Path, tmp_path: Path, victim: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run_dir, tmp_path / "run")
    (tmp_path / "run/export").symlink_to(victim)
    assert "expected a place of its own inside" in refused(capsys, "export", str(tmp_path / "run"))


def test_an_index_is_only_that_of_the_folder_the_run_lies_in(foreign: Path, victim: Path) -> None:
    edited(foreign, lambda config: config.update(runs=str(victim)))
    assert main(["train", f"resume={foreign}"]) == 0
    assert (foreign.parents[3] / ".stages").is_dir()


def test_a_run_out_of_its_place_has_no_index(foreign: Path, victim: Path, tmp_path: Path) -> None:
    edited(foreign, lambda config: config.update(runs=str(victim)))
    moved = tmp_path / "a/b/c/d/moved"
    shutil.move(foreign, moved)
    assert main(["train", f"resume={moved}"]) == 0
    assert not list(tmp_path.rglob(".stages"))


def test_an_index_that_is_a_link(foreign: Path, victim: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (foreign.parents[3] / ".stages").symlink_to(victim)
    assert ".stages: leads to " in refused(capsys, "train", f"resume={foreign}")


def finished_elsewhere(run_dir: Path, folder: Path) -> str:
    """Put a finished stage `formal` at a folder; its key."""
    shutil.copytree(run_dir / "formal", folder)
    key: str = json.loads((folder / "stage.json").read_text())["key"]
    return key


@pytest.mark.parametrize("entry", ["../outside", "<absolute>", "linked", "pointmaze/../../outside", "", "\udcff"])
def test_an_index_leads_only_to_runs_beside_it(foreign: Path, run_dir: Path, entry: str) -> None:
    root = foreign.parents[3]
    outside = root.parent / "outside"
    key = finished_elsewhere(run_dir, outside)
    (root / "linked").symlink_to(outside)
    (root / ".stages").mkdir()
    entry = str(outside) if entry == "<absolute>" else entry
    (root / ".stages" / key).write_bytes(entry.encode(errors="surrogateescape"))
    assert main(["train", f"resume={foreign}"]) == 0
    assert [stage["reused_from"] for stage in read_summary(foreign)["stages"]] == [None, None, None]


def test_a_reused_stage_brings_no_links(foreign: Path, run_dir: Path, victim: Path) -> None:
    root = foreign.parents[3]
    there = "pointmaze/examples/tailo/other/formal"
    key = finished_elsewhere(run_dir, root / there)
    (root / there / "extra").symlink_to(victim)
    (root / there / "extra.txt").symlink_to(victim / "precious.npy")
    os.mkfifo(root / there / "pipe")
    (root / ".stages").mkdir()
    (root / ".stages" / key).write_text(there)
    assert main(["train", f"resume={foreign}"]) == 0
    assert read_summary(foreign)["stages"][1]["reused_from"] == there
    assert not {"extra", "extra.txt", "pipe"} & {path.name for path in (foreign / "formal").iterdir()}


@pytest.mark.parametrize(
    "record",
    [
        {"checkpoint": "<absolute>"},
        {"checkpoint": "../pretrain/checkpoints/last.ckpt"},
        {"checkpoint": 3},
        {"files": ["../data.json"]},
        {"files": ["<absolute>"]},
        {"files": "scores.npy"},
        {"files": [None]},
    ],
)
def test_a_stages_record_names_only_its_own_files(foreign: Path, run_dir: Path, record: dict[str, Any]) -> None:
    path = foreign / "formal/stage.json"
    absolute = str(run_dir / "formal/checkpoints/last.ckpt")
    swapped = json.loads(json.dumps(record).replace("<absolute>", absolute))
    before = json.loads((run_dir / "formal/stage.json").read_text())
    path.write_text(json.dumps({**before, **swapped, "seconds": 12345.0}))
    assert main(["train", f"resume={foreign}"]) == 0
    assert read_summary(foreign)["stages"][1]["seconds"] < 12345  # it was not taken at its word


@pytest.mark.parametrize("name", ["scores.npy", "negatives.npy", "checkpoints/last.ckpt"])
def test_a_stage_is_finished_only_with_all_its_files(foreign: Path, run_dir: Path, name: str) -> None:
    root = foreign.parents[3]
    there = "pointmaze/examples/tailo/other/formal"
    key = finished_elsewhere(run_dir, root / there)
    (root / there / name).unlink()
    (root / ".stages").mkdir()
    (root / ".stages" / key).write_text(there)
    (foreign / "formal/negatives.npy").unlink()  # which is made again as well
    assert main(["train", f"resume={foreign}"]) == 0
    assert read_summary(foreign)["stages"][1]["reused_from"] is None
    assert (foreign / "formal" / name).is_file()
    assert (foreign / "formal/negatives.npy").read_bytes() == (run_dir / "formal/negatives.npy").read_bytes()


SIMPLE = "lightning.pytorch.profilers.SimpleProfiler"
TENSORBOARD = "lightning.pytorch.loggers.TensorBoardLogger"
MLFLOW = "tailo_pl.training.live_logs.MlflowLog"


def profiler(**options: Any) -> dict[str, Any]:
    return {"trainer": {"profiler": {"class_path": SIMPLE, "init_args": options}}}


def beside(class_path: str, **options: Any) -> dict[str, Any]:
    return {"logger": {"beside": {"class_path": class_path, **options}}}


CHECKPOINT = "lightning.pytorch.callbacks.ModelCheckpoint"
PLACES: list[dict[str, Any]] = [
    profiler(dirpath="VICTIM", filename="precious.npy"),
    profiler(dirpath="../victim", filename="a"),
    profiler(dirpath="file://VICTIM", filename="a"),
    profiler(dirpath="plain", filename="a"),  # from the working directory on
    profiler(dirpath="~", filename="a"),
    profiler(dirpath="a\0b", filename="a"),
    profiler(filename="../../../../../../../victim/a"),
    profiler(filename="VICTIM/a"),
    {"trainer": {"default_root_dir": "VICTIM"}},
    {"trainer": {"callbacks": [{"class_path": CHECKPOINT, "init_args": {"dirpath": "VICTIM"}}]}},
    {"trainer": {"plugins": [{"class_path": "any", "init_args": {"path": "VICTIM"}}]}},
    {"trainer": {"strategy": {"class_path": "any", "init_args": {"nvme_path": "VICTIM"}}}},
    beside(TENSORBOARD, sub_dir="VICTIM"),
    beside(TENSORBOARD, version="VICTIM"),
    beside(TENSORBOARD, version="../../../../../../../victim"),
    beside(TENSORBOARD, filename_suffix="/../../victim"),
    beside("lightning.pytorch.loggers.WandbLogger", dir="VICTIM"),
    beside("lightning.pytorch.loggers.LitLogger", root_dir="VICTIM"),
    beside("lightning.pytorch.loggers.CometLogger", offline_directory="VICTIM"),
    beside(MLFLOW, tracking_uri="sqlite:///VICTIM/mlflow.db"),
    beside(MLFLOW, tracking_uri="file://VICTIM"),
    beside(MLFLOW, tracking_uri="plain"),
    beside(MLFLOW, artifact_location="file://VICTIM"),
    {"logger": {"class_path": "lightning.pytorch.loggers.CSVLogger", "save_dir": "VICTIM"}},
    {"logger": {"class_path": TENSORBOARD, "sub_dir": "VICTIM", "flush_logs_every_n_steps": 1}},
]


@pytest.mark.parametrize("options", PLACES, ids=str)
@pytest.mark.parametrize("command", [("train", "resume={}"), ("run", "{}")], ids=["resume", "run"])
def test_a_saved_configuration_does_not_choose_where_to_write(
    foreign: Path, victim: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], command: tuple[str, ...]
) -> None:
    def change(config: dict[str, Any]) -> None:
        for group, values in json.loads(json.dumps(options).replace("VICTIM", str(victim))).items():
            config[group] |= values

    edited(foreign, change)
    before = content(foreign.parents[4])
    line = refused(capsys, *(part.format(foreign) for part in command))
    assert f"expected a place inside {foreign} (--allow-folder FOLDER" in line
    assert content(foreign.parents[4]) == before


@pytest.mark.parametrize(
    "options",
    [
        {"trainer": {"profiler": "simple"}},
        profiler(filename="profile"),
        profiler(dirpath="runs/pointmaze/examples/tailo/small/profiles", filename="profile"),
        beside(TENSORBOARD, version="events", sub_dir="a/b"),
        beside(MLFLOW, tracking_uri="https://example.org:5000", experiment_name="/Users/me/tailo"),
        beside(MLFLOW, tracking_uri="sqlite:///runs/pointmaze/examples/tailo/small/mlflow.db"),
        beside("tailo_pl.training.live_logs.WandbLog", project="group/tailo", offline=True),
    ],
    ids=str,
)
def test_what_stays_inside_is_taken_as_it_is(foreign: Path, options: dict[str, Any]) -> None:
    places.require_own_places(options, foreign / "config.yaml", foreign)


def test_a_profile_lands_in_the_stage(foreign: Path, victim: Path) -> None:
    edited(foreign, lambda config: config["trainer"].update(profiler(filename="profile")["trainer"]))
    assert main(["train", f"resume={foreign}"]) == 0
    assert all(list((foreign / stage).glob("*profile*")) for stage in STAGES)


def test_a_folder_can_be_allowed(
    foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.VARIABLE, "")  # and back as it was
    allowed = tmp_path / "profiles"
    edited(
        foreign,
        lambda config: config["trainer"].update(profiler(dirpath=str(allowed / "a"), filename="profile")["trainer"]),
    )
    refused(capsys, "train", f"resume={foreign}", "--allow-folder", str(tmp_path / "others"))
    assert main(["train", f"resume={foreign}", "--allow-folder", str(allowed)]) == 0
    assert list((allowed / "a").iterdir())


def test_the_command_line_may_name_any_place(tmp_path: Path) -> None:
    aside = tmp_path / "profiles"
    overrides = [
        *SMALL, "method=bc", f"runs={tmp_path / 'runs'}", "name=a", f"+trainer.profiler.class_path={SIMPLE}",
        f"+trainer.profiler.init_args.dirpath={aside}", "+trainer.profiler.init_args.filename=profile",
    ]  # fmt: skip
    experiment = composed(overrides)
    execute(prepare(experiment), experiment)
    assert list(aside.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda trainer, victim: trainer["logger"]["init_args"].update(save_dir=victim),
        lambda trainer, victim: trainer.update(default_root_dir=victim),
        lambda trainer, victim: trainer["callbacks"].append(
            {"class_path": CHECKPOINT, "init_args": {"dirpath": victim}}
        ),
    ],
    ids=["logger", "root", "callback"],
)
def test_a_stage_from_elsewhere_does_not_choose_where_fit_writes(
    foreign: Path, victim: Path, capsys: pytest.CaptureFixture[str], change: Any
) -> None:
    stage = yaml.safe_load((foreign / "pretrain/config.yaml").read_text())
    change(stage["trainer"], str(victim))
    Path("stage.yaml").write_text(yaml.safe_dump(stage))
    assert "expected a place inside fits" in refused(capsys, "fit", "--config", "stage.yaml")


class Vanish(Callback):
    """Removes a file or a folder at every step, as when a disk is unmounted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_batch_end(self, *arguments: Any) -> None:
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self.path.unlink(missing_ok=True)


@pytest.mark.parametrize("gone", [".", "formal", "formal/negatives.npy"])
def test_a_folder_that_vanishes_amid_a_stage(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    """What is made anew in its place is no run, and nobody is told of it as of a finished stage."""
    shutil.rmtree(foreign / "formal")
    fit = Trainer.fit

    def fit_and_vanish(trainer: Any, *arguments: Any, **options: Any) -> None:
        trainer.callbacks.insert(0, Vanish(foreign / gone))
        fit(trainer, *arguments, **options)

    monkeypatch.setattr(Trainer, "fit", fit_and_vanish)
    line = refused(capsys, "train", f"resume={foreign}")
    name = "negatives.npy" if gone.endswith(".npy") else ".key"
    assert line.startswith(f"tailo: {foreign}/formal: {name} has vanished while the run was at work")
    assert not (foreign / "formal/stage.json").exists()
    assert not list((foreign.parents[3] / ".stages").glob("[!.]*"))  # a lock may be left


def test_what_a_killed_process_left_is_cleared_away(foreign: Path) -> None:
    left = [
        foreign / ".config.yaml.12", foreign / "pretrain/checkpoints/.last.ckpt.123",
        foreign / "formal/.metrics.csv.7", foreign / "formal/..key.7", foreign / "formal/.scores.npy.99",
    ]  # fmt: skip
    for path in left:
        path.write_bytes(b"half a file")
    half = foreign / ".policy.77"
    shutil.copytree(foreign / "pretrain", half)
    kept = [foreign / ".notes", foreign / ".notes.txt.old", foreign / "formal/2024.1"]
    for path in kept:
        path.write_text("mine")
    assert main(["train", f"resume={foreign}"]) == 0
    assert not [path for path in (*left, half) if path.exists()]
    assert [path.name for path in kept if path.exists()] == [".notes", ".notes.txt.old", "2024.1"]
