"""The bodies that can be simulated: gymnasium's stock models, and two that differ from them on purpose.

The setting `mismatch` learns from an expert whose body is not the learner's. Both changed bodies keep the joints
and the motors of the stock model, so observations and actions keep their dimensions and their meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gymnasium
import mujoco

from tailo_pl.errors import UserError

STOCK = "stock"

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


def _cripple_leg(spec: mujoco.MjSpec) -> None:
    """Cut the power of the leg `right_back_leg`: its hip and ankle still swing within their limits, but cannot push.

    Its two entries of the action have no effect, and cost as much as before.
    """
    for motor in spec.actuators:
        if motor.target in ("hip_4", "ankle_4"):
            motor.gear[0] = 0.0


_CHANGES: dict[tuple[str, str], Callable[[mujoco.MjSpec], None]] = {
    ("ant", "crippled-leg"): _cripple_leg,
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
    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / _MODEL_FILES[task]
    if body == STOCK:
        return mujoco.MjModel.from_xml_path(str(file))
    spec = mujoco.MjSpec.from_file(str(file))
    _CHANGES[task, body](spec)
    return spec.compile()
