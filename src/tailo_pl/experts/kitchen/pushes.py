"""Things that the hand pushes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailo_pl.experts.kitchen.arm import Arm, Reach, Vector
from tailo_pl.experts.kitchen.skill import CLOSED, FIST, SPREAD, STEP, Motion, Skill


@dataclass(frozen=True, kw_only=True)
class Push(Skill):
    """Something that is pushed, from a place beside it to which the hand comes from the front.

    Places are relative to what is pushed, in the kitchen's axes.

    Args:
        site: what is pushed: a site of the kitchen that moves along, or
        at: a place that does not.
        start: where the approach begins.
        touch: where pushing begins.
        target: where to the hand pushes.
        low, high: box around the hand within which it pushes.
        speed: metres a step.
    """

    site: str = ""
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    start: tuple[float, float, float]
    touch: tuple[float, float, float]
    target: tuple[float, float, float]
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    speed: float

    def place(self, arm: Arm) -> Vector:
        """Where the thing is."""
        return arm.site(self.site) if self.site else np.array(self.at)

    def begin(self, arm: Arm) -> Vector:
        return self.place(arm) + self.start

    def ready(self, arm: Arm) -> bool:
        """Whether the fingers are as they should be."""
        return arm.opening < FIST if self.fingers == CLOSED else arm.opening > SPREAD

    def holds(self, arm: Arm) -> bool:
        hand = arm.hand - self.place(arm)
        return bool((hand > self.low).all() and (hand < self.high).all())

    def contact(self, arm: Arm) -> Motion | None:
        return self.pushing(arm) if self.holds(arm) else None

    def pushing(self, arm: Arm) -> Motion:
        """The motion in contact."""
        return Reach(self.place(arm) + self.target, self.rotation, self.fingers, speed=self.speed)

    def approach(self, arm: Arm) -> Motion | None:
        start, touch = np.array(self.start), np.array(self.touch)
        way = (touch - start) / np.linalg.norm(touch - start)
        left = touch - (arm.hand - self.place(arm))
        ahead = float(left @ way)
        aside = float(np.linalg.norm(left - ahead * way))
        reach = float(np.linalg.norm(touch - start)) + 0.03
        if not self.ready(arm) or not 0.0 < ahead < reach or aside > 0.015 + 0.3 * ahead:
            return None
        return Reach(self.place(arm) + touch + 0.02 * way, self.rotation, self.fingers, speed=0.05)

    def leave(self, arm: Arm, fingers: float) -> Motion | None:
        hand = arm.hand - self.place(arm)
        low, high = np.array(self.low) - 0.04, np.array(self.high) + 0.04
        if (hand < low).any() or (hand > high).any():
            return None
        return Reach(arm.hand + self.away, arm.rotation, fingers)

    @property
    def away(self) -> Vector:
        """A step away from the thing."""
        return np.array([0.0, -STEP, 0.0])


@dataclass(frozen=True, kw_only=True)
class PushFlap(Push):
    """A switch that swings with the hand.

    Args:
        met: x of the hand, relative to `at`, where it meets the switch before it has moved.
        swing: how far the place where they meet moves along x for a radian.
    """

    met: float
    swing: float

    def holds(self, arm: Arm) -> bool:
        meets = self.met + self.swing * arm.joints[self.joint]
        passed = arm.hand[0] - self.at[0] < meets - 0.03  # in front of the switch, without moving it
        return super().holds(arm) and not passed


@dataclass(frozen=True, kw_only=True)
class PushFree(Push):
    """Something that stands free and may turn away: the hand keeps behind it.

    Args:
        straight: x along which it should go.
        aside: how much of its distance from there the hand adds to its own.
        swerve: how far the hand moves aside for a radian that the thing has turned.
    """

    body: int
    straight: float
    aside: float
    swerve: float

    def place(self, arm: Arm) -> Vector:
        return arm.joints[self.body : self.body + 3].copy()

    def pushing(self, arm: Arm) -> Motion:
        thing = self.place(arm)
        quaternion = arm.joints[self.body + 3 : self.body + 7]
        yaw = 2 * float(np.arctan2(quaternion[3], quaternion[0]))
        x = thing[0] + self.aside * (thing[0] - self.straight) - self.swerve * yaw
        goal = np.array([x, arm.hand[1] + self.speed, thing[2] + self.touch[2]])
        return Reach(goal, self.rotation, self.fingers, speed=self.speed)

    @property
    def away(self) -> Vector:
        return np.array([0.0, -STEP, 0.02])
