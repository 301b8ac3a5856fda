"""`tailo train` through Hydra's own front door: sweeps (-m), and flags that show what is there."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailo_pl.commands.jobs import train_job
from tailo_pl.commands.logs import quieten
from tailo_pl.config.choices import search_flag
from tailo_pl.config.overrides import in_quotes
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from omegaconf import DictConfig


def sweep(arguments: list[str]) -> None:
    """Run every job, and at the end name those that failed."""
    with notes(arguments) as folder, own_folder(arguments) as own:
        # Its parser wants all overrides in one piece.
        overrides = [argument for argument in arguments if argument not in ("-m", "--multirun")]
        through_hydra(["-m", *overrides, *own], partial(_sweep_job, folder))
        lines = [path.read_text() for path in sorted(folder.iterdir())]
    for line in lines[:-1]:
        sys.stderr.write(f"tailo: {line}\n")
    if lines:
        raise UserError(lines[-1])


def through_hydra(arguments: list[str], job: Callable[[DictConfig], Any] = train_job) -> None:
    """Let Hydra compose what the arguments ask for, and show it or, with -m, call `job` with each combination."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra raise its errors instead of printing them
    program = sys.argv
    sys.argv = ["tailo train", *search_flag(), *arguments]
    try:
        hydra.main(version_base="1.3", config_path="pkg://tailo_pl.configs", config_name="train")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        from tailo_pl.config.compose import explained

        overrides = [one for one in arguments if not one.startswith("-") and "=" in one]
        raise explained(error, overrides) from error
    finally:
        sys.argv = program


@contextmanager
def notes(arguments: list[str]) -> Iterator[Path]:
    """A folder in which jobs say what came of them: where runs are, which jobs on other machines see as well."""
    wanted = _runs(arguments)
    try:
        place = next(folder for folder in (wanted, *wanted.parents) if folder.is_dir())
        made = tempfile.TemporaryDirectory(prefix=".tailo-sweep-", dir=place)
    except OSError as error:
        raise UserError(f"{wanted}: cannot be written ({error.strerror}); runs=... says where else") from error
    with made as folder:
        yield Path(folder)


@contextmanager
def own_folder(arguments: list[str]) -> Iterator[list[str]]:
    """What tells Hydra in which folder to keep what it notes of a sweep. It makes it before it looks at the first
    job; if no job came to anything, all of it goes again."""
    if any(argument.startswith("hydra.sweep.dir=") for argument in arguments):
        yield []
        return
    folder = _runs(arguments) / ".multirun" / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    try:
        yield [f"hydra.sweep.dir={in_quotes(str(folder))}"]
    finally:
        left = [path for path in folder.rglob("*") if path.is_file() and path.name != "multirun.yaml"]
        if not left:
            shutil.rmtree(folder, ignore_errors=True)
        for empty in (folder.parent, folder.parent.parent):
            with suppress(OSError):  # it is not empty, or never was made
                empty.rmdir()


def _runs(arguments: list[str]) -> Path:
    given = [argument.split("=", 1)[1].strip("'\"") for argument in arguments if argument.startswith("runs=")]
    return Path(given[-1] if given else "runs").absolute()


def _sweep_job(failed: Path, config: DictConfig) -> float | None:
    """One job of a sweep, perhaps in a process of its own. It notes in a file how it failed: an error that left here
    would stop the other jobs."""
    from hydra.core.hydra_config import HydraConfig

    quieten()
    try:
        return train_job(config)
    except UserError as error:
        job = HydraConfig.get().job
        (failed / f"{job.num:06}").write_text(f"job {job.num} ({job.override_dirname}): {error}")
        return None
