"""Pictures of a MuJoCo model, drawn by a process of its own.

MuJoCo chooses how to draw when it is imported, and a broken driver may end the process. So the poses are handed to a
child, once for each way there is, until one works.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from tailo_pl.envs.bodies import OVERVIEW
from tailo_pl.errors import UserError

Picture = NDArray[np.uint8]
"""(height, width, 3)"""
# Values of MUJOCO_GL. Only Linux has a choice.
_WITHOUT_SCREEN = ("egl", "osmesa") if sys.platform == "linux" else ("",)


def pictures(
    model: mujoco.MjModel, poses: NDArray[np.float64], width: int, height: int, renderer: str | None = None
) -> Iterator[Picture]:
    """Draw each pose; `UserError` where no way of drawing works on this machine.

    Args:
        model: what is drawn.
        poses: positions of all joints, (pictures, nq).
        width: of a picture, in pixels.
        height: of a picture, in pixels.
        renderer: a value of MUJOCO_GL; None: whichever works without a screen.
    """
    failures = []
    for way in [renderer] if renderer else _WITHOUT_SCREEN:
        started = False
        try:
            for picture in _drawn(way, model, poses, width, height):
                started = True
                yield picture
            return
        except _CannotDraw as error:
            if started:
                raise UserError(f"play: drawing stopped ({error})") from error
            failures.append(f"{way or 'default'}: {error}")
    raise UserError(
        f"play: no offscreen renderer works here ({'; '.join(failures)}); install EGL (libegl1) or OSMesa "
        "(libosmesa6), or set MUJOCO_GL"
    )


class _CannotDraw(Exception):
    """One way of drawing does not work."""


def _drawn(way: str, model: mujoco.MjModel, poses: NDArray[np.float64], width: int, height: int) -> Iterator[Picture]:
    size = width * height * 3
    with tempfile.TemporaryDirectory(prefix="tailo-") as name, tempfile.TemporaryFile() as complaints:
        folder = Path(name)
        mujoco.mj_saveModel(model, str(folder / "model.mjb"), None)
        np.save(folder / "poses.npy", poses)
        process = subprocess.Popen(
            [sys.executable, "-m", "tailo_pl.policies.render", name, str(width), str(height)],
            env={**os.environ, "MUJOCO_GL": way},
            stdout=subprocess.PIPE,
            stderr=complaints,
        )
        assert process.stdout is not None
        try:
            for _ in range(len(poses)):
                content = process.stdout.read(size)
                if len(content) < size:
                    status = process.wait()
                    complaints.seek(0)
                    lines = complaints.read().decode(errors="replace").strip().splitlines()
                    raise _CannotDraw(lines[-1][:200] if lines else f"ended with status {status}")
                yield np.frombuffer(content, dtype=np.uint8).reshape(height, width, 3)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def _camera(model: mujoco.MjModel, poses: NDArray[np.float64]) -> Any:
    """The model's camera above all of it or the one that follows the body, or else a view on where the joints go.

    Of something that stands in its place, such as an arm, the model's own view of itself.
    """
    for name in (OVERVIEW, "track"):
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name) >= 0:
            return name
    camera = mujoco.MjvCamera()
    if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_HINGE:
        mujoco.mjv_defaultFreeCamera(model, camera)
        return camera
    walls = (model.geom_bodyid == 0) & (model.geom_type == mujoco.mjtGeom.mjGEOM_BOX)
    places, sizes = model.geom_pos[walls, :2], model.geom_size[walls, :2]
    seen = np.vstack([poses[:, :2], places - sizes, places + sizes])
    low, high = seen.min(0), seen.max(0)
    camera.lookat[:2] = (low + high) / 2
    camera.distance = max(10.0, (1.3 if walls.any() else 2.5) * float((high - low).max()))
    camera.azimuth, camera.elevation = 90, -90
    return camera


def _child(folder: Path, width: int, height: int) -> None:
    """Draw all poses in `folder` and write the bare pictures to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not end up between the pictures
    model = mujoco.MjModel.from_binary_path(str(folder / "model.mjb"))
    poses = np.load(folder / "poses.npy", allow_pickle=False)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    data, camera = mujoco.MjData(model), _camera(model, poses)
    with mujoco.Renderer(model, height, width) as renderer:
        for pose in poses:
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            for costly in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
                renderer.scene.flags[costly] = 0  # without a graphics card they take twenty times as long
            out.write(renderer.render().tobytes())
            out.flush()


if __name__ == "__main__":
    _child(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
