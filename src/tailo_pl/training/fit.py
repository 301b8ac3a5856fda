"""`tailo fit` and `tailo validate`: Lightning CLI for one stage, from the config its run has saved."""

from __future__ import annotations

import itertools
import logging
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI

from tailo_pl.config.parsing import as_user_error, mistakes
from tailo_pl.config.places import require_own_places
from tailo_pl.config.trusted import restrict_imports
from tailo_pl.data.datamodule import TaskData
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml, reason
from tailo_pl.models.stage import Diverged, StageModule
from tailo_pl.training.building import FIT_FOLDER, Built
from tailo_pl.training.step_loop import use_step_loop

log = logging.getLogger(__name__)


class StageCLI(LightningCLI):
    """Lightning CLI for a stage: of two callbacks of one class the later one holds, and there is `--ckpt_path`."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument("--ckpt_path", type=str | None, default=None, help="A checkpoint to begin with.")

    def before_instantiate_classes(self) -> None:
        callbacks = self.config["trainer"].get("callbacks")
        if isinstance(callbacks, list):
            by_class = {callback["class_path"]: callback for callback in callbacks}
            self.config["trainer"]["callbacks"] = list(by_class.values())


@dataclass(frozen=True)
class Fitted:
    """A stage that was fitted.

    Args:
        stage: its name.
        saved: the config it was fitted from.
        folder: the folder of the stage.
        before: what that config says, with every default filled in.
        config: the same with the user's options.
        built: what it was trained with.
    """

    stage: str
    saved: Path
    folder: Path
    before: dict[str, Any]
    config: dict[str, Any]
    built: Built


def fit(arguments: list[str]) -> Fitted:
    """Train one stage with Lightning CLI's options; writes to a folder of its own, never into the run."""
    saved, rest = _saved_config(arguments)
    stage = _stage(saved)
    folder = _fresh(saved, stage)
    log.info("stage %s of %s, into %s", stage, saved, folder)
    where = {"save_dir": str(folder.parent), "name": folder.name, "version": ""}
    own = [f"--trainer.logger.{option}={value}" for option, value in where.items()]
    cli = _cli([f"--config={saved}", *own, *rest], "fit")
    before = _cli_config([f"--config={saved}", *own])
    use_step_loop(cli.trainer)
    wrote = Path(cli.trainer.log_dir or folder)
    try:
        wrote.mkdir(parents=True, exist_ok=True)  # or it would be known after the first steps
        cli.trainer.fit(cli.model, datamodule=cli.datamodule, ckpt_path=cli.config["ckpt_path"], weights_only=True)
    except Diverged as failure:
        raise UserError(f"fit: a number is no longer finite at step {failure.step}") from failure
    except SystemExit as stop:  # Lightning's answer to Ctrl-C
        raise KeyboardInterrupt from stop
    except OSError as error:
        raise UserError(f"{error.filename or wrote}: cannot be written ({reason(error)})") from error
    built = Built(cli.trainer, cli.model, cli.datamodule)
    return Fitted(stage, saved, wrote, before, _plain(cli.config), built)


def validate(arguments: list[str]) -> dict[str, float]:
    """What a stage's module makes of the trajectories it holds out, in Lightning's manner."""
    saved, rest = _saved_config(arguments)
    stage = _stage(saved)
    cli = _cli([f"--config={saved}", *rest, "--trainer.callbacks=null", "--trainer.logger=false"], "validate")
    if not cli.datamodule.batches.validates:
        raise UserError(f"{saved}: stage {stage} holds nothing out, expected one that does (preset.held_out)")
    last = saved.parent / "checkpoints" / "last.ckpt"
    checkpoint = cli.config["ckpt_path"] or (str(last) if last.exists() else None)
    if checkpoint is None:
        raise UserError(f"{last}: not there, expected a trained stage, or --ckpt_path=FILE")
    (numbers,) = cli.trainer.validate(
        cli.model, datamodule=cli.datamodule, ckpt_path=checkpoint, verbose=False, weights_only=True
    )
    return dict(numbers)


def _cli(arguments: list[str], command: str) -> Any:
    restrict_imports()
    try:
        return StageCLI(
            StageModule,
            TaskData,
            subclass_mode_model=True,
            save_config_callback=None,
            auto_configure_optimizers=False,
            parser_kwargs={"exit_on_error": False, "prog": f"tailo {command}"},
            args=arguments,
            run=False,  # so that only what is the user's to mend is caught here
        )
    except mistakes() as error:
        raise as_user_error(error) from error


def show_options(command: str) -> None:
    """Print every option there is, as Lightning CLI lists them, and leave."""
    _cli(["--help"], command)


def _cli_config(arguments: list[str]) -> dict[str, Any]:
    """What these arguments come to, nothing built."""

    class Parsed(StageCLI):
        def instantiate_classes(self) -> None:
            return None

    cli = Parsed(
        StageModule,
        TaskData,
        subclass_mode_model=True,
        save_config_callback=None,
        auto_configure_optimizers=False,
        parser_kwargs={"exit_on_error": False},
        args=arguments,
        run=False,
    )
    found: dict[str, Any] = _plain(cli.config)
    return found


def _plain(value: Any) -> Any:
    """jsonargparse's values as dictionaries and lists, at every depth."""
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _saved_config(arguments: list[str]) -> tuple[Path, list[str]]:
    """The stage's config, and all other arguments. It may come from elsewhere: only the user's own options say where
    else to write."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-c", "--config", action="append", default=[], type=Path)
    found, rest = parser.parse_known_args(arguments)
    if not found.config:
        raise UserError("config: not given, expected --config RUN/STAGE/config.yaml (every run saves one per stage)")
    *others, path = found.config
    config = read_yaml(path, "the config of a stage")
    if isinstance(config, dict) and "method" in config and "model" not in config:
        stages = [str(path.parent / name / "config.yaml") for name in (config["method"].get("stages") or {})]
        there = [one for one in stages if Path(one).is_file()] or stages
        raise UserError(
            f"{path}: the configuration of a whole run found, expected that of a stage: {', '.join(there)} "
            f"(`tailo train resume={path.parent}` goes on with a run)"
        )
    for one in (*others, path):
        content = read_yaml(one, "the config of a stage")
        if isinstance(content, dict):
            require_own_places(content, one, Path(FIT_FOLDER))
    return path, [*(f"--config={one}" for one in others), *rest]


def _stage(path: Path) -> str:
    config = read_yaml(path, "the config of a stage")
    data = config.get("data") if isinstance(config, Mapping) else None
    stage = data.get("stage") if isinstance(data, Mapping) else None
    if not isinstance(stage, str) or not stage.isidentifier():
        raise UserError(f"{path}: data.stage: {stage!r} found, expected the name of a stage")
    return stage


def _fresh(saved: Path, stage: str) -> Path:
    """A folder for the stage in one of its own, named after the run it is of."""
    name = f"{saved.absolute().parent.parent.name}-{stage}"
    for number in itertools.count(1):
        folder = Path(FIT_FOLDER, name if number == 1 else f"{name}-{number}")
        if not folder.exists():
            return folder / stage
    raise AssertionError
