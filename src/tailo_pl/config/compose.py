"""From overrides to an experiment, as `tailo train` makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tailo_pl.config.choices import explain, resolved, search_override
from tailo_pl.config.experiment import Experiment, read_experiment
from tailo_pl.errors import UserError


def composed_config(overrides: Sequence[str], change: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """The configuration that these overrides ask for, with every reference in it followed.

    Args:
        overrides: as on the command line.
        change: changes the values before references are followed; what it sets needs no quoting.
    """
    try:
        with initialize_config_module("tailo_pl.configs", version_base="1.3"):
            config = compose("train", overrides=[*search_override(), *overrides])
        if change is not None:
            values: Any = OmegaConf.to_container(config)
            change(values)
            config = DictConfig(values)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(str(error))) from error
    return resolved(config)


def composed(overrides: Sequence[str]) -> Experiment:
    """The experiment that `tailo train` makes of these overrides."""
    return read_experiment(composed_config(overrides))
