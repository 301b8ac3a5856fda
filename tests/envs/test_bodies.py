"""The changed bodies differ from the stock ones in what they should, and in nothing else."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from tailo_pl.envs.bodies import LEGS, TASKS, bodies, crippled, load_model
from tailo_pl.envs.locomotion import LocomotionRows
from tailo_pl.errors import UserError


def test_which_bodies_there_are() -> None:
    assert {task: bodies(task) for task in TASKS} == {
        "ant": ("stock", "crippled-leg", "crippled-leg-1", "crippled-leg-2", "crippled-leg-3"),
        "halfcheetah": ("stock", "half-torso"),
        "hopper": ("stock",),
        "walker2d": ("stock",),
    }


@pytest.mark.parametrize(("task", "body"), [("ant", "crippled-leg"), ("halfcheetah", "half-torso")])
def test_joints_motors_and_initial_state_stay(task: str, body: str) -> None:
    stock, changed = load_model(task), load_model(task, body)
    assert (stock.nq, stock.nv, stock.nu, stock.nbody) == (changed.nq, changed.nv, changed.nu, changed.nbody)
    for same in ("qpos0", "jnt_range", "jnt_axis", "dof_damping", "actuator_trnid", "actuator_ctrlrange"):
        np.testing.assert_array_equal(getattr(stock, same), getattr(changed, same))
    assert changed.body_mass.sum() == pytest.approx(stock.body_mass.sum())


def test_half_torso() -> None:
    stock, half = load_model("halfcheetah"), load_model("halfcheetah", "half-torso")
    assert half.geom("torso").size[1] == stock.geom("torso").size[1] / 2
    distance = [m.body("fthigh").pos[0] - m.body("bthigh").pos[0] for m in (stock, half)]
    assert distance == [1.0, 0.5]
    # the head keeps its place on the torso's end
    assert half.geom("head").pos[0] - half.body("fthigh").pos[0] == pytest.approx(0.1)
    np.testing.assert_array_equal(half.geom("fshin").size, stock.geom("fshin").size)


@pytest.mark.parametrize("leg", LEGS)
def test_crippled_leg_does_not_obey(leg: int) -> None:
    """Its two motors change nothing at all; every other motor does."""
    model = load_model("ant", crippled(leg))
    powerless = []
    for motor in range(model.nu):
        data = mujoco.MjData(model)
        data.ctrl[motor] = 1.0
        mujoco.mj_forward(model, data)
        if not data.qfrc_actuator.any():
            powerless.append(model.joint(model.actuator_trnid[motor, 0]).name)
    assert powerless == [f"hip_{leg}", f"ankle_{leg}"]


def test_bodies_move_differently() -> None:
    for task, body in (("ant", "crippled-leg"), ("halfcheetah", "half-torso")):
        row, seed = np.array([0]), np.array([0])
        seen = []
        for which in ("stock", body):
            simulator = LocomotionRows(task, 1, body=which)
            start = simulator.reset(row, seed)
            step = simulator.step(row, np.ones((1, simulator.action_dim)))
            seen.append((start, step.observations))
        np.testing.assert_array_equal(seen[0][0], seen[1][0])
        assert np.abs(seen[0][1] - seen[1][1]).max() > 1e-3


def test_unknown_names() -> None:
    with pytest.raises(UserError, match=r"'cheetah'.*halfcheetah"):
        load_model("cheetah")
    with pytest.raises(UserError, match=r"'crippled-leg'.*stock, half-torso"):
        load_model("halfcheetah", "crippled-leg")
