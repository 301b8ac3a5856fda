"""A trained policy to take away: `load_policy(path)` gives a callable, numpy in, numpy out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailo_pl.data.hub import fetched, is_id
from tailo_pl.errors import UserError

if TYPE_CHECKING:
    from tailo_pl.models.policy import PolicyModule

NotFinite = Literal["raise", "warn", "pass"]
Act = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Raw states (rows, dim) to actions (rows, dim)."""


class Policy:
    """A trained policy's deterministic action at raw states.

    Usable as it is in a loop of gymnasium: `action = policy(observation)`.

    Args:
        act: raw states (rows, observation_dim) to actions (rows, action_dim).
        observation_dim: numbers in a state.
        action_dim: numbers in an action.
        path: where it was loaded from.
        spread: raw states (rows, observation_dim) to how far the members' actions lie apart, (rows,); None: it is
            not known.
        not_finite: what is done about a state with NaN or infinity: `raise` a ValueError, `warn` and act, or `pass`.
    """

    def __init__(
        self,
        act: Act,
        observation_dim: int,
        action_dim: int,
        path: Path,
        spread: Act | None = None,
        not_finite: NotFinite = "raise",
    ) -> None:
        if not_finite not in get_args(NotFinite):
            raise UserError(f"not_finite: {not_finite!r} given, expected one of {', '.join(get_args(NotFinite))}")
        self._not_finite = not_finite
        self._act = act
        self._spread = spread
        self.observation_dim = observation_dim
        self.action_dim = action_dim
        self.path = path

    def __call__(self, states: ArrayLike) -> NDArray[np.float32]:
        """Actions within their bounds, float32.

        Args:
            states: one raw state (observation_dim,), or a batch (rows, observation_dim).

        Returns:
            (action_dim,) for one state, (rows, action_dim) for a batch.
        """
        actions = self._act(self._rows(states))
        return actions[0] if np.ndim(states) == 1 else actions

    def spread(self, states: ArrayLike) -> NDArray[np.float32] | None:
        """How far the actions of the policy's members lie apart: large where they were not taught what to do.

        The standard deviation over the members of each number of an action in [-1, 1], averaged over these numbers.

        Args:
            states: as above.

        Returns:
            () for one state, (rows,) for a batch; None where the policy has one member, or is an ONNX file, which
            holds the action alone.
        """
        rows = self._rows(states)
        if self._spread is None:
            return None
        spread = self._spread(rows)
        return spread[0] if np.ndim(states) == 1 else spread

    def _rows(self, states: ArrayLike) -> NDArray[np.float32]:
        given = np.asarray(states, dtype=np.float32)
        if given.ndim not in (1, 2) or given.shape[-1] != self.observation_dim:
            expected = f"({self.observation_dim},) or (rows, {self.observation_dim})"
            raise ValueError(f"states: shape {given.shape} given, expected {expected}")
        rows = np.atleast_2d(given)
        if self._not_finite != "pass" and not np.isfinite(rows).all():
            row, dimension = np.argwhere(~np.isfinite(rows))[0]
            message = (
                f"states: {rows[row, dimension]} found in row {row}, dimension {dimension}, expected finite numbers"
            )
            if self._not_finite == "raise":
                raise ValueError(message)
            warnings.warn(message, stacklevel=3)
        return rows

    def __repr__(self) -> str:
        return f"Policy({self.observation_dim} -> {self.action_dim}, {str(self.path)!r})"


def load_policy(path: str | Path, *, not_finite: NotFinite = "raise") -> Policy:
    """The policy of a finished run, a checkpoint, an ONNX file, or a folder for the Hub, here or there.

    Nothing in the file is run or unpickled. A `.pt2` is refused for that reason: `torch.export.load` unpickles.

    Args:
        path: folder of a finished run, a policy stage's `.ckpt`, a `.onnx` or a folder for the Hub written by
            `tailo export`, or the name of such a folder on the Hub, `org/name`.
        not_finite: what the policy does about a state with NaN or infinity: `raise` a ValueError, `warn` and act, or
            `pass`, which acts without a word.

    Returns:
        A callable: raw states in, actions in their bounds out.
    """
    given, path = str(path), Path(path)
    if not path.exists() and is_id(given) and not path.suffix:
        path = fetched(given, "model", ["config.json", "model.safetensors"])
    if path.is_dir() and (path / "model.safetensors").is_file():
        from tailo_pl.policies.hub import load_hub_folder

        return _of_module(load_hub_folder(path), path, not_finite)
    if path.is_dir():
        from tailo_pl.runs.trained import load_run_policy

        return _of_module(load_run_policy(path), path, not_finite)
    if not path.exists():
        raise UserError(f"{path}: not there, expected the folder of a run, a .ckpt or a .onnx file")
    if path.suffix == ".ckpt":
        from tailo_pl.models.policy import PolicyModule
        from tailo_pl.training.checkpoints import load_checkpoint

        return _of_module(load_checkpoint(path, PolicyModule), path, not_finite)
    if path.suffix == ".onnx":
        return _of_onnx(path, not_finite)
    if path.suffix == ".pt2":
        raise UserError(
            f"{path}: not loaded, because torch.export.load unpickles what a file holds; take the .onnx or the run, "
            "or call torch.export.load on a file you made yourself"
        )
    raise UserError(f"{path}: unknown kind of file, expected the folder of a run, a .ckpt or a .onnx file")


def _of_module(policy: PolicyModule, path: Path, not_finite: NotFinite) -> Policy:
    import torch

    module = policy.deterministic()

    def act(states: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            actions: NDArray[np.float32] = module(torch.from_numpy(states)).numpy()
        return actions

    def spread(states: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            found = policy.spread(torch.from_numpy(states))
        assert found is not None
        return found.numpy()

    several = policy.spread(torch.zeros(1, policy.observation_dim)) is not None
    return Policy(act, policy.observation_dim, policy.action_dim, path, spread if several else None, not_finite)


def _of_onnx(path: Path, not_finite: NotFinite) -> Policy:
    session = onnx_session(path)
    inputs, outputs = session.get_inputs(), session.get_outputs()
    shapes = [value.shape for value in (*inputs, *outputs)]
    if [len(inputs), len(outputs)] != [1, 1] or any(len(shape) != 2 or type(shape[1]) is not int for shape in shapes):
        raise UserError(f"{path}: inputs and outputs of shapes {shapes} found, expected one (batch, dim) each")
    name = inputs[0].name

    def act(states: NDArray[np.float32]) -> NDArray[np.float32]:
        actions: NDArray[np.float32] = session.run(None, {name: states})[0]
        return actions

    if not np.isfinite(act(np.zeros((1, shapes[0][1]), dtype=np.float32))).all():
        raise UserError(f"{path}: an action that is not finite at the state of zeros, expected finite weights")
    return Policy(act, shapes[0][1], shapes[1][1], path, not_finite=not_finite)


def onnx_session(path: Path) -> Any:
    """An onnxruntime session on one CPU thread."""
    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(f"{path}: needs the package onnxruntime: pip install 'tailo_pl[export]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the network is small
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever a damaged file makes onnxruntime raise
        raise UserError(f"{path}: not a readable ONNX file ({' '.join(str(error).split())[:200]})") from error
