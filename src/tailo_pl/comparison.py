"""Several methods on the same task: what is missing is run, what is there is reused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tailo_pl import run
from tailo_pl.choices import explain
from tailo_pl.console import making_data
from tailo_pl.data.cache import fingerprint
from tailo_pl.errors import UserError
from tailo_pl.experiment import Experiment, read_experiment

log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    Args:
        methods: names, each perhaps with overrides of its own behind colons (`smodice:method.divergence=kl`).
        seeds: how many, from 0.
        overrides: what all of them share: env, setting, preset, ...
    """

    methods: tuple[str, ...]
    seeds: int
    overrides: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Comparison:
        """From `methods=a,b seeds=3 env=...`."""
        given = dict(argument.partition("=")[::2] for argument in arguments if "=" in argument)
        methods = tuple(name for name in given.pop("methods", "").split(",") if name)
        seeds = given.pop("seeds", "3")
        if not methods:
            raise UserError("compare: no methods given, expected methods=tailo,bc,...")
        if not seeds.isdigit() or int(seeds) < 1:
            raise UserError(f"compare: seeds={seeds} given, expected how many")
        for argument in arguments:
            key = argument.partition("=")[0]
            if "=" not in argument or key in ("method", "seed", "name", "resume"):
                raise UserError(f"compare: {argument!r} given, expected methods=..., seeds=N and key=value for all")
        return cls(methods, int(seeds), tuple(f"{key}={value}" for key, value in given.items()))

    def jobs(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Each method with the overrides of its runs, one for each seed; a run's name says what it is a run of."""
        for method in self.methods:
            name, *own = method.split(":")
            asked = [*self.overrides, f"method={name}", *own]
            named = f"name=compare-{fingerprint(asked)[:6]}"
            yield method, [[*asked, f"seed={seed}", f"{named}-seed{seed}"] for seed in range(self.seeds)]


def compare(comparison: Comparison) -> tuple[list[Path], list[str]]:
    """Run every job that has not been run. What a method cannot do is said before the first of them runs.

    Returns:
        The folders of the finished runs, and a line for each method that was refused and each job that failed.
    """
    failed: list[str] = []

    def attempt(label: str, overrides: Sequence[str], work: Callable[[Experiment], ResultT]) -> ResultT | None:
        try:
            return work(composed(overrides))
        except UserError as error:
            failed.append(f"{label}: {error}")
            log.warning("%s", failed[-1])
            return None

    possible = [jobs for method, jobs in comparison.jobs() if attempt(f"methods={method}", jobs[0], _can_be_run)]
    folders = [attempt(" ".join(job), job, trained) for jobs in possible for job in jobs]
    return [folder for folder in folders if folder is not None], failed


def _can_be_run(experiment: Experiment) -> bool:
    """True, or a UserError; a run that is finished needs nothing."""
    if not (run.run_folder(experiment) / "summary.json").exists():
        with making_data():
            run.check(experiment)
    return True


def composed(overrides: Sequence[str]) -> Experiment:
    """The experiment that `tailo train` makes of these overrides."""
    try:
        with initialize_config_module("tailo_pl.configs", version_base="1.3"):
            config: Any = OmegaConf.to_container(compose("train", overrides=list(overrides)), resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(str(error))) from error
    return read_experiment(config)


def trained(experiment: Experiment) -> Path:
    """The folder of a named experiment's finished run; run first, or gone on with, where it is not finished."""
    run_dir = run.run_folder(experiment)
    if not (run_dir / "summary.json").exists():
        with making_data():
            run.prepare(experiment)
        run.execute(run_dir, experiment)
    elif not run.is_of(run_dir, experiment.config):
        raise UserError(f"{run_dir}: this run was made with another configuration than is asked for now; delete it")
    return run_dir
