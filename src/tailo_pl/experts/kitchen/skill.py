"""Skills: what the arm does next is decided from what can be seen alone.

Nothing is counted or remembered: where the hand is, how far the fingers are open and how far the thing has moved decide
the next motion. So a hand that missed, lost a handle or was pushed away goes on from where it is, and whoever sees the
state can tell what the demonstrator will do, which is all that a cloned policy has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tailo_pl.experts.kitchen.arm import Arm, Matrix, Pose, Reach, Vector

Motion = Reach | Pose

OPEN, CLOSED = 1.0, -1.0
FIST = 0.02  # opening below which the fingers count as closed
SPREAD = 0.07  # and above which as open
NEAR = 0.25  # a hand this near to where an approach begins goes there straight, else the joints go to `pose`
STEP = 0.06


def turned(yaw: float = 0.0, roll: float = 0.0, pitch: float = 0.0) -> Matrix:
    """Rotation about z, of that about y, of that about x."""
    (cz, sz), (cy, sy), (cx, sx) = ((np.cos(angle), np.sin(angle)) for angle in (yaw, roll, pitch))
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    rotation: Matrix = about_z @ about_y @ about_x
    return rotation


# The hand looks along +y, its fingers open along x; columns as of `Arm.rotation`.
_AHEAD = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


@dataclass(frozen=True, kw_only=True)
class Skill(ABC):
    """How one thing is moved.

    Args:
        joint: of the kitchen that moves.
        until: its position from which on the hand lets go: well beyond where the subtask counts as done.
        enough: its position beyond which it is left alone where the hand has let go: a thing may swing back a little.
        yaw: of the hand, about the vertical.
        pitch: of the hand, about its side.
        pose: joints of the arm from which the approach begins.
        fingers: of the hand that approaches.
    """

    joint: int
    until: float
    enough: float
    yaw: float
    pitch: float
    pose: tuple[float, ...]
    fingers: float

    def finished(self, arm: Arm) -> bool:
        """Whether the thing is where it should be."""
        direction = np.sign(self.until)
        moved = direction * arm.joints[self.joint]
        return bool(moved > direction * (self.until if self.holds(arm) else self.enough))

    @property
    def rotation(self) -> Matrix:
        """How the hand is turned when it approaches."""
        rotation: Matrix = turned(yaw=self.yaw, pitch=self.pitch) @ _AHEAD
        return rotation

    @abstractmethod
    def holds(self, arm: Arm) -> bool:
        """Whether the hand is in contact with the thing, ready to move it."""

    @abstractmethod
    def contact(self, arm: Arm) -> Motion | None:
        """The motion that moves the thing; None where the hand is not in the place for it."""

    @abstractmethod
    def begin(self, arm: Arm) -> Vector:
        """Where the approach begins."""

    @abstractmethod
    def approach(self, arm: Arm) -> Motion | None:
        """The motion from where the approach begins to the contact; None where the hand is not on this way."""

    @abstractmethod
    def leave(self, arm: Arm, fingers: float) -> Motion | None:
        """The motion away from the thing, the fingers as they are wanted next; None: the hand is far enough from it."""

    def motion(self, arm: Arm) -> Motion:
        """What to do next."""
        on_the_way = self.contact(arm) or self.approach(arm) or self.leave(arm, self.fingers)
        if on_the_way is not None:
            return on_the_way
        start = self.begin(arm)
        if np.linalg.norm(start - arm.hand) < NEAR:
            return Reach(start, self.rotation, self.fingers, turn=0.2)
        return Pose(np.array(self.pose), self.fingers)
