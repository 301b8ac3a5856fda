"""Fresh episodes of a finished run's policy."""

from __future__ import annotations

from pathlib import Path

from tailo_pl.envs.evaluation import Episodes, Evaluation, episode_seeds, run_episodes, summarise
from tailo_pl.errors import UserError, require_range
from tailo_pl.models.acting import actor
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.summary import read_summary
from tailo_pl.runs.trained import load_run_policy


def evaluate(run_dir: Path, episodes: int, seed: int | None = None) -> tuple[Episodes, Evaluation]:
    """Play a finished run's policy for fresh episodes.

    Args:
        run_dir: the run.
        episodes: how many.
        seed: decides the initial states; None: the run's seed.

    Returns:
        The episodes, and what they come to.
    """
    require_range("episodes", episodes, 1, closed="[)")
    experiment, summary = load_run(run_dir), read_summary(run_dir)
    environment = experiment.environment
    if environment is None:
        raise UserError(f"{run_dir}: this run has no environment to play in (env=none)")
    policy = load_run_policy(run_dir)
    simulator = environment.simulator(min(episodes, environment.rows))
    try:
        seeds = episode_seeds(experiment.config["seed"] if seed is None else seed, "evaluate", episodes)
        played = run_episodes(simulator, actor(policy), seeds, environment)
    finally:
        simulator.close()
    return played, summarise(played, environment, summary["stages"][-1]["steps"])
