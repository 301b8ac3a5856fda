"""The outcome of `tailo curate` on the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from tailo_pl.screen import console, show

if TYPE_CHECKING:
    from tailo_pl.data.trajectories import Trajectories
    from tailo_pl.runs.curation import Curation

_SHOWN = 20


def show_curation(
    found: Curation, logs: Trajectories, episodes: NDArray[np.int64], kept: NDArray[np.bool_], files: Sequence[Path]
) -> None:
    """The best and the worst episodes, the thresholds, and what was written."""
    order = found.ranking.tolist()
    shown = order if len(order) <= _SHOWN else order[: _SHOWN // 2] + order[-_SHOWN // 2 :]
    table = Table(title=f"{len(logs):,} episodes by their share of the weight")
    for column in ("origin", "episode", "steps", "mean R", "share", "best segment", "verdict", "kept"):
        table.add_column(column, justify="left" if column in ("origin", "verdict", "kept") else "right")
    for number in shown:
        segment = f"{found.begin[number]} to {found.end[number] - 1}" if found.end[number] else "none"
        table.add_row(
            Text(str(logs.origins[number])),
            str(episodes[number]),
            f"{logs.lengths[number]:,}",
            f"{found.mean_score[number]:.3f}",
            f"{found.share[number]:.2%}",
            segment,
            found.verdicts[number],
            "yes" if kept[number] else "",
        )
    show(table)
    out = console()
    if len(shown) < len(order):
        out.print(f"the {_SHOWN // 2} that weigh most and the {_SHOWN // 2} that weigh least", highlight=False)
    counts = Counter(found.verdicts)
    out.print(", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()), highlight=False)
    out.print(
        f"like the expert's: R of at least {found.level:.3f}, which 90 % of the expert's own states reach; "
        "expert-like: half of an episode's states do; useful parts: a segment of at least 5 % does in sum, or the "
        "episode has at least the share of the weight that its length has of all steps",
        highlight=False,
        soft_wrap=True,
    )
    out.print(
        f"kept {int(kept.sum()):,} of {len(kept):,} episodes with {found.share[kept].sum():.1%} of the weight",
        highlight=False,
    )
    for path in files:
        out.print(f"written {path}", highlight=False, markup=False, soft_wrap=True)
