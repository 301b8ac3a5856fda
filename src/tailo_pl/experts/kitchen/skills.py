"""The seven skills as data: where each thing is met, and how far it is moved."""

from __future__ import annotations

from tailo_pl.experts.kitchen.grasps import Pull, Turn
from tailo_pl.experts.kitchen.pushes import Push, PushFlap, PushFree
from tailo_pl.experts.kitchen.skill import CLOSED, OPEN, Skill

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
