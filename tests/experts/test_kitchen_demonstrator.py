"""The kitchen's demonstrator: it moves the arm where it should, does all seven subtasks, and recovers from trouble."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tailo_pl.envs.kitchen import KitchenEpisode, done, positions
from tailo_pl.envs.kitchen_tasks import SUBTASKS
from tailo_pl.experts.kitchen.arm import Arm, Pose, Reach
from tailo_pl.experts.kitchen.demonstrator import Demonstrator, demonstrate
from tailo_pl.experts.kitchen.disturbances import CALM, Disturbances, Trouble
from tailo_pl.experts.kitchen.skills import SKILLS

HORIZON = 280


@pytest.fixture(scope="module")
def kitchen() -> Iterator[KitchenEpisode]:
    episode = KitchenEpisode("mixed", start_noise=0.1)
    yield episode
    episode.close()


@pytest.fixture
def arm(kitchen: KitchenEpisode) -> Arm:
    kitchen.reset(seed=0)
    return Arm(kitchen.model, kitchen.data)


def test_the_hand_goes_where_it_is_sent_and_stays_there(kitchen: KitchenEpisode, arm: Arm) -> None:
    goal, rotation = arm.hand + np.array([0.1, -0.05, 0.08]), arm.rotation
    for _ in range(12):
        kitchen.step(arm.action(Reach(goal, rotation, 1.0)))
    assert np.linalg.norm(arm.hand - goal) < 0.005
    for _ in range(10):  # held against its weight
        kitchen.step(arm.action(Reach(goal, rotation, -1.0)))
    assert np.linalg.norm(arm.hand - goal) < 0.005
    assert np.abs(arm.rotation - rotation).max() < 0.03
    assert arm.opening < 0.002


def test_no_step_is_longer_than_asked(kitchen: KitchenEpisode, arm: Arm) -> None:
    far, rotation = arm.hand + np.array([0.3, 0.0, 0.0]), arm.rotation
    for _ in range(4):
        before = arm.hand
        action = arm.action(Reach(far, rotation, 1.0, speed=0.03))
        kitchen.step(action)
        assert np.abs(action).max() <= 1
        assert np.linalg.norm(arm.hand - before) < 0.035


def test_joints_go_straight_to_a_pose_and_stay_within_their_limits(kitchen: KitchenEpisode, arm: Arm) -> None:
    pose = np.array(SKILLS["top burner"].pose)
    for _ in range(25):
        kitchen.step(arm.action(Pose(pose, 1.0)))
    assert np.abs(arm.joints[:7] - pose).max() < 0.01
    unreachable = arm.hand + np.array([0.0, 0.0, 2.0])
    for _ in range(20):
        kitchen.step(arm.action(Reach(unreachable, arm.rotation, 1.0)))
    low, high = kitchen.model.jnt_range[:7].T
    assert (arm.joints[:7] > low).all()
    assert (arm.joints[:7] < high).all()


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_every_subtask_is_done_in_spite_of_trouble(kitchen: KitchenEpisode, subtask: str) -> None:
    shown = demonstrate(kitchen, [subtask], 1, Disturbances(), HORIZON)
    assert shown.finished
    assert done(kitchen.data.qpos)[SUBTASKS.index(subtask)]
    assert len(shown.states) == len(shown.actions) == len(shown.rewards) < 200


def test_a_sequence_is_done_in_its_order_and_depends_on_its_seed_alone(kitchen: KitchenEpisode) -> None:
    order = ("kettle", "light switch")
    one = demonstrate(kitchen, order, 5, Disturbances(), HORIZON)
    assert one.finished
    reached = done(positions(one.states, "robotics"))[:, [SUBTASKS.index(name) for name in order]]
    first, second = reached.argmax(0)
    assert 0 < first < second
    assert one.rewards.sum() == 2  # both are asked in `mixed`
    again = demonstrate(kitchen, order, 5, Disturbances(), HORIZON)
    np.testing.assert_array_equal(one.states, again.states)
    np.testing.assert_array_equal(one.actions, again.actions)


def test_what_is_done_next_can_be_seen(kitchen: KitchenEpisode) -> None:
    """One that comes in the middle, without memory, does the same: nothing is hidden from who clones it."""
    kitchen.reset(seed=0)
    first, trouble = Demonstrator(kitchen, ["microwave"]), Trouble(Disturbances(), np.random.default_rng(0))
    for step in range(60):
        action = first.act()
        if action is None:
            break
        if step % 5 == 0:
            np.testing.assert_array_equal(Demonstrator(kitchen, ["microwave"]).act(), action)
        kitchen.step(trouble.disturb(action))


def test_a_handle_that_slips_is_taken_again(kitchen: KitchenEpisode) -> None:
    kitchen.reset(seed=0)
    arm = Arm(kitchen.model, kitchen.data)
    demonstrator, door = Demonstrator(kitchen, ["microwave"]), SKILLS["microwave"].joint
    held, lost, again = (False, False, False)
    for _ in range(200):
        action = demonstrator.act()
        if action is None:
            break
        if arm.joints[door] < -0.2 and not lost:  # torn open while it pulls, and the hand thrown back
            held, lost = SKILLS["microwave"].holds(arm), True
            for _ in range(5):
                kitchen.step(arm.action(Reach(arm.hand - [0.0, 0.08, 0.0], arm.rotation, 1.0)))
            assert not SKILLS["microwave"].holds(arm)
            assert arm.joints[door] > -0.45  # not done
            continue
        again = again or (lost and SKILLS["microwave"].holds(arm))
        kitchen.step(action)
    assert held
    assert again
    assert SKILLS["microwave"].finished(arm)


def test_what_is_recorded_is_what_the_arm_was_told(kitchen: KitchenEpisode) -> None:
    told = np.full(9, 0.5)
    calm, rough = Trouble(CALM, np.random.default_rng(0)), Trouble(Disturbances(), np.random.default_rng(0))
    got = np.stack([calm.disturb(told) for _ in range(200)])
    assert (got[:, 7:] == 0.5).all()  # no slips
    assert np.abs(got[:, :7] - 0.5).std() < 0.1
    harder = np.stack([rough.disturb(told) for _ in range(2000)])
    assert (told == 0.5).all()
    slips = harder[:, 7] == -0.5
    assert 0.02 < slips.mean() < 0.12  # 4.5 steps every 80
    assert np.abs(harder).max() <= 1
    assert (np.abs(harder[:, :7] - 0.5).max(1) > 0.45).mean() > 0.02  # pushes
