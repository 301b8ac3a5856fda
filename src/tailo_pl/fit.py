"""`tailo fit`: Lightning CLI for one stage, from the config its run has saved."""

from __future__ import annotations

from jsonargparse import ArgumentError
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.cli import LightningCLI

from tailo_pl.data.datamodule import TaskData
from tailo_pl.errors import UserError
from tailo_pl.experiment import as_user_error
from tailo_pl.models.stage import Diverged, StageModule
from tailo_pl.trusted import restrict_imports


def fit(arguments: list[str]) -> LightningCLI:
    """Train one stage with Lightning CLI's options; writes to the logger's folder, never into the run."""
    restrict_imports()
    try:
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
    try:
        cli.trainer.fit(cli.model, datamodule=cli.datamodule)
    except Diverged as failure:
        raise UserError(f"fit: a number is no longer finite at step {failure.step}") from failure
    except SystemExit as stop:  # Lightning's answer to Ctrl-C
        raise KeyboardInterrupt from stop
    return cli
