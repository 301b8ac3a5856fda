"""The schema of a method: a list of stages, each read from its part of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailo_pl.config.parsing import as_class, build
from tailo_pl.config.trusted import import_class
from tailo_pl.errors import UserError, one_line, require_range
from tailo_pl.inputs import StageInput

if TYPE_CHECKING:  # they bring torch along, which what is wrong with all else need not wait for
    from tailo_pl.data.batches import Batches
    from tailo_pl.models.stage import StageModule

_KEYS = ("model", "batches", "inputs", "seed", "max_steps", "passes")


@dataclass(frozen=True)
class Stage:
    """One training in the list that makes a method.

    Args:
        model: class_path and init_args of the module; what it `needs` is filled in when the data is known.
        module: its class.
        batches: class_path and init_args of the batches.
        kind: their object, for checks; a training has its own.
        inputs: what it reads beside the task, by name.
        seed: of the network's initial weights and the batches.
        max_steps: gradient steps; None: as many as `passes` says.
        passes: passes over TS, in batches of the stage's size.
    """

    model: dict[str, Any]
    module: type[StageModule]
    batches: dict[str, Any]
    kind: Batches
    inputs: dict[str, StageInput]
    seed: int
    max_steps: int | None
    passes: int | None


def read_stages(stages: Mapping[str, Any]) -> dict[str, Stage]:
    """The stages of a method, in order; those that are null are left out."""
    inputs = read_inputs(stages)
    return {name: _read_stage(f"method.stages.{name}", stages[name], inputs[name]) for name in inputs}


def read_inputs(stages: Mapping[str, Any]) -> dict[str, dict[str, StageInput]]:
    """The inputs of each stage that is not null; all of what can be wrong with stages that needs no torch to see."""
    read: dict[str, dict[str, StageInput]] = {}
    for name, values in stages.items():
        if values is not None:
            where = f"method.stages.{name}"
            _require_keys(where, values)
            read[name] = _read_inputs(f"{where}.inputs", values.get("inputs") or {}, list(read))
    if not read:
        raise UserError("method.stages: all are null, expected at least one stage")
    return read


def _require_keys(where: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: {one_line(repr(values))} given, expected keys and values")
    for key in values:
        if key not in _KEYS:
            raise UserError(f"{where}: unknown key {one_line(repr(key))}, expected one of {', '.join(_KEYS)}")
    for key in ("model", "batches", "seed"):
        if key not in values:
            raise UserError(f"{where}.{key}: not there, expected a value")


def _read_stage(where: str, values: Mapping[str, Any], inputs: dict[str, StageInput]) -> Stage:
    from tailo_pl.data.batches import Batches
    from tailo_pl.data.datamodule import require_read
    from tailo_pl.models.stage import StageModule

    model = as_class(values["model"], f"{where}.model")
    batches = as_class(values["batches"], f"{where}.batches")
    kind = build(Batches, batches, f"{where}.batches")  # type: ignore[type-abstract]
    require_read(inputs, kind)
    max_steps, passes = (_count(f"{where}.{key}", values.get(key)) for key in ("max_steps", "passes"))
    if (max_steps is None) == (passes is None):
        raise UserError(f"{where}.max_steps, passes: {max_steps} and {passes} given, expected one of the two")
    seed = values["seed"]
    if type(seed) is not int:
        raise UserError(f"{where}.seed: {one_line(repr(seed))} given, expected int")
    require_range(f"{where}.seed", seed, 0, 2**32, closed="[)")
    module = import_class(f"{where}.model", model["class_path"], StageModule)
    return Stage(model, module, batches, kind, inputs, seed, max_steps, passes)


def _read_inputs(where: str, values: Any, before: list[str]) -> dict[str, StageInput]:
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: {one_line(repr(values))} given, expected inputs by their names")
    inputs: dict[str, StageInput] = {}
    for name, one in values.items():
        if one is None:
            continue
        config = as_class(one, f"{where}.{name}")
        made: StageInput = build(StageInput, config, f"{where}.{name}")  # type: ignore[type-abstract]
        for stage in made.stages:
            if stage not in before:
                there = ", ".join(before) or "none"
                raise UserError(f"{where}.{name}: reads stage {stage!r}, expected an earlier stage ({there})")
        inputs[name] = made
    return inputs


def _count(where: str, value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int:
        raise UserError(f"{where}: {one_line(repr(value))} given, expected int")
    require_range(where, value, 1, closed="[)")
    return value
