"""Things that the hand takes hold of: doors that it pulls, knobs that it turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailo_pl.experts.kitchen.arm import Arm, Matrix, Reach, Vector
from tailo_pl.experts.kitchen.skill import CLOSED, FIST, OPEN, SPREAD, STEP, Motion, Skill, turned

_BEGIN = 0.13  # how far before a thing the hand is when it begins to approach


@dataclass(frozen=True, kw_only=True)
class Grasp(Skill):
    """Take hold of something and move it; all of them come from the front with open fingers.

    Args:
        site: where the thing is taken.
        raised: how far above the site.
        depth: how far before it the hand stands then.
        grip: opening of the fingers below which, and above `FIST`, they hold it.
        slack: how far ahead and aside the hand may be meanwhile.
    """

    site: str
    raised: float = 0.0
    depth: float
    grip: float
    slack: tuple[float, float] = (0.045, 0.035)

    def place(self, arm: Arm) -> Vector:
        """Where the thing is taken."""
        place: Vector = arm.site(self.site) + np.array([0.0, 0.0, self.raised])
        return place

    def facing(self, arm: Arm) -> Matrix:
        """How the hand is turned to take the thing as it stands now."""
        return self.rotation

    def seen(self, arm: Arm) -> tuple[Vector, float, float]:
        """Where the hand should be, how far it has to go ahead, and how far it is off to the side."""
        facing = self.facing(arm)
        goal = self.place(arm) - self.depth * facing[:, 2]
        up, side, ahead = facing.T @ (goal - arm.hand)
        return goal, float(ahead), float(np.hypot(up, side))

    def begin(self, arm: Arm) -> Vector:
        return self.place(arm) - _BEGIN * self.facing(arm)[:, 2]

    def holds(self, arm: Arm) -> bool:
        _, ahead, aside = self.seen(arm)
        return FIST < arm.opening < self.grip and -0.03 < ahead < self.slack[0] and aside < self.slack[1]

    def approach(self, arm: Arm) -> Motion | None:
        goal, ahead, aside = self.seen(arm)
        if not -0.06 < ahead < 0.16 or aside > 0.15:
            return None
        # A hand that is off to the side, or not open yet, stays so far behind: it never has to choose between ahead and
        # back, which a policy cloned from it would do half of each.
        behind = min(3 * max(aside - 0.012, 0.0) + 2 * max(SPREAD - arm.opening, 0.0), _BEGIN - self.depth)
        facing = self.facing(arm)
        return Reach(goal - behind * facing[:, 2], facing, OPEN, speed=0.05 if ahead > 0.05 else 0.04)

    def leave(self, arm: Arm, fingers: float) -> Motion | None:
        _, ahead, aside = self.seen(arm)
        if ahead > 0.09 or aside > 0.12 or ahead < -0.1:
            return None
        if arm.opening < SPREAD and ahead < 0.06 and aside < 0.04:
            return Reach(arm.hand, arm.rotation, OPEN)
        return Reach(arm.hand - STEP * self.facing(arm)[:, 2], arm.rotation, OPEN)


@dataclass(frozen=True, kw_only=True)
class Pull(Grasp):
    """A door, pulled by its handle around its hinge.

    Args:
        hinge: x and y of it.
        lead: how far ahead of the handle the hand goes on the circle, radians.
        follow: how far the hand turns with the door: share of the door's angle.
        slow: position of the joint from which on it is pulled slowly.
    """

    hinge: tuple[float, float]
    lead: float
    follow: float = 0.0
    slow: float

    def facing(self, arm: Arm) -> Matrix:
        return turned(yaw=self.follow * float(arm.joints[self.joint])) @ self.rotation

    def contact(self, arm: Arm) -> Motion | None:
        goal, ahead, aside = self.seen(arm)
        facing = self.facing(arm)
        if self.holds(arm):
            place, hinge = self.place(arm), np.array([*self.hinge, 0.0])
            pulled = hinge + turned(yaw=self.lead) @ (place - hinge)
            slowly = abs(arm.joints[self.joint]) > abs(self.slow)
            return Reach(pulled - self.depth * facing[:, 2], facing, CLOSED, speed=0.035 if slowly else STEP)
        if arm.opening > FIST and -0.02 < ahead < 0.012 and aside < 0.015:
            return Reach(goal, facing, CLOSED)
        return None


@dataclass(frozen=True, kw_only=True)
class Turn(Grasp):
    """A knob: the fingers close on its fin and the hand rolls."""

    def facing(self, arm: Arm) -> Matrix:
        return turned(roll=-float(arm.joints[self.joint])) @ self.rotation

    def contact(self, arm: Arm) -> Motion | None:
        goal, ahead, aside = self.seen(arm)
        if arm.opening < FIST or not -0.02 < ahead < 0.012 or aside > 0.035:
            return None
        return Reach(goal, turned(roll=0.4) @ self.facing(arm), CLOSED, speed=0.03, turn=0.3)
