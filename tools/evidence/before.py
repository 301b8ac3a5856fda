"""What is said of each data of the grid before anything is trained on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tailo_pl.data.fit import check_fit
from tailo_pl.data.likeness import Sample, some_states
from tailo_pl.errors import UserError

from .grid import DEFAULT, ENVS, RESULTS, RIGHT, WRONG, Run, experiment_of


def write_checks() -> None:
    """Check all data anew, and write what is said of it into results/evidence_checks.jsonl."""
    found = [checked(env, data) for env in ENVS for data in (*RIGHT, *WRONG)]
    (RESULTS / "evidence_checks.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in found))


def checked(env: str, data: str) -> dict[str, Any]:
    """The share of TS's states that TA comes near, and whether the data is refused, remarked on or passed."""
    task = experiment_of(Run(env, data, DEFAULT, 0), Path("runs")).task
    covered = Sample.of(task.ta).covers(some_states(task.ts))
    try:
        lines = check_fit(task, trust=False)
        level = "remark" if lines else "nothing"
    except UserError as error:
        lines, level = [str(error)], "refused"
    return {"env": env, "data": data, "visited": round(covered, 4), "level": level, "said": lines}
