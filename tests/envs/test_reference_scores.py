"""D4RL's reference scores and what is made of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tailo_pl.envs.reference_scores import REFERENCES, normalised_score, reference
from tailo_pl.errors import UserError

# SHA-256 of one line "name minimum maximum" per dataset, sorted, made of REF_MIN_SCORE and REF_MAX_SCORE in d4rl 1.1.
D4RL_DIGEST = "15511104037471cbb3c3c049037e353cae6637eb422cd3601f67cfb1074c7fbb"


def test_all_names_and_numbers_are_those_of_d4rl() -> None:
    lines = [f"{name} {returns.low!r} {returns.high!r}\n" for name, returns in sorted(REFERENCES.items())]
    assert len(lines) == 147
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == D4RL_DIGEST


@pytest.mark.parametrize(
    ("dataset", "minimum", "maximum"),
    [
        ("hopper-medium-v2", -20.272305, 3234.3),
        ("walker2d-full-replay-v1", 1.629008, 4592.3),
        ("halfcheetah-medium-expert-v0", -280.178953, 12135.0),
        ("ant-expert-v2", -325.6, 3879.7),
        ("antmaze-umaze-v2", 0.0, 1.0),
        ("kitchen-mixed-v0", 0.0, 4.0),
    ],
)
def test_known_entries(dataset: str, minimum: float, maximum: float) -> None:
    assert (reference(dataset).low, reference(dataset).high) == (minimum, maximum)
    np.testing.assert_allclose(normalised_score(dataset, [minimum, maximum, (minimum + maximum) / 2]), [0, 100, 50])


def test_score_of_a_single_return() -> None:
    # (3592 + 20.272305) / (3234.3 + 20.272305) = 1.10991...
    assert float(normalised_score("hopper-expert-v2", 3592)) == pytest.approx(110.991, abs=1e-3)


def test_unknown_name_lists_near_ones() -> None:
    with pytest.raises(UserError, match=r"'hoper-medium-v2'.*did you mean hopper-medium-v2"):
        reference("hoper-medium-v2")
    with pytest.raises(UserError, match="full-replay-v1"):
        reference("ant-full-replay-v0")  # exists for v1 and v2 only
    with pytest.raises(UserError, match="zzz"):
        normalised_score("zzz", 1.0)
