"""A task on the floor seen from above: where TA's states lie, what they are worth, and where the policy goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.plan import Plan
from tailo_pl.errors import UserError
from tailo_pl.report.figure import NEUTRAL, Dash, Figure, Series, picked
from tailo_pl.report.findings import Findings
from tailo_pl.report.reading import RunRecord

if TYPE_CHECKING:
    from tailo_pl.config.experiment import Experiment

EPISODES = 5
_COLD_TO_HOT = (5, 0, 4, 1)  # of the palette: light blue, blue, orange, red
_QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
_PATH = 2


def maze_figures(run: RunRecord, found: Findings | str, key: str, points: int) -> list[Figure]:
    """The maze with TA's states by R and by W, or without either, and the policy's paths; nothing for other tasks.

    What cannot be read is noted in the run's `missing`.
    """
    env = run.config.get("env")  # of a run of another version it may be anything
    if not run.summary or not isinstance(env, dict) or env.get("class_path") is None:
        return []
    plan = _plan_of(run)
    if plan is None:
        return []
    from tailo_pl.runs.folder import load_run  # with all that training needs, which takes seconds to import

    try:
        experiment = load_run(run.path)
        states = _states(run, experiment)
        paths = _paths(experiment, run.path, (run.path / "summary.json").stat().st_mtime_ns)
    except UserError as error:
        run.missing.append(f"the maze is not drawn ({error})")
        return []
    around = [*_plan(plan), _walked(paths)]
    rows = picked(len(states), 4 * points)
    by: list[tuple[str, str, NDArray[Any] | None]] = [("states", "", None)]
    if isinstance(found, Findings) and len(found.rewards) == len(states):
        by = [("reward", " by R(s)", found.rewards), ("weight", " by W(s, a)", found.weights)]
    return [
        Figure(
            f"{key}-maze-{name}",
            f"TA's states{how}, and {len(paths)} episodes of the policy",
            "x",
            "y",
            [*_dots(states[rows], None if values is None else np.asarray(values[rows])), *around],
            kind="map",
            caption="Dots are some of TA's states, in quarters of their worth; lines are where the policy went. "
            "The circle is what counts as the goal.",
        )
        for name, how, values in by
    ]


def _plan_of(run: RunRecord) -> Plan | None:
    """What its environment looks like from above, where that is known."""
    from tailo_pl.config.experiment import read_environment

    try:
        environment = read_environment(dict(run.config))
    except UserError:  # one of somebody's own that cannot be built here: then nothing is missing
        return None
    return None if environment is None else environment.plan


def _states(run: RunRecord, experiment: Experiment) -> NDArray[Any]:
    """x and y of all of TA's steps, if the data is what the run was trained on."""
    if experiment.fingerprint != run.data.get("fingerprint"):
        raise UserError("its data has changed since")
    ta = experiment.task.ta
    return np.concatenate([chunk[:, :2] for chunk in ta.chunks(ta.recording.observations)])


_played: dict[tuple[Path, int], list[NDArray[np.float64]]] = {}  # a page and its figures ask for the same


def _paths(experiment: Experiment, run_dir: Path, changed: int) -> list[NDArray[np.float64]]:
    """Where the trained policy goes in a few episodes."""
    if (run_dir, changed) not in _played:
        _played[run_dir, changed] = _play(experiment, run_dir)
    return _played[run_dir, changed]


def _play(experiment: Experiment, run_dir: Path) -> list[NDArray[np.float64]]:
    from tailo_pl.envs.evaluation import episode_seeds, play
    from tailo_pl.models.acting import actor
    from tailo_pl.runs.trained import load_run_policy

    assert experiment.environment is not None
    policy = load_run_policy(run_dir)
    seeds = episode_seeds(experiment.config["seed"], "report", EPISODES)
    simulator = experiment.environment.simulator(min(EPISODES, experiment.environment.rows))
    places: list[list[NDArray[np.float64]]] = [[] for _ in range(EPISODES)]
    try:
        for moment in play(simulator, actor(policy), seeds.tolist()):
            for episode, before, after in zip(
                moment.episodes, moment.observations, moment.step.observations, strict=True
            ):
                places[episode] += [before[:2]] if not places[episode] else []
                places[episode].append(after[:2])
    finally:
        simulator.close()
    return [np.array(one) for one in places]


def _dots(states: NDArray[Any], values: NDArray[Any] | None) -> list[Series]:
    if values is None:
        return [Series("states of TA", states[:, 0], states[:, 1], color=_COLD_TO_HOT[0], dots=True)]
    quarter = np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values)
    return [
        Series(name, states[quarter == number, 0], states[quarter == number, 1], color=color, dots=True)
        for number, (name, color) in enumerate(zip(_QUARTERS, _COLD_TO_HOT, strict=True))
        if (quarter == number).any()
    ]


def _walked(paths: list[NDArray[np.float64]]) -> Series:
    return _lines("policy", [path[picked(len(path), 100)] for path in paths], _PATH)


def _plan(plan: Plan) -> list[Series]:
    walls = [np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]) for x0, y0, x1, y1 in plan.walls]
    return [
        *([_lines("walls", walls, NEUTRAL)] if walls else []),
        Series("start", plan.start[:1], plan.start[1:], color=3),
        _lines("goal", [plan.circle()], 3, "dashed"),
    ]


def _lines(name: str, pieces: list[NDArray[np.float64]], color: int, dash: Dash = "solid") -> Series:
    """Several lines as one, with a gap between them."""
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([part for piece in pieces for part in (piece, gap)])
    return Series(name, points[:, 0], points[:, 1], color=color, dash=dash)
