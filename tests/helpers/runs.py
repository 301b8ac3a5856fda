"""Small real runs, trained in this process."""

from __future__ import annotations

from pathlib import Path

from tailo_pl.config.compose import composed
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import prepare


def small(steps: int, *overrides: str) -> tuple[str, ...]:
    """Overrides of a run of so many steps per stage on the CPU; later ones hold.

    In float32 everywhere: `auto` would mean other numbers on other machines.
    """
    baselines = (f"baselines.{kind}steps" for kind in ("discriminator_", "", "td_", "dilo_", "dwbc_"))
    budget = ("pretrain_steps", "formal_steps", "policy_steps", *baselines)
    usual = (
        *(f"preset.{name}={steps}" for name in budget),
        "preset.rollout.episodes=1",
        "preset.rollout.every_n_steps=0",
        "preset.settled.patience=0",  # they take their steps, whatever their data says
        "preset.held_out.patience=0",
        "trainer=cpu",
        "trainer.precision=32-true",
    )
    chosen = dict(override.split("=", 1) for override in (*usual, *overrides))
    return tuple(f"{key}={value}" for key, value in chosen.items())


SMALL = small(20)


def small_run(folder: Path, *overrides: str) -> Path:
    """A finished run of a few steps per stage; `folder` is where runs are written."""
    run_dir = prepare(composed([*SMALL, f"runs={folder}", "name=small", *overrides]))
    execute(run_dir)
    return run_dir
