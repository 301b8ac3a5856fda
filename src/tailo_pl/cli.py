"""The `tailo` command."""

from __future__ import annotations

import argparse
import os
import sys
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
        "export": _export,
        "play": _play,
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
        commands[command](rest)
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
    for module in (r"lightning\..*", r"gymnasium.*", r"torch\.utils\.data.*"):
        warnings.filterwarnings("ignore", module=module)


def _train(arguments: list[str]) -> None:
    import hydra

    for argument in arguments:
        if argument.startswith("-") and argument.split("=")[0] not in HYDRA_FLAGS:
            raise UserError(f"train: unknown flag {argument!r}, expected key=value or one of {', '.join(HYDRA_FLAGS)}")
    resumed = [argument for argument in arguments if argument.startswith("resume=")]
    if resumed:
        _resume(Path(resumed[-1].removeprefix("resume=")), [one for one in arguments if one not in resumed])
        return
    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra raise its errors instead of printing them
    failed: list[UserError] = []

    def job(config: DictConfig) -> float | None:
        # An error that left here would stop the other jobs of a sweep.
        try:
            return train_job(config)
        except UserError as error:
            failed.append(error)
            if len(failed) > 1:  # the last one is said at the end
                sys.stderr.write(f"tailo: {failed[-2]}\n")
            return None

    program = sys.argv
    sys.argv = ["tailo train", *arguments]
    try:
        hydra.main(version_base="1.3", config_path="pkg://tailo_pl.configs", config_name="train")(job)()
    except Exception as error:
        raise _user_error(error) from error
    finally:
        sys.argv = program
    if failed:
        raise failed[-1]


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
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from tailo_pl import run
    from tailo_pl.choices import explain
    from tailo_pl.console import making_data
    from tailo_pl.experiment import read_experiment

    try:
        composed: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(explain(str(error))) from error
    experiment = read_experiment(composed)
    with making_data():
        run_dir = run.prepare(experiment)
    return _execute(run_dir, experiment)


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


def _completion(arguments: list[str]) -> None:
    parser = _Parser(prog="tailo completion", description="Print a script that completes commands and their choices.")
    parser.add_argument("shell", help="bash, zsh or fish")

    from tailo_pl.completion import completion

    sys.stdout.write(completion(parser.parse_args(arguments).shell, COMMANDS))


def _run(arguments: list[str]) -> None:
    """Internal: all stages of a prepared run, as one process of it (torchrun starts several of these)."""
    parser = _Parser(prog="tailo run")
    parser.add_argument("run", type=Path)

    from tailo_pl import run

    run_dir = parser.parse_args(arguments).run
    run.work(run_dir, run.load_run(run_dir))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(f"{self.prog.removeprefix('tailo ')}: {message}")


if __name__ == "__main__":
    sys.exit(main())
