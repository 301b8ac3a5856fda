"""D4RL's reference returns, with which returns are normalised: 0 is a random policy, 100 an expert.

The numbers are those of `infos.py` in the package d4rl 1.1, for all of its 147 dataset names that have any.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailo_pl.errors import UserError


@dataclass(frozen=True)
class Reference:
    """The returns that score 0 and 100, and where they come from."""

    low: float
    high: float
    source: str = "D4RL 1.1"

    def normalise(self, returns: ArrayLike) -> NDArray[np.float64]:
        """100*(R - low)/(high - low)."""
        return 100.0 * (np.asarray(returns, dtype=np.float64) - self.low) / (self.high - self.low)


RAW = Reference(low=0.0, high=100.0, source="none, scores are returns as they are")

_KINDS = "random medium expert medium-replay medium-expert"

# Returns of an environment; the kinds of data recorded in it; versions of these datasets.
_GROUPS: list[tuple[str, Reference, str, str]] = [
    ("ant", Reference(-325.6, 3879.7), _KINDS, "v0 v1 v2"),
    ("ant", Reference(-325.6, 3879.7), "full-replay", "v1 v2"),
    ("halfcheetah", Reference(-280.178953, 12135.0), _KINDS, "v0 v1 v2"),
    ("halfcheetah", Reference(-280.178953, 12135.0), "full-replay", "v1 v2"),
    ("hopper", Reference(-20.272305, 3234.3), _KINDS, "v0 v1 v2"),
    ("hopper", Reference(-20.272305, 3234.3), "full-replay", "v1 v2"),
    ("walker2d", Reference(1.629008, 4592.3), _KINDS, "v0 v1 v2"),
    ("walker2d", Reference(1.629008, 4592.3), "full-replay", "v1 v2"),
    ("bullet-ant", Reference(373.705955, 2650.495), _KINDS, "v0"),
    ("bullet-halfcheetah", Reference(-1275.766996, 2381.6725), _KINDS, "v0"),
    ("bullet-hopper", Reference(20.058972, 1441.8059623430963), _KINDS, "v0"),
    ("bullet-walker2d", Reference(16.523877, 1623.6476303317536), _KINDS, "v0"),
    ("antmaze-umaze", Reference(0.0, 1.0), "diverse", "v0 v2"),
    ("antmaze-medium", Reference(0.0, 1.0), "play diverse", "v0 v2"),
    ("antmaze-large", Reference(0.0, 1.0), "play diverse", "v0 v2"),
    ("kitchen", Reference(0.0, 4.0), "complete partial mixed", "v0"),
    ("pen", Reference(96.262799, 3076.8331017826877), "human cloned expert", "v0 v1"),
    ("hammer", Reference(-274.856578, 12794.134825156867), "human cloned expert", "v0 v1"),
    ("relocate", Reference(-6.425911, 4233.877797728884), "human cloned expert", "v0 v1"),
    ("door", Reference(-56.512833, 2880.5693087298737), "human cloned expert", "v0 v1"),
    ("flow-ring", Reference(-165.22, 24.42), "random controller", "v0"),
    ("flow-merge", Reference(118.67993, 330.03179), "random controller", "v0"),
    ("minigrid-fourrooms", Reference(0.01442, 2.89685), "random", "v0"),
]

# Environments with one dataset only, or with returns of its own for each.
_SINGLE = {
    "antmaze-umaze-v0": Reference(0.0, 1.0),
    "antmaze-umaze-v2": Reference(0.0, 1.0),
    "minigrid-fourrooms-v0": Reference(0.01442, 2.89685),
    "carla-lane-v0": Reference(-0.8503839912088142, 1023.5784385429523),
    "carla-town-v0": Reference(-114.81579500772153, 2440.1772022247314),
    "maze2d-open-v0": Reference(0.01, 20.66),
    "maze2d-umaze-v1": Reference(23.85, 161.86),
    "maze2d-medium-v1": Reference(13.13, 277.39),
    "maze2d-large-v1": Reference(6.7, 273.99),
    "maze2d-open-dense-v0": Reference(11.17817, 27.166538620695782),
    "maze2d-umaze-dense-v1": Reference(68.537689, 193.66285642381482),
    "maze2d-medium-dense-v1": Reference(44.264742, 297.4552547777125),
    "maze2d-large-dense-v1": Reference(30.569041, 303.4857382709002),
    "bullet-maze2d-open-v0": Reference(8.75, 64.15),
    "bullet-maze2d-umaze-v0": Reference(32.46, 153.99),
    "bullet-maze2d-medium-v0": Reference(14.87, 238.05),
    "bullet-maze2d-large-v0": Reference(1.82, 285.92),
}


def _expand() -> Iterator[tuple[str, Reference]]:
    for env, returns, kinds, versions in _GROUPS:
        for kind, version in product(kinds.split(), versions.split()):
            yield f"{env}-{kind}-{version}", returns


REFERENCES: dict[str, Reference] = {**dict(_expand()), **_SINGLE}


def reference(dataset: str) -> Reference:
    """The reference returns of a D4RL dataset, e.g. `hopper-medium-v2`."""
    if dataset not in REFERENCES:
        near = difflib.get_close_matches(dataset, REFERENCES, n=5, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"known are e.g. {', '.join(list(REFERENCES)[:3])}"
        raise UserError(f"dataset: {dataset!r} has no D4RL reference score; {hint}")
    return REFERENCES[dataset]


def normalised_score(dataset: str, returns: ArrayLike) -> NDArray[np.float64]:
    """D4RL's normalised score of one or many returns."""
    return reference(dataset).normalise(returns)
