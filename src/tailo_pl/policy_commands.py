"""The commands that take a policy out of a run: `tailo export` and `tailo play`."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

from rich.table import Table

from tailo_pl.screen import console, show

USAGE = {
    "onnx": """\
import gymnasium
from tailo_pl import load_policy   # or onnxruntime alone: input "states", output "actions", float32

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


def export(parser: ArgumentParser, arguments: list[str]) -> None:
    """Run `tailo export ...`."""
    parser.description = "Write a run's policy, its normalisation inside, for other programs."
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--format", action="append", default=[], help="onnx or torch_export (default: both)")
    parser.add_argument("--out", type=Path, default=None, help="folder to write to (default: RUN/export)")
    options = parser.parse_args(arguments)

    from tailo_pl.export import CHECKED_STATES
    from tailo_pl.export import export as write

    written = write(options.run, options.format, options.out)
    shown = Table(title=f"policy of {options.run}")
    shown.add_column("format")
    shown.add_column("max difference", justify="right")
    shown.add_column("file", overflow="fold")
    for one in written:
        shown.add_row(one.format, f"{one.difference:.1e}", str(one.path))
    show(shown)
    out = console()
    out.print(f"checked against the original on {CHECKED_STATES:,} states", highlight=False)
    for one in written:
        example = USAGE[one.format].format(path=one.path, dim=one.observation_dim)
        out.print(f"\n# {one.format}\n{example}", highlight=False, markup=False, soft_wrap=True, end="")


def play(parser: ArgumentParser, arguments: list[str]) -> None:
    """Run `tailo play ...`."""
    parser.description = "Film a finished run's policy at work."
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--out", type=Path, default=Path("play.mp4"), help="default play.mp4; also .gif")
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None, help="decides the initial states (default: the run's seed)")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    options = parser.parse_args(arguments)

    renderer = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = "disable"  # here: the process that draws gets it, and a bad choice would end the import
    try:
        from tailo_pl.video import record

        played = record(
            options.run,
            options.out,
            episodes=options.episodes,
            seed=options.seed,
            width=options.width,
            height=options.height,
            renderer=renderer,
        )
    finally:
        del os.environ["MUJOCO_GL"]
        if renderer is not None:
            os.environ["MUJOCO_GL"] = renderer
    shown = Table(title=f"episodes of {options.run}")
    for column in ("episode", "return", "length", "ended by itself"):
        shown.add_column(column, justify="right")
    for number, one in enumerate(played):
        shown.add_row(str(number), f"{one.returned:.2f}", f"{one.length:,}", "yes" if one.terminated else "no")
    show(shown)
    console().print(f"film {options.out}", highlight=False, soft_wrap=True)
