"""`tailo export`: a run's policy, its normalisation inside, for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tailo_pl.commands.options import PATH, trusting

if TYPE_CHECKING:
    from tailo_pl.policies.export import Exported

_USAGE = {
    "onnx": """\
import gymnasium
from tailo_pl import load_policy# or onnxruntime alone: input "states", output "actions", float32

policy = load_policy("{path}")
env = gymnasium.make("YOUR-ENV")
observation, _ = env.reset(seed=0)
done = False
while not done:
    observation, reward, terminated, truncated, _ = env.step(policy(observation))
    done = terminated or truncated
""",
    "torch_export": """\
import torch

# torch.export.load unpickles: only for files you made yourself
policy = torch.export.load("{path}").module()
with torch.inference_mode():
    actions = policy(torch.zeros(1, {dim}))   # raw states, any number of rows
""",
}


@click.command()
@click.argument("run_dir", type=PATH, metavar="RUN", help="Folder of a finished run.")
@click.option("--format", "formats", multiple=True, help="onnx, torch_export or hub.  [default: the first two]")
@click.option("--out", type=PATH, help="Folder to write to.  [default: RUN/export]")
@trusting
def export(run_dir: Path, formats: tuple[str, ...], out: Path | None) -> None:
    """Write the policy as ONNX, torch.export or for the Hub."""
    from tailo_pl.policies.export import export as write
    from tailo_pl.runs.inside import require_inside
    from tailo_pl.screen import console

    files = [one for one in formats if one != "hub"]
    if files or not formats:
        show(write(run_dir, files, out), run_dir)
    if "hub" in formats:
        from tailo_pl.policies.hub import write_hub_folder

        folder = write_hub_folder(run_dir, (out or require_inside(run_dir / "export", run_dir)) / "hub")
        console().print(f"hub {folder}: weights, configuration and a model card", highlight=False, soft_wrap=True)


def show(written: Sequence[Exported], run_dir: Path) -> None:
    """The outcome of `tailo export`: the files, and how other programs use them."""
    from rich.table import Table

    from tailo_pl import screen
    from tailo_pl.policies.export import CHECKED_STATES

    table = Table(title=f"policy of {run_dir}")
    table.add_column("format")
    table.add_column("max difference", justify="right")
    table.add_column("file", overflow="fold")
    for one in written:
        table.add_row(one.format, f"{one.difference:.1e}", str(one.path))
    screen.show(table)
    out = screen.console()
    out.print(f"checked against the original on {CHECKED_STATES:,} states", highlight=False)
    for one in written:
        example = _USAGE[one.format].format(path=one.path, dim=one.observation_dim)
        out.print(f"\n# {one.format}\n{example}", highlight=False, markup=False, soft_wrap=True, end="")
