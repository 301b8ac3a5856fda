"""The seven skills: what the arm does next is decided from what can be seen alone.

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
_NEAR = 0.25  # a hand this near to where an approach begins goes there straight, else the joints go to `pose`
_STEP = 0.06


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
        return turned(yaw=self.yaw, pitch=self.pitch) @ _AHEAD

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
        if np.linalg.norm(start - arm.hand) < _NEAR:
            return Reach(start, self.rotation, self.fingers, turn=0.2)
        return Pose(np.array(self.pose), self.fingers)


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
        return arm.site(self.site) + np.array([0.0, 0.0, self.raised])

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
        return self.place(arm) - 0.13 * self.facing(arm)[:, 2]

    def holds(self, arm: Arm) -> bool:
        _, ahead, aside = self.seen(arm)
        return FIST < arm.opening < self.grip and -0.03 < ahead < self.slack[0] and aside < self.slack[1]

    def approach(self, arm: Arm) -> Motion | None:
        goal, ahead, aside = self.seen(arm)
        if arm.opening < SPREAD or not -0.01 < ahead < 0.16 or aside > 0.012 + 0.3 * max(ahead, 0.0):
            return None
        return Reach(goal, self.facing(arm), OPEN, speed=0.05 if ahead > 0.05 else 0.04)

    def leave(self, arm: Arm, fingers: float) -> Motion | None:
        goal, ahead, aside = self.seen(arm)
        if ahead > 0.09 or aside > 0.12 or ahead < -0.1:
            return None
        if arm.opening < SPREAD and ahead < 0.06 and aside < 0.04:
            return Reach(arm.hand, arm.rotation, OPEN)
        return Reach(arm.hand - _STEP * self.facing(arm)[:, 2], arm.rotation, OPEN)


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
            return Reach(pulled - self.depth * facing[:, 2], facing, CLOSED, speed=0.035 if slowly else _STEP)
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
        return np.array([0.0, -_STEP, 0.0])


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
        return np.array([0.0, -_STEP, 0.02])


SKILLS: dict[str, Skill] = {
    "microwave": Pull(
        joint=22, until=-0.62, enough=-0.52, yaw=0.22, pitch=0.0, fingers=OPEN,
        pose=(-0.9482, -1.7213, 2.0032, -1.682, -0.9941, 1.1363, 2.807),
        site="microhandle_site", depth=0.01, grip=0.06, hinge=(-1.1276, 0.4549), lead=-0.15, slow=-0.4,
    ),
    "kettle": PushFree(
        joint=24, until=0.64, enough=0.55, yaw=-0.3, pitch=-0.75, fingers=OPEN,
        pose=(0.4061, -1.4296, 1.8214, -2.7748, 0.5378, 0.6201, 1.5766),
        body=23, start=(0.0, -0.26, 0.33), touch=(0.0, -0.21, 0.1), target=(0.0, 0.0, 0.0),
        low=(-0.05, -0.25, 0.06), high=(0.05, -0.1, 0.135), speed=0.06, straight=-0.25, aside=0.4, swerve=0.08,
    ),
    "bottom burner": Turn(
        joint=11, until=-0.8, enough=-0.68, yaw=-0.15, pitch=-0.02, fingers=OPEN,
        pose=(-1.0264, -1.3098, 1.448, -2.4995, 0.1751, 1.8481, 1.1232),
        site="knob2_site", depth=0.032, grip=0.066,
    ),
    "top burner": Turn(
        joint=15, until=-0.8, enough=-0.68, yaw=-0.15, pitch=-0.02, fingers=OPEN,
        pose=(-1.0087, -1.1125, 1.2397, -2.3686, 0.0748, 1.7299, 0.9437),
        site="knob4_site", depth=0.032, grip=0.066,
    ),
    "light switch": PushFlap(
        joint=17, until=-0.55, enough=-0.45, yaw=-0.2, pitch=-0.1, fingers=CLOSED,
        pose=(-0.7559, -1.2612, 1.2721, -2.5424, 0.1863, 1.5694, 0.9709),
        at=(-0.3685, 0.6157, 2.28), start=(0.08, -0.15, 0.0), touch=(0.08, -0.025, 0.0), target=(-0.14, -0.025, 0.0),
        low=(-0.13, -0.045, -0.04), high=(0.11, 0.02, 0.04), speed=0.045, met=0.057, swing=0.1,
    ),
    "slide cabinet": Push(
        joint=19, until=0.3, enough=0.2, yaw=-0.4, pitch=-0.1, fingers=CLOSED,
        pose=(-0.8488, -0.974, 0.8218, -2.0806, -0.0358, 1.1372, 0.6925),
        site="slide_site", start=(-0.08, -0.13, -0.045), touch=(-0.06, -0.05, -0.045), target=(0.08, -0.03, -0.045),
        low=(-0.11, -0.065, -0.085), high=(-0.03, 0.01, -0.015), speed=0.06,
    ),
    "hinge cabinet": Pull(
        joint=21, until=1.38, enough=1.22, yaw=-0.1, pitch=-0.1, fingers=OPEN,
        pose=(-1.1529, -0.9524, 1.2973, -1.2558, 0.0492, 0.7576, 0.8712),
        site="hinge_site2", raised=-0.05, depth=0.012, grip=0.06, hinge=(-0.224, 0.71), lead=0.2, follow=0.6, slow=3.0,
    ),
}  # fmt: skip
