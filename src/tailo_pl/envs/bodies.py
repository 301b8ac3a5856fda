"""The bodies that can be simulated: gymnasium's stock models, and some that differ from them on purpose.

The setting `mismatch` learns from an expert whose body is not the learner's. All changed bodies keep the joints
and the motors of the stock model, so observations and actions keep their dimensions and their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError

if TYPE_CHECKING:  # to name a body needs no simulator
    import mujoco

STOCK = "stock"
D4RL = "d4rl"
MAZE_BODIES = (STOCK, D4RL)
OVERVIEW = "overview"
"""The camera above a maze."""

# The models that gymnasium's `-v4` environments load.
_MODEL_FILES = {
    "ant": "ant.xml",
    "halfcheetah": "half_cheetah.xml",
    "hopper": "hopper.xml",
    "walker2d": "walker2d.xml",
}
TASKS = tuple(_MODEL_FILES)


def _halve_torso(spec: mujoco.MjSpec) -> None:
    """Make the torso half as long; thighs and head move inwards with its ends.

    The stock model fixes the total mass (`settotalmass`), so the whole body still weighs the same.
    """
    torso = spec.geom("torso")
    half_length = torso.fromto[3] / 2
    torso.fromto = [-half_length, 0, 0, half_length, 0, 0]
    for end, sign in (("bthigh", -1), ("fthigh", 1)):
        spec.body(end).pos[0] = sign * half_length
    spec.geom("head").pos[0] -= half_length


def _cripple_leg(spec: mujoco.MjSpec, leg: int) -> None:
    """Cut the power of a leg: its hip and ankle still swing within their limits, but cannot push.

    Its two entries of the action have no effect, and cost as much as before.
    """
    for motor in spec.actuators:
        if motor.target in (f"hip_{leg}", f"ankle_{leg}"):
            motor.gear[0] = 0.0


LEGS = {1: "front left", 2: "front right", 3: "back left", 4: "back right"}
"""The ant's legs, by the numbers of their joints."""


def crippled(leg: int) -> str:
    """The body of an ant with one leg without power."""
    return "crippled-leg" if leg == 4 else f"crippled-leg-{leg}"


_CHANGES: dict[tuple[str, str], Callable[[mujoco.MjSpec], None]] = {
    **{("ant", crippled(leg)): partial(_cripple_leg, leg=leg) for leg in (4, 1, 2, 3)},
    ("halfcheetah", "half-torso"): _halve_torso,
}


def bodies(task: str) -> tuple[str, ...]:
    """Names of the bodies that `task` can be done with, the stock one first."""
    if task not in _MODEL_FILES:
        raise UserError(f"task: {task!r} is unknown, expected one of {', '.join(TASKS)}")
    return (STOCK, *(body for of_task, body in _CHANGES if of_task == task))


def load_model(task: str, body: str = STOCK) -> mujoco.MjModel:
    """Compile the model of a task.

    Args:
        task: one of `TASKS`.
        body: one of `bodies(task)`.
    """
    if body not in bodies(task):
        raise UserError(f"body: {task} has no body {body!r}, expected one of {', '.join(bodies(task))}")
    import mujoco

    file = _model_file(task)
    if body == STOCK:
        return mujoco.MjModel.from_xml_path(str(file))
    spec = mujoco.MjSpec.from_file(str(file))
    _CHANGES[task, body](spec)
    return spec.compile()


def ant_in_walls(
    body: str, walls: NDArray[np.float64], half_sizes: NDArray[np.float64], goal: NDArray[np.float64]
) -> mujoco.MjModel:
    """Compile the ant among walls, with a mark at the goal and a camera above that has all walls in sight.

    Args:
        body: `stock`, or `d4rl`, the ant of D4RL's mazes: a fifth of the torque, half as many physics steps a second
            and softer contacts.
        walls: centre of each box.
        half_sizes: half the boxes' extent along each axis.
        goal: x and y.
    """
    import mujoco

    if body not in MAZE_BODIES:
        raise UserError(f"body: the ant in a maze has no body {body!r}, expected one of {', '.join(MAZE_BODIES)}")
    spec = mujoco.MjSpec.from_file(str(_model_file("ant")))
    for number, place in enumerate(walls):
        box = spec.worldbody.add_geom(name=f"wall_{number}", type=mujoco.mjtGeom.mjGEOM_BOX, pos=place, size=half_sizes)
        box.contype = box.conaffinity = 1
        box.rgba = [0.7, 0.5, 0.3, 1.0]
    spec.worldbody.add_site(
        name="goal",
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        pos=[*goal, 0.01],
        size=[0.5, 0.005, 0],
        rgba=[0.9, 0.1, 0.1, 1],
    )
    low, high = (walls - half_sizes).min(0), (walls + half_sizes).max(0)
    middle, distance = (low + high) / 2, 1.5 * float((high - low)[:2].max())
    # MuJoCo sees 45 degrees from the lower to the upper edge; this keeps the walls off both.
    spec.worldbody.add_camera(name=OVERVIEW, pos=[middle[0], middle[1], distance])
    model = spec.compile()
    if body == D4RL:
        model.opt.timestep = 0.02
        model.actuator_gear[:, 0] = 30.0
        model.geom_solimp[:, :3] = 0.8, 0.8, 0.01
    return model


def _model_file(task: str) -> Path:
    import gymnasium

    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / _MODEL_FILES[task]
