"""Walking the ant in any direction, and along the corridor of the U-maze, with a policy that walks along +x.

The floor looks the same from everywhere and the four legs are alike. So a state can be turned about the vertical axis,
and the legs can be numbered from any of them, until the direction one wants to go is +x; what the policy does there is
then turned back. The controller looks at nothing but the state: the same state always gets the same action.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs import umaze
from tailo_pl.experts import Float32s, NpzPolicy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOOK_AHEAD = 1.5
"""How far ahead on the centre line the ant aims, in metres; within as much of the goal, at the goal."""
PREFERRED_YAW = np.radians(-25.0)
"""How the policy holds its body, relative to where it goes."""
_ANKLE_SIGNS = np.array([1.0, -1.0, -1.0, 1.0])  # which way the ankles of legs 1 to 4 bend
_MOTOR_LEGS = np.array([3, 0, 1, 2])  # motors are ordered legs 4, 1, 2, 3


def pursue(positions: Floats, goals: Floats) -> Floats:
    """Headings that lead along the corridor to the goals: at a point ahead on its centre line, near a goal at it."""
    here, there = umaze.project(positions), umaze.project(goals)
    ahead = umaze.along(here + np.clip(there - here, -LOOK_AHEAD, LOOK_AHEAD))
    aims = np.where((np.abs(there - here) <= LOOK_AHEAD)[:, None], goals, ahead)
    way = aims - positions
    return np.asarray(np.arctan2(way[:, 1], way[:, 0]))


def walk(
    policy: NpzPolicy,
    states: Floats,
    headings: Floats,
    noise_share: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Float32s:
    """Actions that walk the ant in these directions, from its 29 numbers.

    Args:
        policy: walks along +x, from the ant's 27 numbers.
        states: one per row.
        headings: where to go, in radians.
        noise_share: how much of the policy's exploration noise is added.
        rng: draws the noise.
    """
    turns = quarter_turns(states, headings)
    return turn_back(policy.act(turned(states, headings, turns), noise_share, rng), turns)


def quarter_turns(states: Floats, headings: Floats) -> Ints:
    """By how many legs to renumber, so that the body is held as nearly as possible as the policy holds it."""
    w, x, y, z = states[:, 3:7].T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    off = yaw[:, None] + np.arange(4) * np.pi / 2 - headings[:, None] - PREFERRED_YAW
    return np.asarray(np.abs((off + np.pi) % (2 * np.pi) - np.pi).argmin(axis=1))


def turned(states: Floats, headings: Floats, turns: Ints) -> Floats:
    """The 27 numbers of the ant as if it were heading along +x, with its legs numbered from leg `turns` + 1 on."""
    body = turns * np.pi / 2
    orientation = states[:, 3:7] / np.linalg.norm(states[:, 3:7], axis=1, keepdims=True)
    return np.concatenate(
        [
            states[:, 2:3],
            _product(_product(_about_z(-headings), orientation), _about_z(body)),
            _renumber(states[:, 7:15], turns),
            _rotate(states[:, 15:18], -headings),  # velocity: in the world's frame
            _rotate(states[:, 18:21], -body),  # angular velocity: in the body's
            _renumber(states[:, 21:29], turns),
        ],
        axis=1,
    )


def turn_back(actions: Float32s, turns: Ints) -> Float32s:
    """Actions for the legs as they are, from actions for the legs as `turned` has numbered them."""
    by_leg = np.empty_like(actions.reshape(-1, 4, 2))
    by_leg[:, _MOTOR_LEGS] = actions.reshape(-1, 4, 2)
    back = _renumber(by_leg.reshape(-1, 8), -turns)
    return np.ascontiguousarray(back.reshape(-1, 4, 2)[:, _MOTOR_LEGS].reshape(-1, 8), dtype=np.float32)


def _renumber(joints: NDArray[np.floating], turns: Ints) -> NDArray[np.floating]:
    """Hip and ankle of each leg (rows, 8), with leg (i + turns) % 4 in place i; ankles bend as those in place i do."""
    from_legs = (np.arange(4) + turns[:, None]) % 4
    signs = (_ANKLE_SIGNS[from_legs] * _ANKLE_SIGNS).astype(joints.dtype)
    moved = np.take_along_axis(joints.reshape(-1, 4, 2), from_legs[..., None], axis=1)
    return np.stack([moved[..., 0], moved[..., 1] * signs], axis=-1).reshape(-1, 8)


def _about_z(angles: Floats) -> Floats:
    zeros = np.zeros_like(angles)
    return np.stack([np.cos(angles / 2), zeros, zeros, np.sin(angles / 2)], axis=1)


def _product(first: Floats, second: Floats) -> Floats:
    """Of quaternions."""
    a, b = first[:, :1], second[:, :1]
    u, v = first[:, 1:], second[:, 1:]
    return np.concatenate([a * b - (u * v).sum(1, keepdims=True), a * v + b * u + np.cross(u, v)], axis=1)


def _rotate(vectors: Floats, angles: Floats) -> Floats:
    """About the vertical axis."""
    cos, sin = np.cos(angles), np.sin(angles)
    x, y, z = vectors.T
    return np.stack([cos * x - sin * y, sin * x + cos * y, z], axis=1)
