"""From overrides to an experiment, as `tailo train` makes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tailo_pl.config.choices import explain, resolved, search_override
from tailo_pl.config.overrides import of_groups, readable, unknown_key
from tailo_pl.config.values import require_values
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.config.experiment import Experiment


def composed_config(overrides: Sequence[str], change: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """The configuration that these overrides ask for, with every reference in it followed.

    Args:
        overrides: as on the command line.
        change: changes the values before references are followed; what it sets needs no quoting.
    """
    overrides = readable(overrides)
    config = _composed(overrides)
    check_values(config, overrides)
    if change is not None:
        values: Any = OmegaConf.to_container(config)
        change(values)
        config = DictConfig(values)
    return resolved(config)


def check_values(config: DictConfig, overrides: Sequence[str]) -> None:
    """Hold the values that overrides have set against those that stand there without them."""
    groups = of_groups(overrides)
    values = [one for one in overrides if one not in groups and not one.startswith("hydra")]
    if values:
        require_values(config, _composed(groups), values)


def composed(overrides: Sequence[str]) -> Experiment:
    """The experiment that `tailo train` makes of these overrides."""
    from tailo_pl.config.experiment import read_experiment

    return read_experiment(composed_config(overrides))


def _composed(overrides: Sequence[str]) -> DictConfig:
    try:
        # In a job of a sweep Hydra is at work already, and there can be one only.
        at_work = GlobalHydra.instance().is_initialized()
        with nullcontext() if at_work else initialize_config_module("tailo_pl.configs", version_base="1.3"):
            return compose("train", overrides=[*search_override(), *overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise explained(error, overrides) from error


def explained(error: Exception, overrides: Sequence[str]) -> UserError:
    """What Hydra says of these overrides, as one line."""
    found = re.search(r"Could not override '([^']+)'", str(error))
    groups = of_groups(overrides)
    if found and len(groups) < len(overrides):  # a key, then: what comes near it?
        return UserError(unknown_key(found.group(1), _composed(groups)))
    return UserError(explain(str(error)))
