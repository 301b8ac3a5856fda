"""Which field plays which role: usual names, numbered families, patterns; nothing nearly right is passed over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailo_pl.data.formats.columns import ALIASES, Columns, resolve
from tailo_pl.data.formats.record_file import Field
from tailo_pl.errors import UserError

FLOAT = np.dtype(np.float32)


def fields(*names: str, **widths: int | None) -> dict[str, Field]:
    return {**{name: Field(FLOAT) for name in names}, **{name: Field(FLOAT, width) for name, width in widths.items()}}


def found(there: dict[str, Field], ignored: tuple[str, ...] = (), **asked: Any) -> dict[str, tuple[str, ...]]:
    return dict(resolve("x.csv", there, Columns(**asked), ignored).names)


def refused(there: dict[str, Field], ignored: tuple[str, ...] = (), **asked: Any) -> str:
    with pytest.raises(UserError) as caught:
        resolve("x.csv", there, Columns(**asked), ignored)
    message = str(caught.value)
    assert message.startswith("x.csv: ") and message.isprintable()
    return message.removeprefix("x.csv: ")


class TestUsualNames:
    @pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in ALIASES.items() for name in names])
    def test_each(self, role: str, name: str) -> None:
        expected = {"observations": ("obs",)} | {role: (name,)}
        there = fields(**{name: 3 if role in ("observations", "actions", "next_observations") else None})
        if role != "observations":
            there |= fields(obs=3)
        assert found(there) == expected

    def test_all_roles_of_a_file(self) -> None:
        there = fields("rewards", "terminals", "timeouts", "episode", "step", observations=4, actions=2, qpos=7)
        layout = resolve("x.npz", there, Columns())
        assert layout.names == {
            "observations": ("observations",),
            "actions": ("actions",),
            "rewards": ("rewards",),
            "terminals": ("terminals",),
            "timeouts": ("timeouts",),
            "episode": ("episode",),
            "step": ("step",),
        }
        assert layout.widths["observations"] == 4 and layout.widths["actions"] == 2 and layout.widths["rewards"] == 1
        assert layout.all_names == ["observations", "actions", "rewards", "terminals", "timeouts", "episode", "step"]

    def test_no_states(self) -> None:
        message = refused(fields("x", "y"))
        assert message == (
            "observations: no field found among x, y, expected one of observations, observation, obs, states, state, "
            "or source.columns.observations=NAME"
        )

    def test_long_and_odd_names_are_shortened(self) -> None:
        message = refused(fields("a\nb", "y" * 1000, *[f"z{number}z" for number in range(20)]))
        assert "among a b, yyy" in message and "and 10 more" in message and len(message) < 600

    def test_two_names_for_one_thing(self) -> None:
        assert refused(fields(obs=3, states=3)) == (
            "observations: both obs and states found, choose one with source.columns.observations=NAME"
        )
        assert found(fields(obs=3, states=3), observations="obs") == {"observations": ("obs",)}

    def test_a_matrix_beside_a_family(self) -> None:
        assert "both obs and obs_0 found" in refused(fields("obs_0", "obs_1", obs=3))

    def test_ignored_roles(self) -> None:
        assert found(fields(obs=3, actions=2), ignored=("actions",)) == {"observations": ("obs",)}
        assert found(fields(obs=3, actoins=2), ignored=("actions",)) == {"observations": ("obs",)}

    def test_none_of_a_role(self) -> None:
        assert found(fields("rewards", obs=3), rewards=None) == {"observations": ("obs",)}


class TestFamilies:
    @pytest.mark.parametrize("form", ["obs_{}", "obs.{}", "obs[{}]", "obs{}", "observations_{}", "state{}"])
    @pytest.mark.parametrize("first", [0, 1])
    def test_in_the_order_of_their_numbers(self, form: str, first: int) -> None:
        """Wherever the columns stand in the file, and number 10 behind number 9."""
        names = [form.format(number) for number in range(first, first + 12)]
        layout = resolve("x.csv", fields(*sorted(names)), Columns())
        assert layout.names["observations"] == tuple(names)
        assert layout.widths["observations"] == 12

    def test_leading_zeros(self) -> None:
        names = [f"obs_{number:02}" for number in range(12)]
        assert found(fields(*reversed(names)))["observations"] == tuple(names)

    def test_several_families(self) -> None:
        names = ("obs_0", "obs_1", "action_0", "next_obs_0", "next_obs_1")
        assert found(fields(*names)) == {
            "observations": ("obs_0", "obs_1"),
            "actions": ("action_0",),
            "next_observations": ("next_obs_0", "next_obs_1"),
        }

    @pytest.mark.parametrize(
        "names", [("obs_0", "obs_2"), ("obs_2", "obs_3"), ("obs_0", "obs0", "obs_1"), ("obs_1", "obs_01")], ids=str
    )
    def test_gaps_and_repetitions(self, names: tuple[str, ...]) -> None:
        message = refused(fields(*names))
        assert message.startswith("observations: fields obs") and "expected numbers without gaps from 0" in message

    def test_families_are_for_vectors(self) -> None:
        assert found(fields("rewards", "rewards_1", obs=3)) == {"observations": ("obs",), "rewards": ("rewards",)}
        assert left_out(fields("rewards_1", obs=3)) == ("rewards_1 (did you mean rewards?)",)


class TestAsked:
    def test_by_name(self) -> None:
        there = fields("gain", pose=3, torque=2)
        assert found(there, observations="pose", actions="torque", rewards="gain") == {
            "observations": ("pose",),
            "actions": ("torque",),
            "rewards": ("gain",),
        }

    def test_patterns_in_natural_order(self) -> None:
        there = fields(*[f"joint_{number}_{what}" for what in ("vel", "pos") for number in (10, 9, 1)], "other")
        assert found(there, observations="joint_*_pos")["observations"] == (
            "joint_1_pos",
            "joint_9_pos",
            "joint_10_pos",
        )
        assert found(there, observations=["other", "joint_*_vel"])["observations"] == (
            *("other", "joint_1_vel", "joint_9_vel", "joint_10_vel"),
        )

    def test_any_characters_can_be_sorted(self) -> None:
        there = fields("p²", "p10", "p٣", "px", "p")
        assert set(found(there, observations="p*")["observations"]) == set(there)

    def test_a_name_with_a_star_is_a_name(self) -> None:
        assert found(fields("a*", "ab"), observations="a*")["observations"] == ("a*",)

    def test_widths_add_up(self) -> None:
        assert resolve("x", fields("y", pose=3), Columns(observations=["pose", "y"])).widths == {"observations": 4}

    def test_not_there(self) -> None:
        message = refused(fields(pose=3, torque=2), observations="poes")
        assert message == "observations: no field 'poes' found, expected one of pose, torque (did you mean pose?)"
        assert refused(fields(obs=3), actions="joint_*") == ("actions: no field 'joint_*' found, expected one of obs")

    def test_twice(self) -> None:
        for asked in (["a", "a"], ["a", "*"], ["a*", "*a"]):
            assert refused(fields("a", "b"), observations=asked) == (
                "observations: a field is named twice in source.columns.observations"
            )


def left_out(there: dict[str, Field], **columns: Any) -> tuple[str, ...]:
    return resolve("x", there, Columns(**columns)).left_out


class TestTypos:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("actoins", "actions"),
            ("Actions", "actions"),
            ("observation_", "observation"),
            ("next_observatoins", "next_observations"),
            ("rewards.", "rewards"),
            ("terminal s", "terminals"),
            ("timeout_s", "timeouts"),
            ("episodeid", "episode_id"),
            ("acti/ns", "actions"),
            ("time_step", "timestep"),
        ],
    )
    def test_a_field_that_was_probably_meant(self, name: str, meant: str) -> None:
        """It is left out, and said to be: a guess at spelling is no reason to refuse a file."""
        assert left_out(fields(obs=3, **{name: None})) == (f"{name} (did you mean {meant}?)",)

    def test_part_of_a_family(self) -> None:
        assert left_out(fields("actions_0", "actoins_1", obs=3)) == ("actoins_1 (did you mean actions?)",)
        assert left_out(fields("actions_0", "actions_", obs=3)) == ("actions_ (did you mean actions?)",)

    @pytest.mark.parametrize("name", ["timestamp", "time", "stage", "task_index"])
    def test_bookkeeping(self, name: str) -> None:
        assert left_out(fields(obs=3, **{name: None})) == (name,)
        there = fields("q0", "q1", "episode", name)
        assert found(there, observations="*")["observations"] == ("q0", "q1")
        assert found(there, observations=["q*", name])["observations"] == ("q0", "q1", name)

    def test_text(self) -> None:
        there = {**fields("q0", "q1"), "note": Field(np.dtype(object))}
        assert found(there, observations="*")["observations"] == ("q0", "q1")
        assert left_out(there, observations="*") == ("note (no numbers)",)

    def test_said_on_purpose(self) -> None:
        there = fields(obs=3, actoins=2)
        assert found(there, actions="actoins")["actions"] == ("actoins",)
        assert found(there, actions=None) == {"observations": ("obs",)}

    @pytest.mark.parametrize(
        "name", ["qpos", "infos/qvel", "infos/action_log_probs", "infos/observations", "metadata/policy/fc0/weight"]
    )
    def test_other_fields(self, name: str) -> None:
        assert found(fields(obs=3, **{name: 4})) == {"observations": ("obs",)}


class TestWidths:
    @pytest.mark.parametrize("role", ["rewards", "terminals", "timeouts", "episode", "step"])
    def test_one_number_per_step(self, role: str) -> None:
        assert refused(fields(obs=3, **{role: 2})) == f"{role}: 2 numbers per step found, expected 1"
        assert refused(fields(obs=3, **{role: 0})) == f"{role}: 0 numbers per step found, expected 1"
        assert resolve("x", fields(obs=3, **{role: 1}), Columns()).widths[role] == 1
        assert refused(fields("a", "b", obs=3), **{role: ["a", "b"]}) == f"{role}: 2 numbers per step found, expected 1"

    def test_vectors_are_not_empty(self) -> None:
        assert refused(fields(obs=0)) == "observations: 0 numbers per step found, expected at least 1"
        assert refused(fields(obs=3, actions=0)) == "actions: 0 numbers per step found, expected at least 1"

    def test_a_vector_of_one(self) -> None:
        assert resolve("x", fields("obs"), Columns()).widths == {"observations": 1}
