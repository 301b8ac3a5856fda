"""From overrides to an experiment, as `tailo train` makes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_module
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tailo_pl.config.choices import explain, resolved, search_override
from tailo_pl.config.overrides import key_of, of_groups, readable, unknown_key
from tailo_pl.config.values import require_values, value_of
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
    groups = of_groups(overrides)
    config = _composed(groups)
    _set_values(config, [one for one in overrides if one not in groups])
    if change is not None:
        values: Any = OmegaConf.to_container(config)
        change(values)
        config = DictConfig(values)
    return resolved(config)


def check_values(config: DictConfig, overrides: Sequence[str]) -> None:
    """Hold the values that overrides have set in what Hydra composed against those that stand there without them."""
    groups = of_groups(overrides)
    if values := [one for one in overrides if one not in groups]:
        usual = _composed(groups)
        require_values(config, {key: value_of(usual, key) for key in map(key_of, values)})


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


def _set_values(config: DictConfig, overrides: Sequence[str]) -> None:
    """Set values as Hydra does behind its composition, and check them.

    Here rather than there: what stands in their place before need not be composed a second time, and a mistake is said
    in half the time.
    """
    usual = {key: value_of(config, key) for key in map(key_of, overrides)}
    try:
        ConfigLoaderImpl._apply_overrides_to_config(OverridesParser.create().parse_overrides(list(overrides)), config)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explained(error, config) from error
    require_values(config, usual)


def explained(error: Exception, overrides: Sequence[str]) -> UserError:
    """What Hydra says of these overrides, as one line."""
    groups = of_groups(overrides)
    return _explained(error, _composed(groups) if len(groups) < len(overrides) else None)


def _explained(error: Exception, config: DictConfig | None) -> UserError:
    """As one line; where a key is wrong, with what comes near it in a configuration."""
    found = re.search(r"Could not override '([^']+)'", str(error))
    return UserError(unknown_key(found.group(1), config) if found and config is not None else explain(str(error)))
