"""The `tailo` command."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from tailo_pl.experiment import Experiment

HYDRA_FLAGS = ("-m", "--multirun", "-c", "--cfg", "--resolve", "-p", "--package", "-i", "--info", "-h", "--help")
HELP = """usage: tailo COMMAND ...

Offline imitation learning from observations.

commands:
  train      run an experiment: tailo train env=pointmaze method=tailo seed=1   (-m sweeps; --cfg job shows the config)
  fit        train one stage from a saved config: tailo fit --config RUN/policy/config.yaml --model.learning_rate=3e-4
  evaluate   play a finished run's policy: tailo evaluate RUN --episodes 100
  data       list, inspect, make, convert: tailo data inspect logs.parquet
  score      score new logs with a trained run's discriminator: tailo score logs.csv --run RUN --out scores.csv
  table      finished runs side by side, mean ± std over seeds: tailo table runs   (--format csv, markdown, json)
  prepare    all of `train` but the training; a cluster then starts the processes: srun tailo run RUN
  compare    run what is missing, then table and report: tailo compare env=hopper methods=tailo,bc,smodice seeds=3
  report     one page about runs, to open in a browser: tailo report RUN... --out report.html --figures figures
  export     write the policy for other programs, as ONNX and torch.export: tailo export RUN
  play       film the policy: tailo play RUN --out play.mp4
  results    run the cells of results/cells.yaml that are missing from the ledger, and write its tables
  completion what a shell needs to complete commands: tailo completion bash
"""
COMMANDS = tuple(line.split()[0] for line in HELP.split("commands:")[1].splitlines() if line.strip())


class Interrupted(KeyboardInterrupt):
    """A run was interrupted and can be gone on with."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self.run_dir = run_dir


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. A mistake of the user's ends as one line on standard error and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    commands = {
        "train": _train,
        "fit": _fit,
        "evaluate": _evaluate,
        "data": _data,
        "score": _score,
        "table": _table,
        "compare": _compare,
        "report": _report,
        "export": _export,
        "play": _play,
        "prepare": _prepare,
        "results": _results,
        "completion": _completion,
        "run": _run,
    }
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
        return 0
    command, rest = arguments[0], arguments[1:]
    try:
        if command not in commands:
            raise UserError(f"command: {command!r} given, expected one of {', '.join(COMMANDS)}")
        _quieten()
        if command != "run":  # whose processes have others to think of
            _end_like_ctrl_c(signal.SIGTERM)
        commands[command](_allow(rest))
    except UserError as error:
        sys.stderr.write(f"tailo: {error}\n")
        return 2
    except Interrupted as stop:
        sys.stderr.write(f"tailo: interrupted; `tailo train resume={stop.run_dir}` goes on\n")
        return 130
    except KeyboardInterrupt:
        sys.stderr.write("tailo: interrupted\n")
        return 130
    return 0


def _end_like_ctrl_c(number: signal.Signals) -> None:
    """Let a signal end the command as Ctrl-C does: what was begun is cleared away, and a line says how to go on."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, signal.default_int_handler)


def _allow(arguments: list[str]) -> list[str]:
    """Take `--allow PACKAGE` out of a command's arguments: configurations may then name classes of that package."""
    parser = _Parser(prog="tailo", add_help=False, allow_abbrev=False)
    parser.add_argument("--allow", action="append", metavar="PACKAGE")
    options, rest = parser.parse_known_args(arguments)
    if options.allow:
        from tailo_pl.trusted import allow

        allow(options.allow)
        sys.path.insert(0, "")  # the user's own package is most likely here
    return rest


def _quieten() -> None:
    """Keep libraries' start-up chatter away from what the user asked to see."""
    import logging
    import warnings

    ours = logging.getLogger("tailo_pl")
    ours.setLevel(logging.INFO)
    ours.propagate = False  # Hydra silences the root logger
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("tailo: %(message)s"))
    ours.handlers = [handler]
    for package in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(f"{package}.utilities.rank_zero").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=r"torch\.distributed\.nn\.functional", category=FutureWarning)
    for module in (r"lightning\..*", r"gymnasium.*", r"torch\.utils\.data.*"):
        warnings.filterwarnings("ignore", module=module)


def _train(arguments: list[str]) -> None:
    for argument in arguments:
        if argument.startswith("-") and argument.split("=")[0] not in HYDRA_FLAGS:
            raise UserError(f"train: unknown flag {argument!r}, expected key=value or one of {', '.join(HYDRA_FLAGS)}")
    resumed = [argument for argument in arguments if argument.startswith("resume=")]
    if resumed:
        _resume(Path(resumed[-1].removeprefix("resume=")), [one for one in arguments if one not in resumed])
        return
    if {"-m", "--multirun"} & set(arguments):
        _sweep(arguments)
        return
    failed: list[UserError] = []

    def job(config: DictConfig) -> float | None:
        try:
            return train_job(config)
        except UserError as error:  # Hydra would print a line of its own
            failed.append(error)
            return None

    _compose(arguments, job)
    if failed:
        raise failed[0]


def _sweep(arguments: list[str]) -> None:
    """Run every job, and at the end name those that failed."""
    with tempfile.TemporaryDirectory(prefix=".tailo-sweep-", dir=".") as folder:
        _compose(arguments, partial(_sweep_job, Path(folder).resolve()))
        lines = [path.read_text() for path in sorted(Path(folder).iterdir())]
    for line in lines[:-1]:
        sys.stderr.write(f"tailo: {line}\n")
    if lines:
        raise UserError(lines[-1])


def _compose(arguments: list[str], job: Callable[[DictConfig], Any]) -> None:
    """Let Hydra compose what the arguments ask for and call `job` with it, once or, with -m, for each combination."""
    import hydra

    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra raise its errors instead of printing them
    program = sys.argv
    sys.argv = ["tailo train", *arguments]
    try:
        hydra.main(version_base="1.3", config_path="pkg://tailo_pl.configs", config_name="train")(job)()
    except Exception as error:
        raise _user_error(error) from error
    finally:
        sys.argv = program


def _sweep_job(failed: Path, config: DictConfig) -> float | None:
    """One job of a sweep, perhaps in a process of its own. It notes in a file how it failed: an error that left here
    would stop the other jobs."""
    from hydra.core.hydra_config import HydraConfig

    from tailo_pl.errors import UserError  # what a launcher's process has of this module is a copy

    _quieten()
    try:
        return train_job(config)
    except UserError as error:
        job = HydraConfig.get().job
        (failed / f"{job.num:06}").write_text(f"job {job.num} ({job.override_dirname}): {error}")
        return None


def _resume(run_dir: Path, overrides: list[str]) -> None:
    from tailo_pl import run
    from tailo_pl.console import making_data

    with making_data():
        experiment = run.resume(run_dir, overrides)
    _execute(run_dir, experiment)


def _execute(run_dir: Path, experiment: Experiment) -> float | None:
    from tailo_pl import run
    from tailo_pl.console import show_data, show_summary

    show_data(experiment, run_dir)
    try:
        summary = run.execute(run_dir, experiment)
    except KeyboardInterrupt as stop:
        raise Interrupted(run_dir) from stop
    show_summary(summary, run_dir)
    score: float | None = summary["score"]
    return score


def train_job(config: DictConfig) -> float | None:
    """One job of `tailo train`; returns the score, which is what Hydra's optimisers maximise or minimise."""
    return _execute(*_prepared(config))


def _prepared(config: DictConfig) -> tuple[Path, Experiment]:
    """Check a composed configuration, make its data and its run."""
    from tailo_pl import run
    from tailo_pl.choices import resolved
    from tailo_pl.console import making_data
    from tailo_pl.experiment import read_experiment

    experiment = read_experiment(resolved(config))
    with making_data():
        run_dir = run.prepare(experiment)
    return run_dir, experiment


def _user_error(error: Exception) -> Exception:
    """Hydra's and OmegaConf's complaints in our form; anything else stays what it is."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from tailo_pl.choices import explain

    if isinstance(error, (HydraException, OmegaConfBaseException)):
        return UserError(explain(str(error)))
    return error


def _fit(arguments: list[str]) -> None:
    from tailo_pl.fit import fit

    fit(arguments)


def _evaluate(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo evaluate", description="Play a finished run's policy for fresh episodes.")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None, help="decides the initial states (default: the run's seed)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)

    from tailo_pl import run
    from tailo_pl.console import show_evaluation

    _, evaluation = run.evaluate(options.run, options.episodes, options.seed)
    show_evaluation(evaluation, options.run, as_json=options.json)


def _data(arguments: list[str]) -> None:
    from tailo_pl import data_commands

    data_commands.data(_Parser(prog="tailo data"), arguments)


def _score(arguments: list[str]) -> None:
    from tailo_pl import data_commands

    data_commands.score(_Parser(prog="tailo score"), arguments)


def _table(arguments: list[str]) -> None:
    parser = _Parser(
        prog="tailo table", description="Finished runs side by side, mean ± standard deviation over seeds."
    )
    parser.add_argument("runs", type=Path, nargs="+", help="runs, or folders of runs")
    parser.add_argument("--format", choices=("rich", "csv", "markdown", "json"), default="rich")
    parser.add_argument("--json", action="store_const", dest="format", const="json", help="the same as --format json")
    options = parser.parse_args(arguments)

    from tailo_pl import table
    from tailo_pl.console import show_table

    rows = table.gather(options.runs)
    if options.format == "rich":
        show_table(rows)
    else:
        sys.stdout.write(table.written(rows, options.format))


def _compare(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo compare", description="Several methods on the same task: run what is missing.")
    parser.add_argument("overrides", nargs="+", help="methods=a,b (a:key=value for variants), seeds=3, env=..., ...")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the report (default: report.html)")
    options = parser.parse_intermixed_args(arguments)

    from tailo_pl import table
    from tailo_pl.comparison import Comparison, compare
    from tailo_pl.console import making_data, show_report, show_table
    from tailo_pl.report.writing import require_writable, write_report

    require_writable(options.out)
    folders, failed = compare(Comparison.of(options.overrides))
    if folders:
        show_table(table.gather(folders))
        with making_data():
            show_report(write_report(folders, options.out))
    for line in failed[:-1]:
        sys.stderr.write(f"tailo: {line}\n")
    if failed:
        raise UserError(failed[-1])


def _report(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo report", description="Write one self-contained page about runs, and their figures.")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a run")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page (default: report.html)")
    parser.add_argument("--figures", type=Path, help="folder for the figures as PNG and SVG")
    parser.add_argument("--title", default="", help="of the page (default: the runs' tasks)")
    parser.add_argument("--video", type=Path, help="an episode to embed: mp4, webm or gif")
    options = parser.parse_args(arguments)

    from tailo_pl.console import making_data, show_report
    from tailo_pl.report.writing import write_report

    with making_data():  # of runs that did not record how theirs is laid out
        written = write_report(
            options.runs, options.out, title=options.title, figures=options.figures, video=options.video
        )
    show_report(written)


def _export(arguments: list[str]) -> None:
    from tailo_pl import policy_commands

    policy_commands.export(_Parser(prog="tailo export"), arguments)


def _play(arguments: list[str]) -> None:
    from tailo_pl import policy_commands

    policy_commands.play(_Parser(prog="tailo play"), arguments)


def _results(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo results", description="Fill the ledger and write the tables made from it.")
    parser.add_argument("--cells", type=Path, default=Path("results/cells.yaml"), help="list of cells")
    parser.add_argument("--only", default="", help="run only cells whose name contains this")
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    options = parser.parse_args(arguments)

    from tailo_pl import ledger

    if not options.tables:
        ledger.run_missing(options.cells, options.only)
    ledger.write_tables(options.cells.parent)


def _prepare(arguments: list[str]) -> None:
    """Everything of `tailo train` but the training: what a cluster's job does once before all its processes start."""
    from tailo_pl.console import show_data

    def job(config: DictConfig) -> None:
        run_dir, experiment = _prepared(config)
        show_data(experiment, run_dir)

    _compose(arguments, job)


def _completion(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo completion", description="Print a script that completes commands and their choices.")
    parser.add_argument("shell", help="bash, zsh or fish")

    from tailo_pl.completion import completion

    sys.stdout.write(completion(parser.parse_args(arguments).shell, COMMANDS))


def _run(arguments: list[str]) -> None:
    """All stages of a prepared run, as one process of it: torchrun or SLURM's srun start several of these."""
    parser = _Parser(prog="tailo run")
    parser.add_argument("run", type=Path)

    from tailo_pl import run

    run.join(parser.parse_args(arguments).run)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(f"{self.prog.removeprefix('tailo ')}: {message}")


if __name__ == "__main__":
    sys.exit(main())
