"""An experiment: the composed configuration, checked against types before anything is made or written."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jsonargparse import ArgumentError, ArgumentParser, Namespace
from lightning.fabric.utilities.exceptions import MisconfigurationException
from numpy.typing import NDArray

from tailo_pl.data.settings import Setting, Task, load_task
from tailo_pl.data.sources.source import Bounds, Source
from tailo_pl.data.trajectories import Trajectories
from tailo_pl.envs.environment import Environment
from tailo_pl.errors import UserError, require_range
from tailo_pl.precision import AUTO, precision_for
from tailo_pl.transport import Transport
from tailo_pl.trusted import PACKAGES, restrict_imports
from tailo_pl.weights import ScoreKind

SCHEMA = 2
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Negatives:
    """Which trajectories are safe negatives.

    Args:
        scores: name of the stage whose scores decide.
        beta_1: quantile of the trajectories' mean scores below which they are safe, in (0, 1).
    """

    scores: str
    beta_1: float

    def __post_init__(self) -> None:
        require_range("beta_1", self.beta_1, 0, 1)


@dataclass(frozen=True)
class Weights:
    """How scores become weights.

    Args:
        scores: name of the stage whose scores count.
        alpha: strength of the exponential.
        gamma: discount along the trajectory, in [0, 1).
        kind: `logit` or `probability`.
    """

    scores: str
    alpha: float
    gamma: float
    kind: ScoreKind = "logit"

    def __post_init__(self) -> None:
        require_range("alpha", self.alpha)
        require_range("gamma", self.gamma, 0, 1, closed="[)")


@dataclass(frozen=True)
class Rewards:
    """How scores become the rewards of a later stage.

    Args:
        scores: name of the stage whose scores count.
        kind: `logit` (R = D(s)) or `probability` (R = c(s)).
        returns: hand on the discounted sum of what follows along the trajectory, with this discount, instead of each
            step's own reward; standardised over all steps. None: the rewards themselves.
    """

    scores: str
    kind: ScoreKind = "logit"
    returns: float | None = None

    def __post_init__(self) -> None:
        if self.returns is not None:
            require_range("returns", self.returns, 0, 1, closed="[)")


@dataclass(frozen=True)
class Rollout:
    """When to play episodes.

    Args:
        every_n_steps: steps between evaluations; 0: only at the end.
        episodes: episodes per evaluation.
    """

    every_n_steps: int
    episodes: int

    def __post_init__(self) -> None:
        require_range("rollout.every_n_steps", self.every_n_steps, 0, closed="[)")
        require_range("rollout.episodes", self.episodes, 1, closed="[)")


@dataclass(frozen=True)
class HoldOut:
    """Trajectories kept out of training, and how they choose among its weights.

    Args:
        trajectories: how many; 0: none.
        every_n_steps: steps between validations.
        monitor: what decides: `error` (of the action) or `loss` (the negative likelihood), both weighted.
        patience: validations without improvement after which training stops; 0: never.
        min_delta: share of the best so far by which a validation must improve on it to count.
    """

    trajectories: int
    every_n_steps: int = 500
    monitor: Literal["error", "loss"] = "error"
    patience: int = 0
    min_delta: float = 0.0

    def __post_init__(self) -> None:
        require_range("hold_out.trajectories", self.trajectories, 0, closed="[)")
        require_range("hold_out.every_n_steps", self.every_n_steps, 1, closed="[)")


@dataclass(frozen=True)
class Settle:
    """When a discriminator has learnt enough; the numbers are those of `tailo_pl.callbacks.Settled`.

    Args:
        ts_states: states of TS kept out of training.
        every_n_steps: steps between checks.
        trajectories: of TA, scored at each check.
        correlation: of their ranks from one check to the next, at least this.
        tolerance: change of the separation of TS from TA, at most this share of it.
        patience: checks in a row that must pass.
    """

    ts_states: int = 50
    every_n_steps: int = 250
    trajectories: int = 1000
    correlation: float = 0.99
    tolerance: float = 0.05
    patience: int = 2

    def __post_init__(self) -> None:
        require_range("settle.ts_states", self.ts_states, 1, closed="[)")


@dataclass(frozen=True)
class Stage:
    """One training in the list that makes a method.

    Args:
        model: class_path and init_args of the module; dimensions and bounds are filled in from the data.
        data: arguments of the data module that are the stage's own (kind of batches, size, sampling).
        seed: of the network's initial weights and the batches.
        max_steps: gradient steps; None: as many as `passes` says.
        passes: passes over TS, in batches of the stage's size.
        negatives: safe negatives from an earlier stage's scores; None: all of TA.
        weights: weights from an earlier stage's scores; None: 1 for every step.
        rewards: rewards from an earlier stage's scores; None: none.
        transport: rewards from optimal transport between TA and TS; None: none.
        rollout: when to play episodes; None: never.
        hold_out: trajectories that choose among the weights; None: the last weights are kept.
        settle: for discriminators: when to stop before all steps are done; None: never.
    """

    model: dict[str, Any]
    data: dict[str, Any]
    seed: int
    max_steps: int | None = None
    passes: int | None = None
    negatives: Negatives | None = None
    weights: Weights | None = None
    rewards: Rewards | None = None
    transport: Transport | None = None
    rollout: Rollout | None = None
    hold_out: HoldOut | None = None
    settle: Settle | None = None

    def __post_init__(self) -> None:
        if (self.max_steps is None) == (self.passes is None):
            raise UserError(f"max_steps, passes: {self.max_steps} and {self.passes} given, expected one of the two")
        for name, count in (("max_steps", self.max_steps), ("passes", self.passes)):
            if count is not None:
                require_range(name, count, 1, closed="[)")
        require_range("seed", self.seed, 0, 2**32, closed="[)")
        if self.rewards is not None and self.transport is not None:
            raise UserError("rewards, transport: both given, expected one of the two")


@dataclass(frozen=True)
class Experiment:
    """Everything a run needs to know: what was asked for, and what was built from it."""

    config: dict[str, Any]
    environment: Environment | None
    source: Source
    setting: Setting
    stages: dict[str, Stage]
    names: dict[str, str] = field(default_factory=dict)

    @cached_property
    def task(self) -> Task:
        """TS and TA, read once."""
        return load_task(self.source, self.setting)

    @cached_property
    def action_bounds(self) -> Bounds:
        """Bounds of the actions: the environment's, the source's, or those of the recorded actions."""
        if self.environment is not None:
            return self.environment.action_low, self.environment.action_high
        known = self.source.action_bounds(self.setting.ta_part)
        return known if known is not None else _recorded_bounds(self.task.ta)

    def max_steps(self, name: str) -> int:
        """Gradient steps of a stage; passes over TS are counted in its batches."""
        stage = self.stages[name]
        if stage.passes is None:
            assert stage.max_steps is not None
            return stage.max_steps
        states = self.task.ts.steps
        return stage.passes * math.ceil(states / min(states, int(stage.data["batch_size"])))

    @property
    def std_floor(self) -> float:
        return float(self.config["env"]["std_floor"])

    def class_config(self, group: str) -> dict[str, Any]:
        """`group` as class_path and init_args, as jsonargparse writes it."""
        return as_class(self.config[group], _OWN_KEYS[group])

    def loggers_beside(self) -> list[dict[str, Any]]:
        """The logger beside that of metrics.csv, where there is one."""
        beside = self.config["logger"].get("beside")
        return [] if beside is None else [as_class(beside, ())]


def _recorded_bounds(ta: Trajectories) -> Bounds:
    if ta.recording.actions is None:
        raise UserError("TA: no actions recorded, expected state-action trajectories")
    ranges = [(chunk.min(0), chunk.max(0)) for chunk in ta.chunks(ta.recording.actions)]
    low, high = np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)
    high = np.where(low < high, high, low + 1.0)  # a dimension that never moves still needs a range
    log.warning(
        "action bounds: none given, taking those of the recorded actions, low %s, high %s; "
        "source.action_low and source.action_high set them",
        _listed(low),
        _listed(high),
    )
    return tuple(low.tolist()), tuple(high.tolist())


def _listed(numbers: NDArray[Any]) -> str:
    return f"[{', '.join(f'{number:.4g}' for number in numbers)}]"


# Keys of a group that belong to the experiment rather than to the class the group builds.
_OWN_KEYS = {
    "env": ("name", "gamma", "std_floor", "fast_policy_steps", "divergence", "absorbing"),
    "source": ("name",),
    "setting": ("name", "beta_2", "absorbing"),
    "logger": ("beside",),
}
_TOP_KEYS = {
    "method", "preset", "env", "source", "setting", "trainer", "logger",
    "seed", "discriminator_seed", "name", "runs", "schema", "threads", "compile", "checkpoint_every",
}  # fmt: skip


def as_class(group: Mapping[str, Any], own: tuple[str, ...]) -> dict[str, Any]:
    """A flat group as class_path and init_args."""
    arguments = {key: value for key, value in group.items() if key != "class_path" and key not in own}
    return {"class_path": group["class_path"], "init_args": arguments}


def read_experiment(config: dict[str, Any]) -> Experiment:
    """Check a composed configuration and build what it names. Reads and writes nothing."""
    unknown = sorted(set(config) - _TOP_KEYS)
    if unknown:
        raise UserError(f"config: unknown key {unknown[0]!r}, expected one of {', '.join(sorted(_TOP_KEYS))}")
    if config.get("schema", SCHEMA) != SCHEMA:
        raise UserError(f"config: schema {config['schema']} found, this version reads {SCHEMA}")
    missing = sorted(_TOP_KEYS - set(config) - {"schema", "compile"})
    if missing:
        raise UserError(f"config: {missing[0]}: not there, expected a value")
    try:
        require_range("env.std_floor", float(config["env"]["std_floor"]), 0)
    except (TypeError, ValueError) as error:
        raise UserError(f"env.std_floor: {config['env']['std_floor']!r} given, expected a number") from error
    if config["trainer"].get("accumulate_grad_batches", 1) != 1:
        raise UserError("trainer.accumulate_grad_batches: expected 1; method.stages.*.data.batch_size sets the batch")
    for key, kind in (("runs", str), ("seed", int), ("discriminator_seed", int), ("checkpoint_every", int)):
        if not isinstance(config[key], kind):
            raise UserError(f"{key}: {config[key]!r} given, expected {kind.__name__}")
    if not isinstance(config.get("compile", False), bool):
        raise UserError(f"compile: {config['compile']!r} given, expected true or false")
    trainer, stages = config["trainer"], config["method"]["stages"]
    if trainer.get("precision") == AUTO:  # decided once: a run that is resumed elsewhere keeps it
        # Values are differences of large numbers: half of the digits would be all that matters of them.
        learns_values = any((stage or {}).get("data", {}).get("batches") == "transitions" for stage in stages.values())
        accelerator = trainer.get("accelerator", "auto")
        trainer = {**trainer, "precision": "32-true" if learns_values else precision_for(accelerator)}
        config = {**config, "trainer": trainer}
    devices = trainer.get("devices", 1)
    if not isinstance(devices, int) or devices < 1:
        raise UserError(f"trainer.devices: {devices!r} given, expected a positive number")
    stages = {
        name: _typed(Stage, stage, f"method.stages.{name}") for name, stage in stages.items() if stage is not None
    }
    if not stages:
        raise UserError("method.stages: all are null, expected at least one stage")
    _check_order(stages)
    _check_stage_data(stages)
    return Experiment(
        config=config,
        environment=None if config["env"]["class_path"] is None else _built(Environment, config, "env"),
        source=_built(Source, config, "source"),
        setting=_built(Setting, config, "setting"),
        stages=stages,
        names={group: config[group]["name"] for group in ("env", "source", "setting", "method", "preset")},
    )


def _check_order(stages: dict[str, Stage]) -> None:
    before: list[str] = []
    for name, stage in stages.items():
        for use, wanted in (("negatives", stage.negatives), ("weights", stage.weights), ("rewards", stage.rewards)):
            if wanted is not None and wanted.scores not in before:
                there = ", ".join(before) or "none"
                raise UserError(
                    f"method.stages.{name}.{use}.scores: {wanted.scores!r} given, expected an earlier stage ({there})"
                )
        before.append(name)


def _check_stage_data(stages: dict[str, Stage]) -> None:
    allowed = {"batches", "batch_size", "sampling", "steps", "absorbing", "expert", "initial"}
    for name, stage in stages.items():
        for key in stage.data:
            if key not in allowed:
                raise UserError(
                    f"method.stages.{name}.data: unknown key {key!r}, expected one of {', '.join(sorted(allowed))}"
                )


def _built(base: type[Any], config: Mapping[str, Any], group: str) -> Any:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(base, group)
    return parse(parser, {group: as_class(config[group], _OWN_KEYS[group])})[group]


def _typed(kind: type[Any], values: Any, name: str) -> Any:
    if not isinstance(values, Mapping):
        raise UserError(f"{name}: {values!r} given, expected keys and values")
    known = {f.name for f in fields(kind)}
    for key in values:
        if key not in known:
            raise UserError(f"{name}: unknown key {key!r}, expected one of {', '.join(sorted(known))}")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(kind, "stage")
    return parse(parser, {"stage": dict(values)}, rename={"stage": name})["stage"]


def parse(
    parser: ArgumentParser,
    values: dict[str, Any],
    rename: Mapping[str, str] | None = None,
    *,
    instantiate: bool = True,
) -> Namespace:
    """Parse and, unless told not to, instantiate what may be named (`tailo_pl.trusted`).

    jsonargparse's complaints come as one line.
    """
    restrict_imports()
    try:
        parsed = parser.parse_object(values)
        built: Namespace = parser.instantiate(parsed) if instantiate else parsed
        return built
    except (ArgumentError, ValueError, TypeError, MisconfigurationException) as error:
        raise as_user_error(error, rename) from error


def as_user_error(error: BaseException, rename: Mapping[str, str] | None = None) -> UserError:
    """A complaint of jsonargparse or of a class it built, as one line in the user's names."""
    cause: BaseException | None = error
    while cause is not None:  # our own message, if one started it, is the best there is
        if isinstance(cause, UserError):
            return cause
        cause = cause.__cause__ or cause.__context__
    message = str(error)
    key = re.search(r'Parser key "([^"]+)"', message)
    if denied := re.search(r"Importing '([^']+)' is not allowed", message):
        message = (f"{key.group(1)}: " if key else "") + _denied(denied.group(1))
    # A union's complaint lists one line per alternative; the first is the one that was meant.
    if found := re.search(r"Errors:\s+- (.*?)(?=\n\s*- |\nGiven value)", message, re.DOTALL):
        message = (f"{key.group(1)}: " if key else "") + found.group(1)
    elif found := re.match(r'Parser key "([^"]+)":\s*(.*)', message, re.DOTALL):
        message = f"{found.group(1)}: {found.group(2)}"
    message = " ".join(message.split())
    message = re.sub(r""": Problem with given class_path '[^']+': Parser key "([^"]+)":""", r".\1:", message)
    message = re.sub(r"Problem with given class_path '([^']+)': Option", r"\1: option", message)
    message = re.sub(r"Expected an? (?:<class '(\w+)'>|typing\.Literal(\[[^\]]*\]))\.?", _expected, message)
    for inner, outer in (rename or {}).items():
        message = re.sub(rf"^{re.escape(inner)}\b", outer, message)
    return UserError(message)


def _denied(path: str) -> str:
    return f"{path!r} given, expected a class of {', '.join(PACKAGES)} (or of yours: --allow {path.split('.')[0]})"


def _expected(found: re.Match[str]) -> str:
    """Python's name of a type as people say it."""
    kind, literals = found.groups()
    return f"expected {kind}." if kind else f"expected one of {literals[1:-1]}."
