"""`tailo fit` and `tailo validate`: Lightning CLI for one stage, from the config its run has saved."""

from __future__ import annotations

import click

from tailo_pl.commands.options import PASS_ON, trusting

_FIT_HELP = """\
Usage: tailo fit --config RUN/STAGE/config.yaml [OPTIONS]

  Train one stage of a run again with Lightning CLI's options, for example

  tailo fit --config RUN/policy/config.yaml --model.learning_rate=3e-4
  tailo fit --config RUN/policy/config.yaml --trainer.max_steps=40000 \\
      --ckpt_path RUN/policy/checkpoints/last.ckpt

  The run stays as it is. What is trained becomes a run of its own,
  fits/NAME-STAGE, with the stages before it: `tailo evaluate`, `export`,
  `play`, `report`, `table` and load_policy read it like any other. Behind a
  stage that is not the last, `tailo train resume=fits/NAME-STAGE` trains the
  rest.

Options:
  --config FILE          The stage's configuration; every run saves one.
  --trainer.OPTION=X     Any of Lightning's Trainer, e.g. max_steps.
  --trainer.callbacks+=CLASS  One more callback; it takes the place of one of
                         the same class. Its arguments follow:
                         --trainer.callbacks.ARGUMENT=X
  --model.ARGUMENT=X     Any of the module.
  --data.OPTION=X        Source, setting and batches.
  --ckpt_path FILE       A checkpoint to begin with.
  --print_config         Show what all of it comes to, train nothing.
  --options              List every single option.
  --allow PACKAGE        Let configurations name classes of this package.
  --allow-folder FOLDER  Let a saved configuration write to this folder.
  -h, --help             This.
"""
_VALIDATE_HELP = """\
Usage: tailo validate --config RUN/STAGE/config.yaml [OPTIONS]

  What a trained stage makes of the trajectories it holds out: their loss and
  the squared error of the action, weighted as in training. Nothing is written.

Options:
  --config FILE          The stage's configuration; every run saves one.
  --ckpt_path FILE       Another checkpoint than the stage's own.
  --trainer.OPTION=X, --model.ARGUMENT=X, --data.OPTION=X
                         As of `tailo fit`; `--options` lists all of them.
  --allow PACKAGE        Let configurations name classes of this package.
  -h, --help             This.
"""


def _asked(arguments: tuple[str, ...], command: str, text: str) -> bool:
    """Whether help was asked for, which is then given."""
    if {"-h", "--help"} & set(arguments) or not arguments:
        click.echo(text, nl=False)
        return True
    if "--options" in arguments:
        from tailo_pl.training.fit import show_options

        show_options(command)
    return False


@click.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@trusting
def fit(arguments: tuple[str, ...]) -> None:
    """Train one stage: tailo fit --config RUN/policy/config.yaml."""
    if _asked(arguments, "fit", _FIT_HELP):
        return
    from tailo_pl.commands.console import show_fitted
    from tailo_pl.runs.fitted import as_run
    from tailo_pl.training.fit import fit as fit_stage

    fitted = fit_stage(list(arguments))
    show_fitted(fitted, as_run(fitted))


@click.command(context_settings=PASS_ON, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@trusting
def validate(arguments: tuple[str, ...]) -> None:
    """Error of a trained stage on held-out trajectories."""
    if _asked(arguments, "validate", _VALIDATE_HELP):
        return
    from tailo_pl.commands.console import show_numbers
    from tailo_pl.training.fit import validate as validate_stage

    show_numbers(validate_stage(list(arguments)))
