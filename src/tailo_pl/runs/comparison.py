"""Several methods on the same task: what is missing is run, what is there is reused."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from tailo_pl.config.compose import composed
from tailo_pl.config.experiment import Experiment
from tailo_pl.data.cache import fingerprint
from tailo_pl.errors import Refusal, UserError
from tailo_pl.runs.checks import check
from tailo_pl.runs.execute import execute
from tailo_pl.runs.folder import is_of, prepare, require_same_data, run_folder

log = logging.getLogger(__name__)
Watch = Callable[[], AbstractContextManager[None]]
"""What data is made within: whoever calls may show how far it is."""
_COMMA, _COLON = (re.compile(mark + r"(?![^\[{(]*[\]})])") for mark in ",:")  # not those within brackets


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
        given: dict[str, str] = {}
        for argument in arguments:
            key, equals, value = argument.partition("=")
            if not equals or key in ("method", "seed", "name", "resume"):
                raise UserError(f"compare: {argument!r} given, expected methods=..., seeds=N and key=value for all")
            if key in given:
                raise UserError(f"compare: {key} given twice, expected it once")
            given[key] = value
        methods = tuple(name for name in _COMMA.split(given.pop("methods", "")) if name)
        seeds = given.pop("seeds", "3")
        if not methods:
            raise UserError("compare: no methods given, expected methods=tailo,bc,...")
        for method in methods:
            name, *own = _COLON.split(method)
            if not re.fullmatch(r"\w+", name) or not all(re.match("[^=]+=", override) for override in own):
                raise UserError(f"compare: methods={method} given, expected a name, or name:key=value for a variant")
        if not seeds.isdecimal() or int(seeds) < 1:
            raise UserError(f"compare: seeds={seeds} given, expected how many, from 1")
        return cls(methods, int(seeds), tuple(f"{key}={value}" for key, value in given.items()))

    def jobs(self) -> Iterator[tuple[str, list[list[str]]]]:
        """Each method with the overrides of its runs, one for each seed; a run's name says what it is a run of."""
        for method in self.methods:
            name, *own = _COLON.split(method)
            asked = [*self.overrides, f"method={name}", *own]
            named = f"name=compare-{fingerprint(asked)[:6]}"
            yield method, [[*asked, f"seed={seed}", f"{named}-seed{seed}"] for seed in range(self.seeds)]


def compare(comparison: Comparison, watch: Watch = nullcontext) -> tuple[list[Path], list[str]]:
    """Run every job that has not been run. A mistake ends it before the first of them; a method that cannot do what is
    asked is named there, and left out.

    Args:
        comparison: what is compared.
        watch: what data is made within.

    Returns:
        The folders of the finished runs, and a line for each method that was left out and each job that failed.
    """
    jobs, failed = [], []
    for method, overrides_by_seed in comparison.jobs():
        try:
            _require_possible(composed(overrides_by_seed[0]), watch)
        except Refusal as error:
            failed.append(f"methods={method}: {error}")
        else:
            jobs += [(f"{method} seed={seed}", overrides) for seed, overrides in enumerate(overrides_by_seed)]
    for line in failed if jobs else ():  # they come again at the end, which may be hours away
        log.warning("%s", line)
    folders = []
    for number, (label, overrides) in enumerate(jobs, 1):
        log.info("%s (%d of %d)", label, number, len(jobs))
        try:
            folders.append(trained(composed(overrides), watch))
        except UserError as error:
            failed.append(f"{label}: {error}")
            log.warning("%s", failed[-1])
    return folders, failed


def _require_possible(experiment: Experiment, watch: Watch) -> None:
    """Whether a run can be made; one that is finished needs nothing."""
    if not (run_folder(experiment) / "summary.json").exists():
        with watch():
            check(experiment)


def trained(experiment: Experiment, watch: Watch = nullcontext) -> Path:
    """The folder of a named experiment's finished run; run first, or gone on with, where it is not finished."""
    run_dir = run_folder(experiment)
    if not (run_dir / "summary.json").exists():
        with watch():
            prepare(experiment)
        execute(run_dir, experiment)
    elif not is_of(run_dir, experiment.config):
        raise UserError(f"{run_dir}: this run was made with another configuration than is asked for now; delete it")
    else:
        with watch():
            require_same_data(run_dir, experiment)
    return run_dir
