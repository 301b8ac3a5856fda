"""`tailo export`: a run's policy, its normalisation inside, for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from tailo_pl.commands.options import PATH, trusting


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a finished run.")
@click.option("--format", "formats", multiple=True, help="onnx or torch_export.  [default: both]")
@click.option("--out", type=PATH, help="Folder to write to.  [default: RUN/export]")
@trusting
def export(run_dir: Path, formats: tuple[str, ...], out: Path | None) -> None:
    """Write the policy as ONNX and torch.export: tailo export RUN."""
    from tailo_pl.commands.console import show_exported
    from tailo_pl.policies.export import export as write

    show_exported(write(run_dir, list(formats), out), run_dir)
