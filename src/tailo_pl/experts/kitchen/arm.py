"""The arm's controller: from where the hand should go to an action, by damped least squares.

FrankaKitchen takes an action as the offset of the actuators' targets from the joints' positions. Its position actuators
realise a fixed share of an offset within a step, and nothing holds the arm up but such an offset.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.kitchen_tasks import ARM

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# An action of 1 moves a target by the bound of a joint's speed over the time of a step.
_OFFSET = 0.16
# Stiffness of the position actuators, and the share of an offset that a joint covers within a step (measured).
_STIFFNESS = np.array([870.0] * 4 + [120.0] * 3)
_REALISED = np.array([0.5] * 4 + [0.617] * 3)
# Kept this far inside the joints' limits, at which the arm would stand.
_LOW = np.array([-2.85, -1.72, -2.85, -3.02, -2.85, 0.02, -2.85])
_HIGH = np.array([2.85, 1.72, 2.85, -0.45, 2.85, 2.07, 2.85])
_DAMPING = 0.03
# Where the hand's pose leaves the arm free, it drifts to the pose in which FrankaKitchen starts.
_POSTURE = np.array([0.14838802, -1.76848573, 1.84390296, -2.47685760, 0.26025203, 0.71253311, 1.59515394])
_POSTURE_GAIN = 0.05
_POSTURE_STEP = 0.05


@dataclass(frozen=True)
class Reach:
    """Move the hand to a pose.

    Args:
        position: of the hand.
        rotation: of the hand.
        fingers: 1 opens them, -1 closes them.
        speed: metres a step, at most.
        turn: radians a step, at most.
    """

    position: Vector
    rotation: Matrix
    fingers: float
    speed: float = 0.05
    turn: float = 0.12


@dataclass(frozen=True)
class Pose:
    """Move the joints straight to a pose.

    Args:
        joints: of the arm.
        fingers: 1 opens them, -1 closes them.
    """

    joints: Vector
    fingers: float


class Arm:
    """Looks at the simulated arm and turns motions into actions.

    Args:
        model: of the kitchen.
        data: its state, which others change.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._hand = model.site("end_effector").id
        self._sites: dict[str, int] = {}

    @property
    def joints(self) -> Vector:
        """Positions of all joints of the kitchen, the arm's first."""
        positions: Vector = self._data.qpos
        return positions

    @property
    def hand(self) -> Vector:
        """Where the hand is."""
        position: Vector = self._data.site_xpos[self._hand].copy()
        return position

    @property
    def rotation(self) -> Matrix:
        """How the hand is turned: its columns point up, along the fingers' opening, and ahead."""
        rotation: Matrix = self._data.site_xmat[self._hand].reshape(3, 3).copy()
        return rotation

    @property
    def opening(self) -> float:
        """Distance of the fingers: 0.08 open, 0 closed on nothing."""
        return float(self._data.qpos[ARM] + self._data.qpos[ARM + 1])

    def site(self, name: str) -> Vector:
        """Where a site of the kitchen is."""
        if name not in self._sites:
            self._sites[name] = self._model.site(name).id
        position: Vector = self._data.site_xpos[self._sites[name]].copy()
        return position

    def action(self, motion: Reach | Pose) -> Vector:
        """The action that moves the arm by one step of a motion, its weight held up."""
        change = self._towards(motion) if isinstance(motion, Reach) else motion.joints - self._data.qpos[:ARM]
        offset, weight = change / _REALISED, self._data.qfrc_bias[:ARM] / _STIFFNESS
        room = _OFFSET - np.abs(weight)
        offset *= min(1.0, float(np.min(room / np.maximum(np.abs(offset), 1e-9))))
        action: Vector = np.clip(np.append((offset + weight) / _OFFSET, [motion.fingers] * 2), -1.0, 1.0)
        return action

    def _towards(self, motion: Reach) -> Vector:
        """Change of the joints: least squares on the hand's pose, without joints that would leave their limits."""
        along = _shortened(motion.position - self.hand, motion.speed)
        about = _shortened(rotation_vector(motion.rotation @ self.rotation.T), motion.turn)
        error, jacobian = np.append(along, about), self._jacobian()
        joints, free = self._data.qpos[:ARM], np.ones(ARM, dtype=bool)
        while True:
            moving = jacobian * free
            inverse = moving.T @ np.linalg.inv(moving @ moving.T + _DAMPING**2 * np.eye(6))
            posture = np.clip(_POSTURE_GAIN * (_POSTURE - joints), -_POSTURE_STEP, _POSTURE_STEP)
            change: Vector = inverse @ error + (np.diag(free.astype(float)) - inverse @ moving) @ posture
            after = joints + change
            stopped = free & (((after < _LOW) & (change < 0)) | ((after > _HIGH) & (change > 0)))
            if not stopped.any():
                back = np.clip(np.clip(joints, _LOW, _HIGH) - joints, -_POSTURE_STEP, _POSTURE_STEP)
                return np.where(free, change, back)
            free &= ~stopped

    def _jacobian(self) -> Matrix:
        position, rotation = np.zeros((3, self._model.nv)), np.zeros((3, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, position, rotation, self._hand)
        return np.vstack([position, rotation])[:, :ARM]


def rotation_vector(rotation: Matrix) -> Vector:
    """Axis times angle."""
    quaternion, vector = np.zeros(4), np.zeros(3)
    mujoco.mju_mat2Quat(quaternion, rotation.ravel())
    mujoco.mju_quat2Vel(vector, quaternion, 1.0)
    return vector


def _shortened(vector: Vector, length: float) -> Vector:
    return vector * min(1.0, length / max(float(np.linalg.norm(vector)), 1e-9))
