"""Values of a composed configuration, checked by the names under which users set them.

The classes that take the values check them again, and more: whoever builds them in Python has no configuration. What
is here is what can be said at once, without importing a class, and in the user's own words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tailo_pl.errors import UserError, one_line, require_range

if TYPE_CHECKING:
    from omegaconf import DictConfig


class Limit(NamedTuple):
    """An interval, with its ends as `require_range` writes them."""

    low: float
    high: float = math.inf
    closed: str = "[)"


_SHARE = Limit(0, 1, "()")
_COUNT, _NOT_NEGATIVE = Limit(1), Limit(0)
LIMITS = {
    "method.alpha": _NOT_NEGATIVE,
    "method.beta_1": _SHARE,
    "method.beta_2": Limit(0, 1, "[]"),
    "method.eta_p": _SHARE,
    "method.gamma": Limit(0, 1),
    "method.lipschitz": _NOT_NEGATIVE,
    "method.discount": Limit(0, 1),
    "setting.count": _COUNT,
    "setting.every": Limit(2),
    "setting.experts": _COUNT,
    "setting.first": _NOT_NEGATIVE,
    "setting.last": _NOT_NEGATIVE,
    "setting.ts_trajectory": _NOT_NEGATIVE,
    "preset.pretrain_steps": _COUNT,
    "preset.formal_steps": _COUNT,
    "preset.policy_steps": _COUNT,
    "preset.discriminator_batch": _COUNT,
    "preset.policy_batch": _COUNT,
    "preset.policy_learning_rate": Limit(0, closed="()"),
    "preset.weight_decay": _NOT_NEGATIVE,
    "preset.averaging": Limit(0, 1),
    "preset.network.members": _COUNT,
    "preset.held_out.trajectories": _NOT_NEGATIVE,
    "preset.held_out.patience": _NOT_NEGATIVE,
    "preset.held_out.min_delta": Limit(0, 1),
    "preset.settled.patience": _NOT_NEGATIVE,
    "preset.settled.held_out": _NOT_NEGATIVE,
    "preset.rollout.every_n_steps": _NOT_NEGATIVE,
    "preset.rollout.episodes": _COUNT,
    "seed": Limit(0, 2**32),
    "discriminator_seed": Limit(0, 2**32),
    "threads": _COUNT,
    "checkpoint_every": _NOT_NEGATIVE,
}
"""Where a number may lie; a test holds each against the class that takes it."""


def require_values(config: DictConfig, usual: Mapping[str, Any]) -> None:
    """Raise `UserError` for a value that is not of the kind that stands there by itself, or beyond its limits.

    Args:
        config: composed.
        usual: by their keys, what stands in place of the values that were set (`value_of`).
    """
    for key, before in usual.items():
        given = value_of(config, key)
        if given is None:
            continue
        if isinstance(before, bool):
            _require(key, given, isinstance(given, bool), "true or false")
        elif isinstance(before, (int, float)):
            _require(key, given, isinstance(given, (int, float)) and not isinstance(given, bool), "a number")
        elif isinstance(before, dict):
            _require(key, given, isinstance(given, dict), "keys and values below it")
        if key in LIMITS and isinstance(given, (int, float)):
            require_range(key, given, *LIMITS[key][:2], closed=LIMITS[key].closed)


def _require(key: str, given: Any, right: bool, expected: str) -> None:
    if not right:
        raise UserError(f"{key}: {one_line(repr(given))} given, expected {expected}")


def value_of(config: DictConfig, key: str) -> Any:
    """What stands under a key, with references followed; None: nothing does, or it cannot be told yet."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        found = OmegaConf.select(config, key)
        return OmegaConf.to_container(found) if OmegaConf.is_dict(found) else found
    except OmegaConfBaseException:
        return None
