"""What is wrong with an experiment: its stages, its data, and the two together."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tailo_pl.config.experiment import Experiment
from tailo_pl.data.checks import check_task
from tailo_pl.errors import Refusal, UserError
from tailo_pl.training.building import check_stages
from tailo_pl.training.devices import require_device

log = logging.getLogger(__name__)


def check(experiment: Experiment) -> None:
    """Find what is wrong with the stages, the data, or the two together before anything is spent on them."""
    require_device(experiment.config["trainer"].get("accelerator", "auto"))
    check_stages(experiment)
    task, environment = experiment.task, experiment.environment
    if environment is not None and task.ta.recording.actions is not None:
        widths = (task.ta.recording.observations.shape[1], task.ta.recording.actions.shape[1])
        expected = (environment.observation_dim, len(environment.action_low))
        if widths != expected:
            raise UserError(
                f"env {experiment.names['env']}: {expected[0]} numbers in a state and {expected[1]} in an action, "
                f"but the data has {widths[0]} and {widths[1]}"
            )
    env, source = experiment.config["env"], experiment.config["source"]
    if "keys" in env and "keys" in source and env["keys"] != source["keys"]:
        raise UserError(f"source.keys: {source['keys']} given, expected {env['keys']} as env.keys, for the same states")
    odd = check_task(task, *experiment.action_bounds, trust=experiment.trust, std_floor=experiment.std_floor)
    for line in (*other_bodies(experiment), *odd):
        log.warning("%s", line)
    check_parts(experiment)


def check_parts(experiment: Experiment) -> None:
    """Whether the task has what the batches and inputs of every stage need."""
    method, setting = experiment.names["method"], experiment.names["setting"]
    for name, stage in experiment.stages.items():
        checks = {"batches": stage.kind.check} | {f"inputs.{key}": one.check for key, one in stage.inputs.items()}
        for part, check_part in checks.items():
            try:
                check_part(experiment.task, experiment.setting)
            except Refusal as error:
                raise Refusal(f"method {method}, setting {setting}: {error}") from error
            except UserError as error:
                raise UserError(f"method.stages.{name}.{part}.{error}") from error


def other_bodies(experiment: Experiment) -> Iterator[str]:
    """A line for each part of the data that was recorded in another body than the one that is scored."""
    scored = None if experiment.environment is None else experiment.environment.body
    for part in experiment.setting.parts:
        recorded = experiment.source.body(part)
        if scored is not None and recorded not in (None, scored):
            yield f"env.body: {scored} given, but part {part} of the data was recorded in {recorded}; expected the same"
