"""Antmaze data: the heading policy walks through the maze, random actions, and the path of a point mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tailo_pl.data.recorder import record
from tailo_pl.data.sources.recipe import Part, Recipe, version_of
from tailo_pl.data.sources.rollouts import reporter, seeds
from tailo_pl.data.trajectories import Recording, Trajectories
from tailo_pl.envs import umaze
from tailo_pl.envs.bodies import STOCK
from tailo_pl.envs.evaluation import Actor, episode_seeds
from tailo_pl.errors import UserError, require_range
from tailo_pl.experts import expert_checksum, load_expert
from tailo_pl.experts.heading import pursue, walk

WALKER = "ant-heading"
NOISE_SHARES = (0.25, 0.5, 0.75, 1.0)
"""Of the walker's exploration noise; as many steps with each, so that the data knows the way back to the path."""
ARRIVED = 0.25
"""How near its goal a walker stops: well within what counts as success, so that the data shows the way there from all
sides."""
RANDOM_HORIZON = 1001  # as the authors recorded random actions, for which time alone ends an episode
RANDOM_NOISE = 0.2
ERRAND_HORIZON = 350
ROWS = 64
POINT_SPEED = 2.5  # cells a second: about 240 states
_TRIES = 8


@dataclass(frozen=True)
class Walks:
    """Episodes of one kind.

    Args:
        origin: label of the trajectories.
        noise_shares: of the walker's exploration noise, as many steps with each; none: random actions.
        steps: how many steps all of them have; None: one episode that reaches the goal.
        goals: where they go.
        horizon: steps after which an episode ends.
        reached: how near to its goal an episode ends; 0: time alone ends it.
    """

    origin: str
    noise_shares: tuple[float, ...]
    steps: int | None
    goals: umaze.Goals = "fixed"
    horizon: int = umaze.HORIZON
    reached: float = ARRIVED


class AntMazeRecipe(Recipe):
    """Parts `goal` (start to goal), `diverse` (from anywhere to anywhere), `random`, `demonstration` and `point`.

    A demonstration is one trajectory to the goal without noise; `point` is a point mass that goes the same way in a
    maze with coordinates of its own, x and y swapped.

    Args:
        body: the ant's; the walker learnt in the stock one, in D4RL's only random actions make sense.
        goal_steps: how many steps `goal` has.
        diverse_steps: how many `diverse` has.
        random_steps: how many `random` has.
    """

    def __init__(
        self,
        body: str = STOCK,
        goal_steps: int = 350_000,
        diverse_steps: int = 350_000,
        random_steps: int = 350_000,
    ) -> None:
        for name, steps in (("goal", goal_steps), ("diverse", diverse_steps), ("random", random_steps)):
            require_range(f"env.data.{name}_steps", steps, 1, closed="[)")
        self._body = body
        walks = {"random": Walks("random", (), random_steps, horizon=RANDOM_HORIZON, reached=0.0)}
        if body == STOCK:
            walks["goal"] = Walks("goal", NOISE_SHARES, goal_steps)
            walks["diverse"] = Walks("diverse", NOISE_SHARES, diverse_steps, "errands", ERRAND_HORIZON)
            walks["demonstration"] = Walks("goal", (0.0,), None)  # labelled as what it is an example of
        self._walks = walks

    @property
    def parts(self) -> dict[str, Part]:
        body, walks = self._body, self._walks
        made = {name: Part(_identity(body, one), partial(make, body, one), body) for name, one in walks.items()}
        return {**made, "point": Part({"maker": 1, **_versions("gymnasium-robotics")}, point_path)}


def _identity(body: str, walks: Walks) -> dict[str, object]:
    """What decides a part besides its seed."""
    checksum = expert_checksum(WALKER) if walks.noise_shares else None
    return {
        "maker": 1,
        "rows": ROWS,
        "body": body,
        **vars(walks),
        "noise_shares": list(walks.noise_shares),
        "sha256": checksum,
        **_versions("gymnasium"),  # its model is the ant
    }


def _versions(*packages: str) -> dict[str, object]:
    return {package: version_of(package) for package in ("mujoco", *packages)}


def make(body: str, walks: Walks, seed: int) -> Trajectories:
    """Walk a part, all cores at work.

    Matrix products run on one thread: their last digits depend on the number of threads, and here the last digit
    decides everything a few hundred steps later. The simulator's threads do not share sums.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        if walks.steps is None:
            return _one_success(body, walks, seed)
        levels = len(walks.noise_shares) or 1
        progress = reporter(f"antmaze {walks.origin}", walks.steps)
        made = [_walked(body, walks, number, walks.steps // levels, seed, progress) for number in range(levels)]
    return Trajectories.stack(made)


def _walked(
    body: str, walks: Walks, level: int, steps: int | None, seed: int, progress: Callable[[int], None]
) -> Trajectories:
    """Episodes with one of the shares of noise."""
    from tailo_pl.envs.antmaze import AntMazeRows  # here: to list data needs no simulator

    stream = f"data/antmaze/{walks.origin if steps else 'demonstration'}/{level}"
    rng = np.random.default_rng(int(episode_seeds(seed, stream, 1)[0]))
    simulator = AntMazeRows(
        ROWS if steps else _TRIES,
        body=body,
        goals=walks.goals,
        show_goal=True,
        reached=walks.reached,
        horizon=walks.horizon,
    )
    actor = _walker(walks.noise_shares[level], rng) if walks.noise_shares else _random(rng)
    try:
        episodes = seeds(seed, stream, None if steps else _TRIES)
        recording = record(simulator, actor, episodes, steps=steps, progress=progress)
    finally:
        simulator.close()
    return Trajectories.of(_without_goal(recording), walks.origin)


def _one_success(body: str, walks: Walks, seed: int) -> Trajectories:
    tried = _walked(body, walks, 0, None, seed, lambda steps: None)
    terminals = tried.recording.terminals
    assert terminals is not None
    reached = np.flatnonzero(np.logical_or.reduceat(terminals, tried.offsets[:-1]))
    if not len(reached):
        raise UserError(f"antmaze {walks.origin}: none of {_TRIES} episodes with seed {seed} reached the goal")
    return tried.take(reached[:1])


def _without_goal(recording: Recording) -> Recording:
    """The states alone: where an episode was going stays its secret."""
    from tailo_pl.envs.antmaze import STATE_DIM

    observations = np.ascontiguousarray(recording.observations[:, :STATE_DIM])
    return Recording(**{**vars(recording), "observations": observations})


def _walker(noise_share: float, rng: np.random.Generator) -> Actor:
    from tailo_pl.envs.antmaze import STATE_DIM

    policy = load_expert(WALKER)

    def act(observations: NDArray[np.float64]) -> NDArray[np.float32]:
        states, goals = observations[:, :STATE_DIM], observations[:, STATE_DIM:]
        return walk(policy, states, pursue(states[:, :2], goals), noise_share, rng)

    return act


def _random(rng: np.random.Generator) -> Actor:
    def act(observations: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = (len(observations), 8)
        return np.clip(rng.uniform(-1.0, 1.0, shape) + RANDOM_NOISE * rng.standard_normal(shape), -1.0, 1.0)

    return act


def point_path(seed: int) -> Trajectories:
    """One trajectory of the point mass, pulled along the centre line."""
    from tailo_pl.envs.point_in_umaze import point_rows

    goal = umaze.GOAL[None]

    def act(observations: NDArray[np.float64]) -> NDArray[np.float64]:
        place, velocity = observations[:, :2] * umaze.CELL + 4.0, observations[:, 2:]
        heading = pursue(place, goal)
        wanted = POINT_SPEED * np.stack([np.cos(heading), np.sin(heading)], axis=1)
        return np.clip(2.0 * (wanted - velocity), -1.0, 1.0)

    simulator = point_rows()
    try:
        recording = record(simulator, act, seeds(seed, "data/antmaze/point", 1))
    finally:
        simulator.close()
    swapped = np.ascontiguousarray(recording.observations[:, [1, 0, 3, 2]])
    return Trajectories.of(Recording(**{**vars(recording), "observations": swapped}), "point")
