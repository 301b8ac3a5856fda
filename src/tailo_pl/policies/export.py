"""`tailo export`: a policy as a file that other programs run, checked against the original."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tailo_pl.errors import UserError
from tailo_pl.files import whole_file
from tailo_pl.models.policy import PolicyModule
from tailo_pl.policies.load import onnx_session
from tailo_pl.runs.inside import require_inside
from tailo_pl.runs.trained import load_run_policy

CHECKED_STATES = 1000
TOLERANCE = 1e-5  # of an action between -1 and 1


class Exported(NamedTuple):
    """One written file."""

    format: str
    path: Path
    difference: float
    """largest difference of an action from the original's"""
    observation_dim: int


def export(run_dir: Path, formats: Sequence[str] = (), out: Path | None = None) -> list[Exported]:
    """Write a finished run's policy, its standardisation inside: raw states in, actions in their bounds out.

    Each file is run on `CHECKED_STATES` states before it gets its name.

    Args:
        run_dir: the run.
        formats: some of `FORMATS`; none: all of them.
        out: folder to write to; None: `export` in the run's folder.
    """
    for name in formats:
        if name not in FORMATS:
            raise UserError(f"--format: {name!r} given, expected one of {', '.join(FORMATS)}")
    policy = load_run_policy(run_dir)
    out = out or require_inside(run_dir / "export", run_dir)
    targets = {name: out / f"policy{FORMATS[name].suffix}" for name in formats or FORMATS}
    for path in targets.values():
        if path.exists():
            raise UserError(f"{path}: this file exists; choose another --out, or delete it")
    module, states = policy.deterministic(), representative_states(policy)
    with torch.inference_mode():
        expected = policy(torch.from_numpy(states)).numpy()
    span = float((policy.bounds.high - policy.bounds.low).max()) / 2
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, path in targets.items():
            with whole_file(path) as scratch:
                found = FORMATS[name].write(module, states, scratch)
                difference = float(np.abs(found - expected).max())
                if not difference < TOLERANCE * max(1.0, span):  # also when it is NaN
                    raise UserError(f"{path}: its actions differ from the policy's by {difference:.1e}, not written")
            written.append(Exported(name, path, difference, policy.observation_dim))
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror or error})") from error
    return written


def representative_states(policy: PolicyModule, count: int = CHECKED_STATES) -> NDArray[np.float32]:
    """Raw states spread as TA's are: normal, with the mean and deviation the policy standardises with."""
    normal = torch.randn(count, policy.observation_dim, generator=torch.Generator().manual_seed(0))
    states: NDArray[np.float32] = (policy.standardise.mean + normal * policy.standardise.std).numpy()
    return states


def _onnx(module: nn.Module, states: NDArray[np.float32], path: Path) -> NDArray[np.float32]:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"export: needs the package {error.name}: pip install 'tailo_pl[export]'") from error
    with _quiet():
        program = torch.onnx.export(
            module,
            _example(states),
            input_names=["states"],
            output_names=["actions"],
            dynamic_shapes=_any_batch(),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.save(path, external_data=False)
    actions: NDArray[np.float32] = onnx_session(path).run(None, {"states": states})[0]
    return actions


def _torch_export(module: nn.Module, states: NDArray[np.float32], path: Path) -> NDArray[np.float32]:
    with _quiet():
        program = torch.export.export(module, _example(states), dynamic_shapes=_any_batch())
        program._example_inputs = None  # the one thing of it that would be pickled
        with path.open("wb") as file:
            torch.export.save(program, file)
        with path.open("rb") as file:  # written a moment ago by ourselves: others' files are never loaded
            again = torch.export.load(file).module()
        actions: NDArray[np.float32] = again(torch.from_numpy(states)).detach().numpy()
    return actions


def _example(states: NDArray[np.float32]) -> tuple[Tensor]:
    return (torch.from_numpy(states[:2]),)  # a batch of one would be taken for the only size there is


def _any_batch() -> tuple[dict[int, object]]:
    return ({0: torch.export.Dim("batch")},)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' remarks on packages that are not needed away from the user."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


class Format(NamedTuple):
    """A kind of file."""

    suffix: str
    write: Callable[[nn.Module, NDArray[np.float32], Path], NDArray[np.float32]]
    """writes the module to a path and returns what the file computes for the states"""


FORMATS = {"onnx": Format(".onnx", _onnx), "torch_export": Format(".pt2", _torch_export)}
