"""Environment `gym`: any environment of gymnasium, by its id, with continuous actions and observations of numbers."""

from __future__ import annotations

import difflib
import importlib
from functools import partial
from typing import Any, ClassVar, NamedTuple

import gymnasium
import gymnasium_robotics  # noqa: F401  # registers its environments
from gymnasium.envs.registration import EnvSpec

from tailo_pl.config.trusted import is_trusted
from tailo_pl.envs.environment import Environment
from tailo_pl.envs.gym_rows import GymRows, MujocoRows, Success, continuous, made, mujoco_inside
from tailo_pl.envs.observations import pieces
from tailo_pl.envs.reference_scores import RAW, Reference
from tailo_pl.errors import UserError, require_range

_FARAMA = ("gymnasium", "gymnasium_robotics")


class GymEnvironment(Environment):
    """An environment of gymnasium.

    Observations of several pieces become a state in the order of `tailo_pl.envs.observations.pieces`, which is that of
    source=minari too; files must hold the same order.

    Args:
        id: as `gymnasium.make` takes it: `Pendulum-v1`, or `my_package:MyEnv-v0`, which imports a package that was
            allowed (`--allow my_package`).
        keys: pieces of a Dict or Tuple observation that make up a state, in this order; None: all, sorted.
        success: what tells success: `info` (its `success` or `is_success` at any step), `termination`, or `none`.
        low: the return that scores 0; None, with `high`: scores are returns as they are.
        high: the return that scores 100.
        horizon: steps after which an episode ends; None: what the environment is registered with.
        kwargs: further arguments of `gymnasium.make`.
    """

    rows: ClassVar[int] = 10  # stepped in turn, and some take long to make

    def __init__(
        self,
        id: str,
        keys: list[str] | None = None,
        success: Success = "none",
        low: float | None = None,
        high: float | None = None,
        horizon: int | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.reference = _reference(low, high)
        self.knows_success = success != "none"
        self.horizon = _horizon(id, horizon)
        self._success, self._keys = success, keys
        if "max_episode_steps" in (kwargs or {}):
            raise UserError("env.kwargs: max_episode_steps given, expected it as env.horizon")
        self._make = partial(_made, id, {**(kwargs or {}), "max_episode_steps": self.horizon})
        spaces = _spaces(id, self._make, keys)
        self.observation_dim = spaces.observation_dim
        self.action_low, self.action_high = spaces.action_low, spaces.action_high
        self._rows = MujocoRows if spaces.mujoco else GymRows

    def simulator(self, rows: int) -> GymRows:
        return self._rows(self._make, rows, self.horizon, keys=self._keys, success=self._success)


class _Spaces(NamedTuple):
    """What one environment told of all of them."""

    observation_dim: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    mujoco: bool


_known: dict[str, _Spaces] = {}  # a run asks several times, and some environments take long to make


def _spaces(id: str, make: partial[gymnasium.Env[Any, Any]], keys: list[str] | None) -> _Spaces:
    asked = repr((make.args, keys))
    if asked not in _known:
        env = made(make)
        try:
            width = sum(piece.width for piece in pieces(env.observation_space, keys, "env.keys"))
            actions = continuous(env.action_space)
            low, high = (tuple(bound.reshape(-1).astype(float).tolist()) for bound in (actions.low, actions.high))
            _known[asked] = _Spaces(width, low, high, mujoco_inside(env) is not None)
        except UserError as error:
            raise UserError(f"env.id={id}: {error}") from error
        finally:
            env.close()
    return _known[asked]


def _made(id: str, arguments: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(_spec(id), disable_env_checker=True, **arguments)
    except UserError:
        raise
    except Exception as error:  # a package that is missing, arguments that do not fit: environments raise all kinds
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(f"env.id={id}: cannot be made with env.kwargs ({said})") from error


def _spec(id: str) -> EnvSpec:
    """What an id is registered as. Runs no code but that of gymnasium and of packages that were allowed."""
    module, _, name = id.rpartition(":")
    if module:
        _require_trusted(id, module)
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise UserError(f"env.id: {id!r} given, but there is no module {error.name}") from error
    try:
        spec = gymnasium.spec(name)
    except gymnasium.error.Error as error:
        near = difflib.get_close_matches(name, gymnasium.registry, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"env.id: {id!r} given, expected an id that is registered with gymnasium{hint}") from error
    for entry in (spec.entry_point, *(wrapper.entry_point for wrapper in spec.additional_wrappers)):
        if isinstance(entry, str):
            _require_trusted(id, entry.partition(":")[0])
    return spec


def _require_trusted(id: str, module: str) -> None:
    package = module.split(".")[0]
    if package not in _FARAMA and not is_trusted(module):
        raise UserError(f"env.id: {id!r} given, which runs code of {package}; where you trust it: --allow {package}")


def _horizon(id: str, given: int | None) -> int:
    horizon = _spec(id).max_episode_steps if given is None else given
    if horizon is None:
        raise UserError(f"env.horizon: not given, expected a number of steps, as {id} is registered without one")
    require_range("env.horizon", horizon, 1, closed="[)")
    return horizon


def _reference(low: float | None, high: float | None) -> Reference:
    if low is None and high is None:
        return RAW
    if low is None or high is None or not low < high:
        raise UserError(f"env.low, env.high: {low} and {high} given, expected low < high, or neither")
    return Reference(low, high, source="given: env.low and env.high")
