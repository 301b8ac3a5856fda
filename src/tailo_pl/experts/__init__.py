"""Policies that come with the package: for each locomotion task an expert, a medium one, and experts in changed bodies.

A policy is an npz file of float32 arrays: `w0, b0, w1, b1, w2, b2` (each layer is `x @ w + b`), `obs_mean`,
`obs_std`, `noise_std` (its exploration noise, one per action) and `kind`. `manifest.json` states where each comes
from and what it was measured to be worth.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailo_pl.errors import UserError

Float32s = NDArray[np.float32]

CLIPPED = "tanh-layers, clip"
"""Standardised observations clipped to ±10, tanh layers, linear output clipped to the bounds (TRPO)."""
SQUASHED = "relu-layers, tanh"
"""Raw observations, ReLU layers, tanh output (TD3)."""

_LAYERS = 3


@dataclass(frozen=True)
class NpzPolicy:
    """A feed-forward policy with two hidden layers whose actions lie within [-1, 1].

    Attributes:
        kind: `CLIPPED` or `SQUASHED`.
        weights: one matrix per layer, inputs x outputs.
        biases: one vector per layer.
        obs_mean: subtracted from observations (`CLIPPED` only).
        obs_std: divides them then (`CLIPPED` only).
        noise_std: standard deviation of the exploration noise the policy was trained with, per action.
    """

    kind: str
    weights: tuple[Float32s, ...]
    biases: tuple[Float32s, ...]
    obs_mean: Float32s
    obs_std: Float32s
    noise_std: Float32s

    @classmethod
    def load(cls, file: Path | Traversable) -> NpzPolicy:
        """Read and check a policy file."""
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as npz:
                arrays = {name: npz[name] for name in npz.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"{file}: not a readable policy file ({error})") from error
        expected = {"kind", "obs_mean", "obs_std", "noise_std", *(f"{x}{i}" for x in "wb" for i in range(_LAYERS))}
        if arrays.keys() != expected:
            raise UserError(f"{file}: arrays {sorted(arrays)} found, expected {sorted(expected)}")
        kind = str(arrays.pop("kind"))
        if kind not in (CLIPPED, SQUASHED):
            raise UserError(f"{file}: kind {kind!r} found, expected {CLIPPED!r} or {SQUASHED!r}")
        for name, array in arrays.items():
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise UserError(f"{file}: {name} ({array.dtype}) found, expected finite float32 numbers")
        policy = cls(
            kind=kind,
            weights=tuple(arrays[f"w{i}"] for i in range(_LAYERS)),
            biases=tuple(arrays[f"b{i}"] for i in range(_LAYERS)),
            obs_mean=arrays["obs_mean"],
            obs_std=arrays["obs_std"],
            noise_std=arrays["noise_std"],
        )
        if not policy._shapes_agree():
            raise UserError(f"{file}: shapes { {name: array.shape for name, array in arrays.items()} } do not agree")
        return policy

    def save(self, file: Path) -> None:
        """Write the policy as a file that `load` reads."""
        layers = {f"w{i}": w for i, w in enumerate(self.weights)} | {f"b{i}": b for i, b in enumerate(self.biases)}
        np.savez_compressed(
            file,
            allow_pickle=False,
            kind=np.array(self.kind),
            obs_mean=self.obs_mean,
            obs_std=self.obs_std,
            noise_std=self.noise_std,
            **layers,
        )

    @property
    def observation_dim(self) -> int:
        """Length of an observation; the ant's policies see its 27 numbers, without padding."""
        return int(self.weights[0].shape[0])

    @property
    def action_dim(self) -> int:
        """Length of an action."""
        return int(self.weights[-1].shape[1])

    def act(
        self,
        observations: NDArray[np.floating],
        noise_share: float = 0.0,
        rng: np.random.Generator | None = None,
        *,
        before_tanh: bool = False,
    ) -> Float32s:
        """Choose an action for each observation.

        Args:
            observations: one per row; what is beyond `observation_dim` (zeros that pad the ant) is not looked at.
            noise_share: how much of the exploration noise to add; 0 acts deterministically.
            rng: draws the noise; needed if there is any.
            before_tanh: add the noise before the tanh (`SQUASHED` only), which then bounds actions without clipping.
        """
        if before_tanh and self.kind != SQUASHED:
            raise ValueError(f"noise before a tanh asked of a policy of kind {self.kind!r}")
        x = observations[:, : self.observation_dim]
        if self.kind == CLIPPED:
            x = np.clip((x - self.obs_mean) / self.obs_std, -10, 10)
        x = x.astype(np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight + bias
            x = np.tanh(x) if self.kind == CLIPPED else np.maximum(x, 0)
        action = x @ self.weights[-1] + self.biases[-1]
        noise = self._noise(action.shape, noise_share, rng) if noise_share else np.float32(0)
        if self.kind == SQUASHED:
            action = np.tanh(action + noise) if before_tanh else np.tanh(action) + noise
        else:
            action = action + noise
        return np.clip(action, -1, 1)

    def _noise(self, shape: tuple[int, ...], share: float, rng: np.random.Generator | None) -> Float32s:
        if rng is None:
            raise ValueError("noise needs a random generator")
        return np.float32(share) * self.noise_std * rng.standard_normal(shape, dtype=np.float32)

    def _shapes_agree(self) -> bool:
        if any(w.ndim != 2 for w in self.weights):
            return False
        outputs = [w.shape[1] for w in self.weights]
        return (
            [w.shape[0] for w in self.weights[1:]] == outputs[:-1]
            and [b.shape for b in self.biases] == [(n,) for n in outputs]
            and self.obs_mean.shape == self.obs_std.shape == (self.observation_dim,)
            and self.noise_std.shape == (self.action_dim,)
        )


def _folder() -> Traversable:
    return resources.files(__name__)


def expert_names() -> tuple[str, ...]:
    """Names of the policies in the package, e.g. `hopper`, `hopper-medium`, `ant-crippled-leg`."""
    return tuple(sorted(f.name.removesuffix(".npz") for f in _folder().iterdir() if f.name.endswith(".npz")))


def load_expert(name: str) -> NpzPolicy:
    """Load a policy of the package by its name."""
    _require_known(name)
    return NpzPolicy.load(_folder() / f"{name}.npz")


def expert_checksum(name: str) -> str:
    """SHA-256 of a policy's file as it is."""
    _require_known(name)
    return hashlib.sha256((_folder() / f"{name}.npz").read_bytes()).hexdigest()


def expert_facts(name: str) -> dict[str, Any]:
    """What `manifest.json` states about a policy of the package."""
    _require_known(name)
    facts: dict[str, Any] = _manifest()[name]
    return facts


@cache
def _manifest() -> dict[str, Any]:
    policies: dict[str, Any] = json.loads((_folder() / "manifest.json").read_text(encoding="utf-8"))["policies"]
    return policies


def _require_known(name: str) -> None:
    names = expert_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3) or names
        raise UserError(f"expert: {name!r} is unknown, expected e.g. {', '.join(near)}")
