"""The trained modules of a run."""

from __future__ import annotations

from pathlib import Path

from tailo_pl.errors import UserError, one_line
from tailo_pl.files import require_name
from tailo_pl.models.policy import PolicyModule
from tailo_pl.runs.summary import read_summary
from tailo_pl.training.checkpoints import ModuleT, load_checkpoint


def load_module(run_dir: Path, stage: str, kind: type[ModuleT]) -> ModuleT:
    """The trained module of a finished stage, on the CPU, ready to use."""
    return load_checkpoint(run_dir / stage / "checkpoints" / "last.ckpt", kind)


def load_run_policy(run_dir: Path) -> PolicyModule:
    """The trained policy of a finished run."""
    summary = read_summary(run_dir)
    if failure := summary["failure"]:
        raise UserError(
            f"{run_dir}: stage {one_line(failure['stage'])} ended in a numerical error at step {failure['step']}"
        )
    last = require_name(f"{run_dir / 'summary.json'}: stages", summary["stages"][-1]["stage"])
    return load_module(run_dir, last, PolicyModule)
