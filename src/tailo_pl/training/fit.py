"""`tailo fit`: Lightning CLI for one stage, from the config its run has saved."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from jsonargparse import ArgumentError
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.cli import LightningCLI

from tailo_pl.config.parsing import as_user_error
from tailo_pl.config.places import require_own_places
from tailo_pl.config.trusted import restrict_imports
from tailo_pl.data.datamodule import TaskData
from tailo_pl.errors import UserError
from tailo_pl.files import read_yaml
from tailo_pl.models.stage import Diverged, StageModule
from tailo_pl.training.building import FIT_FOLDER
from tailo_pl.training.step_loop import use_step_loop


def fit(arguments: list[str]) -> LightningCLI:
    """Train one stage with Lightning CLI's options; writes to the logger's folder, never into the run."""
    restrict_imports()
    try:
        _require_own_places(arguments)
        cli = LightningCLI(
            StageModule,
            TaskData,
            subclass_mode_model=True,
            save_config_callback=None,
            auto_configure_optimizers=False,
            parser_kwargs={"exit_on_error": False},
            args=arguments,
            run=False,  # so that only what is the user's to mend is caught here
        )
    except (ArgumentError, ValueError, TypeError, MisconfigurationException) as error:
        raise as_user_error(error) from error
    use_step_loop(cli.trainer)
    try:
        cli.trainer.fit(cli.model, datamodule=cli.datamodule)
    except Diverged as failure:
        raise UserError(f"fit: a number is no longer finite at step {failure.step}") from failure
    except SystemExit as stop:  # Lightning's answer to Ctrl-C
        raise KeyboardInterrupt from stop
    return cli


def _require_own_places(arguments: list[str]) -> None:
    """A saved config may come from elsewhere: only the user's own options say where else to write."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-c", "--config", action="append", default=[], type=Path)
    for path in parser.parse_known_args(arguments)[0].config:
        config = read_yaml(path, "the config of a stage") if path.is_file() else None
        if isinstance(config, dict):
            require_own_places(config, path, Path(FIT_FOLDER))
