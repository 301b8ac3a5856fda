"""Rankings, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tailo_pl.inputs.scores import rank_correlation


def test_rank_correlation_by_hand() -> None:
    up = np.array([1.0, 2, 3, 4])
    assert rank_correlation(up, up**3) == pytest.approx(1)
    assert rank_correlation(up, -up) == pytest.approx(-1)
    # Ranks 1, 1, 2.5 against 0.5, 1.5, 2.5: 1.5 / sqrt(1.5 * 2)
    assert rank_correlation(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(3**0.5 / 2)
    assert rank_correlation(np.ones(3), up[:3]) is None

    # ranks 0,3,1,2 and 0,2,1,3: differences 0,1,0,-1, so 1 - 6*2/(4*15)
    assert rank_correlation(np.array([0.1, 5.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])) == pytest.approx(0.8)
