"""`tailo push`: a run's policy to the Hugging Face Hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a finished run.")
@click.argument("name", metavar="ORG/NAME", help="The repository; it is made where it is not there.")
@click.option("--private", is_flag=True, help="Make a new repository private.")
@trusting
def push(run_dir: Path, name: str, private: bool) -> None:
    """Upload the policy to the Hub: tailo push RUN org/name."""
    from tailo_pl.policies.hub import push as upload
    from tailo_pl.screen import console

    with tempfile.TemporaryDirectory() as scratch:
        address = upload(run_dir, name, private=private, scratch=Path(scratch))
    console().print(f"pushed {address}", highlight=False, markup=False, soft_wrap=True)
