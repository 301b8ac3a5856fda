"""`tailo play`: episodes of a trained policy as a film."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.evaluation import episode_seeds, play
from tailo_pl.envs.simulator import Drawn
from tailo_pl.errors import UserError, require_range
from tailo_pl.files import whole_file
from tailo_pl.models.acting import actor
from tailo_pl.policies.render import Picture, pictures
from tailo_pl.runs.folder import load_run
from tailo_pl.runs.trained import load_run_policy

SUFFIXES = (".mp4", ".gif")
PICTURES_PER_SECOND = 30  # at most; the film runs as fast as the task does, unless it would be over at once
SHORTEST = 3.0  # seconds of a film
HELD = 1.0  # seconds for which its last picture stays


class Played(NamedTuple):
    """One episode of the film."""

    returned: float
    length: int
    terminated: bool


def record(
    run_dir: Path,
    path: Path,
    *,
    episodes: int = 1,
    seed: int | None = None,
    width: int = 640,
    height: int = 480,
    renderer: str | None = None,
    side_by_side: bool = False,
) -> list[Played]:
    """Play a finished run's policy and write what it does as `.mp4` or `.gif`, whole or not at all.

    A film lasts some seconds: shorter episodes are shown slower, and the last picture stays for a moment.

    Args:
        run_dir: the run.
        path: file to write.
        episodes: how many, one after the other.
        seed: decides the initial states; None: the run's seed.
        width: in pixels, even.
        height: in pixels, even.
        renderer: a value of MUJOCO_GL; None: whichever works without a screen.
        side_by_side: show all episodes at once, `width` each; one that has ended stays as it is.
    """
    _check(path, episodes, width, height)
    experiment = load_run(run_dir)
    environment = experiment.environment
    if environment is None:
        raise UserError(f"{run_dir}: this run has no environment to play in (env=none)")
    policy = load_run_policy(run_dir)
    simulator = environment.simulator(1)
    try:
        if not isinstance(simulator, Drawn):
            name = experiment.names["env"]
            raise UserError(f"{run_dir}: env {name} cannot be filmed, expected one that MuJoCo simulates")
        seeds = episode_seeds(experiment.config["seed"] if seed is None else seed, "play", episodes)
        returns, lengths, terminated = np.zeros(episodes), [0] * episodes, [False] * episodes
        poses: list[list[NDArray[np.float64]]] = [[] for _ in range(episodes)]
        for moment in play(simulator, actor(policy), seeds.tolist()):
            number = int(moment.episodes[0])
            returns[number] += moment.step.rewards[0]
            lengths[number] += 1
            terminated[number] = bool(moment.step.terminated[0])
            poses[number].append(simulator.pose(0))
        model, step_seconds = simulator.model, simulator.step_seconds
    finally:
        simulator.close()
    every = max(1, round(1 / (step_seconds * PICTURES_PER_SECOND)))
    parts = [np.array(episode[::every]) for episode in poses]
    if not side_by_side:
        parts = [np.concatenate(parts)]
    count = max(map(len, parts))
    per_second = min(1 / (step_seconds * every), count / SHORTEST)
    with _film(path, per_second) as film:
        drawn = [pictures(model, part, width, height, renderer) for part in parts]
        last: list[Picture] = []
        for now in zip_longest(*drawn):
            last = [old if new is None else new for new, old in zip(now, last or now, strict=True)]
            film.append_data(np.hstack(last))
        for _ in range(round(per_second * HELD)):
            film.append_data(np.hstack(last))
    return [Played(*one) for one in zip(returns.tolist(), lengths, terminated, strict=True)]


def _check(path: Path, episodes: int, width: int, height: int) -> None:
    require_range("episodes", episodes, 1, closed="[)")
    for name, pixels in (("width", width), ("height", height)):
        require_range(name, pixels, 16, 4096, closed="[]")
        if pixels % 2:
            raise UserError(f"{name}: {pixels} given, expected an even number of pixels")
    if path.suffix not in SUFFIXES:
        raise UserError(f"{path}: cannot write {path.suffix or 'this'}, expected one of {', '.join(SUFFIXES)}")
    if path.exists():
        raise UserError(f"{path}: this file exists; choose another name, or delete it")
    try:
        import imageio.v2  # noqa: F401

        if path.suffix == ".mp4":
            import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise UserError(f"{path}: needs the package {error.name}: pip install 'tailo_pl[video]'") from error


@contextmanager
def _film(path: Path, per_second: float) -> Iterator[Any]:
    """A writer of imageio's that takes pictures in order."""
    import imageio.v2 as imageio

    options: dict[str, Any] = {"duration": 1000 / per_second, "loop": 0}
    if path.suffix == ".mp4":
        options = {"fps": per_second, "macro_block_size": 2}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as scratch:
            named = scratch.with_name(scratch.name + path.suffix)  # imageio goes by the suffix
            try:
                with imageio.get_writer(named, mode="I", **options) as writer:
                    yield writer
                os.replace(named, scratch)
            finally:
                named.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
