"""The page of the evidence, from the committed results alone.

python -m tools.evidence.page      # writes docs/evidence.md and its pictures
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailo_pl.paper.records import Record, read_records
from tailo_pl.report.drawing import draw_figures
from tailo_pl.report.figure import Figure, Mark, Series
from tailo_pl.runs.advice import place
from tailo_pl.runs.summary import VerdictPart
from tailo_pl.runs.verdict import judge

from .analysis import Correlation, Line, Regret, correlation, regret
from .grid import BC, CHECKPOINTS, DEFAULT, ENVS, RESULTS, RIGHT, WRONG, grid, lines

DOCS = RESULTS.parent / "docs"
_MANY = 1_000_000  # logs, so that a share of them above 0 is not rounded to none
WORKS = 0.5  # of what the default reaches on whole data: what counts as a policy that works
DATA = {
    "whole": "as it should be",
    "two_experts": "two logs do what TS shows, the others do not",
    "part_of_ts": "the last tenth of TS is known",
    "part_of_ta": "every third step of the logs is missing",
    "one_state": "one state of TS is known",
    "degrees": "TS in degrees",
    "flipped": "every other number of TS has the wrong sign",
    "permuted": "TS's numbers are one place on",
    "elsewhere": "every fourth number of TS is four standard deviations away",
    "absent": "no log does what TS shows",
}


def _number(name: str, sign: int = 1) -> Callable[[Line], float | None]:
    def get(line: Line) -> float | None:
        value = line["numbers"].get(name)
        return None if value is None else sign * float(value)

    return get


def _share(name: str) -> Callable[[Line], float | None]:
    def get(line: Line) -> float | None:
        numbers = line["numbers"]
        return -numbers["held_out_error"] / numbers[name] if numbers.get(name) and "held_out_error" in numbers else None

    return get


NUMBERS: dict[str, tuple[str, Callable[[Line], float | None]]] = {
    "followed": ("share of the weight in logs that go where TS goes", _number("followed")),
    "followed_at_first": ("the same of the weight that first steps have", _number("followed_at_first")),
    "covered": ("share of TS's states near what carries the weight", _number("covered")),
    "ta_share": ("share of logs taken for the expert's", _number("ta_share")),
    "reach": ("reach of TA's best scores", _number("reach")),
    "effective_trajectories": ("logs that carry the weight (fewer)", _number("effective_trajectories", -1)),
    "effective_steps": ("steps that carry the weight (fewer)", _number("effective_steps", -1)),
    "held_out_error": ("held-out error (smaller)", _number("held_out_error", -1)),
    "unexplained": ("held-out error beside the mean action's (smaller)", _share("held_out_mean")),
    "beside_bc": ("held-out error beside that of cloning all alike (smaller)", _share("held_out_bc")),
    "auroc": ("AUROC of TS against TA", _number("auroc")),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "alpha": ("alpha=0.25", "alpha=0.5", "alpha=2", "alpha=4"),
    "gamma": ("gamma=0", "gamma=0.9", "gamma=0.999"),
    "beta_1": ("beta_1=0.3", "beta_1=0.95"),
    "head": ("head=gaussian", "head=mixture"),
    "method": (BC,),
}


def verdict(line: Line) -> VerdictPart:
    """What is said of a run by the rules as they are now."""
    data: Any = {"ta": {"trajectories": _MANY}}
    return judge([{"stage": "", "quality": line["numbers"]}], data, None, line["knob"])


def rule(line: Line) -> tuple[float, float]:
    """As `tailo advise` orders runs."""
    return place(verdict(line))


def predictive(found: Sequence[Line]) -> dict[str, tuple[Correlation, Correlation]]:
    """Of each number its correlation over right data, and over right and wrong data."""
    right = [line for line in found if line["data"] in RIGHT]
    return {name: (correlation(right, number), correlation(found, number)) for name, (_, number) in NUMBERS.items()}


def situations(found: Sequence[Line], knobs: Iterable[str] | None = None) -> list[list[Line]]:
    """Runs on right data to choose from: the same environment, data and seed."""
    wanted = None if knobs is None else {DEFAULT, *knobs}
    by_place: dict[Any, list[Line]] = defaultdict(list)
    for line in found:
        if line["data"] in RIGHT and (wanted is None or line["knob"] in wanted):
            by_place[line["env"], line["data"], line["seed"]].append(line)
    return list(by_place.values())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _shown(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _interval(one: Correlation) -> str:
    return "–" if np.isnan(one.value) else f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _regret_row(name: str, one: Regret) -> list[str]:
    return [name, str(one.situations), *(_shown(value) for value in (one.advised, one.default, one.random))]


def correlations_part(numbers: dict[str, tuple[Correlation, Correlation]]) -> list[str]:
    """Tables of correlations, and in words which numbers predict."""
    rows = [
        [NUMBERS[name][0], _interval(right), _shown(right.tau), _interval(whole), _shown(whole.tau)]
        for name, (right, whole) in numbers.items()
    ]
    by_env = [
        [NUMBERS[name][0], *(_shown(whole.by_group.get(env, float("nan"))) for env in ENVS)]
        for name, (_, whole) in numbers.items()
    ]
    said = {
        "tell right from wrong and better from worse": [n for n, (r, w) in numbers.items() if r.sure and w.sure],
        "tell wrong data, but not which of several runs on right data is better": [
            n for n, (r, w) in numbers.items() if w.sure and not r.sure
        ],
        "tell runs on right data apart, but not wrong data": [
            n for n, (r, w) in numbers.items() if r.sure and not w.sure
        ],
        "do not predict": [n for n, (r, w) in numbers.items() if not r.sure and not w.sure],
    }
    words = [f"- {what}: {', '.join(NUMBERS[one][0] for one in which)}" for what, which in said.items() if which]
    return [
        "## Which numbers predict the score",
        "",
        "Spearman's rank correlation with the true score, ranks taken within each environment, with a 95 % interval"
        " (bootstrap over cells of data and choices), and Kendall's tau-b over pairs of one environment. Signs are"
        " turned so that 1 is a perfect number.",
        "",
        *table(["number", "right data", "tau", "right and wrong data", "tau"], rows),
        "",
        "![Correlations](pictures/evidence-correlations.svg)",
        "",
        "Where an interval is above 0 a number is taken to predict. By this rule numbers",
        "",
        *words,
        "",
        "Right and wrong data, by environment:",
        "",
        *table(["number", *ENVS], by_env),
    ]


def verdicts_part(found: Sequence[Line]) -> list[str]:
    """What verdicts were worth."""
    usual = {
        env: np.mean([x["score"] for x in found if (x["env"], x["data"], x["knob"]) == (env, "whole", DEFAULT)])
        for env in {line["env"] for line in found}
    }
    levels = [verdict(line)["level"] for line in found]
    misled = Counter(
        f"`{line['knob']}` on {line['data'].replace('_', ' ')} data"
        for line, its in zip(found, levels, strict=True)
        if its == "good" and line["score"] < WORKS * usual[line["env"]]
    )
    listed = ", ".join(f"{name} ({count})" for name, count in misled.most_common())
    return [
        "## What a verdict is worth",
        "",
        f"A policy counts as working where it scores at least {WORKS:.0%} of what the default reaches on whole data in"
        " its environment.",
        "",
        *table(
            ["verdict", "runs", "on right / wrong data", "score, of the default's", "work"],
            _level_rows(found, levels, usual),
        ),
        "",
        f"Verdicts that are good although the policy does not work: {listed or 'none'}.",
        "",
        "![Score and share of the weight where TS goes](pictures/evidence-followed.svg)",
    ]


def _level_rows(found: Sequence[Line], levels: Sequence[str], usual: Mapping[str, Any]) -> list[list[str]]:
    """A row for each verdict: runs, those on right and wrong data, their score beside the usual one, how many work.

    Args:
        found: runs.
        levels: their verdicts.
        usual: score of each environment.
    """
    rows = []
    for level in ("good", "doubtful", "unknown", "bad"):
        own = [line for line, its in zip(found, levels, strict=True) if its == level]
        if own:
            wrong = sum(line["data"] in WRONG for line in own)
            shares = np.array([line["score"] / usual[line["env"]] for line in own])
            counts = (str(len(own)), f"{len(own) - wrong} / {wrong}")
            rows.append([level, *counts, f"{shares.mean():.0%}", f"{(shares >= WORKS).mean():.0%}"])
    return rows


def ledger_lines(records: Iterable[Record]) -> list[Line]:
    """Finished runs of the ledger as lines of the grid, each task, on each data, an environment of its own."""
    return [
        {
            "env": f"{record['env']} {record['setting']} {record['data']['fingerprint']}",
            "data": record["data"]["fingerprint"],
            "knob": record["cell"],
            "score": record["score"],
            "numbers": record.get("numbers", {}),
            "verdict": record["verdict"],
        }
        for record in records
        if record["verdict"] is not None
    ]


def ledger_part(found: Sequence[Line]) -> list[str]:
    """What verdicts and numbers of the ledger's runs were worth."""
    if not found:
        return []
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in found:
        scores[line["env"]][line["knob"]].append(line["score"])
    best = {task: max(1.0, *(float(np.mean(own)) for own in cells.values())) for task, cells in scores.items()}
    levels = [verdict(line)["level"] if line["numbers"] else line["verdict"] for line in found]
    shown = {name: correlation(found, number) for name, (_, number) in NUMBERS.items()}
    rows = [[NUMBERS[name][0], _interval(one), str(one.runs)] for name, one in shown.items() if not np.isnan(one.value)]
    return [
        "## The ledger's runs",
        "",
        f"{len(found)} finished runs of [the ledger](numbers.md), {len(best)} tasks with whichever methods and"
        " budgets were measured, all on right data. A policy counts as working where it scores at least"
        f" {WORKS:.0%} of the best choice on its task.",
        "",
        *table(
            ["verdict", "runs", "score, of the best", "work"],
            [[level, runs, *rest] for level, runs, _, *rest in _level_rows(found, levels, best)],
        ),
        "",
        *(
            [
                "Rank correlation with the score, ranks taken within each task, over runs whose line has the number"
                " (lines that were written before numbers were kept have none):",
                "",
                *table(["number", "correlation", "runs"], rows),
            ]
            if rows
            else ["Their lines were written before the numbers behind verdicts were kept in them."]
        ),
    ]


def checks_part(checks: Sequence[Line]) -> list[str]:
    """What was said before training."""
    by_cell = {(one["env"], one["data"]): one for one in checks}
    words = {"nothing": "", "remark": "a remark", "refused": "refused"}
    rows = []
    for data, meaning in DATA.items():
        cells = [by_cell.get((env, data)) for env in ENVS]
        shown = ["–" if one is None else f"{words[one['level']]} {one['visited']:.0%}".strip() for one in cells]
        rows.append([f"`{data}`: {meaning}", *shown])
    return [
        "## What is said before training",
        "",
        "The share of TS's states that the logs come near, and whether the data is remarked on or refused"
        " (`source.trust=true` trains on it all the same, as the grid does). Above the line data is right, below it"
        " wrong.",
        "",
        *table(["data", *ENVS], [*rows[: len(RIGHT)], ["—"] * (1 + len(ENVS)), *rows[len(RIGHT) :]]),
    ]


def regret_part(found: Sequence[Line]) -> list[str]:
    """What advised choices lose."""
    by_env = [
        _regret_row(env, regret(situations([x for x in found if x["env"] == env]), rule, DEFAULT)) for env in ENVS
    ]
    by_choice = [_regret_row(what, regret(situations(found, knobs), rule, DEFAULT)) for what, knobs in CHOICES.items()]
    columns = ["situations", "advised", "default", "at random"]
    return [
        "## What advised choices lose",
        "",
        "Points of the score between the best run of a situation (same environment, right data of one kind, same seed)"
        " and the run that `tailo advise` puts first, the one with default values, and one drawn at random. The best of"
        " several is partly luck, so no rule reaches 0.",
        "",
        *table(["environment", *columns], [*by_env, _regret_row("all", regret(situations(found), rule, DEFAULT))]),
        "",
        "The same where only one thing is chosen:",
        "",
        *table(["choice", *columns], by_choice),
    ]


def checkpoints_part(found: Sequence[Line]) -> list[str]:
    """Whether held-out error chooses checkpoints."""
    flat, losses = [], []
    for number, line in enumerate(one for one in found if one.get("checkpoints")):
        points = line["checkpoints"]
        best = max(score for _, _, score in points)
        chosen = min(points, key=lambda point: point[1])
        losses.append((best - chosen[2], best - points[-1][2], best - np.mean([score for _, _, score in points])))
        flat += [
            {"env": line["env"], "data": number, "knob": step, "score": score, "numbers": {"error": error}}
            for step, error, score in points
        ]
    if not losses:
        return []
    one = correlation(flat, _number("error", -1))
    chosen, last, random = np.mean(losses, axis=0)
    return [
        "## Which checkpoint",
        "",
        f"In {len(losses)} runs the policy was played while it was trained. Held-out error and score of the same step"
        f" have a rank correlation of {_interval(one)} within an environment; the checkpoint with the smallest error"
        f" loses {chosen:.1f} points to the best, the last one {last:.1f}, one drawn at random {random:.1f}.",
    ]


def figures(found: Sequence[Line], numbers: dict[str, tuple[Correlation, Correlation]]) -> list[Figure]:
    """The pictures."""
    shown = {name: both[1] for name, both in numbers.items() if not np.isnan(both[1].value)}
    values, lows, highs = ([getattr(one, of) for one in shown.values()] for of in ("value", "low", "high"))
    rows = [Series("", [], values, lows, highs)]
    dots = []
    for at, (kind, which) in enumerate((("right", RIGHT), ("wrong", WRONG))):
        own = [line for line in found if line["data"] in which and "followed" in line["numbers"]]
        shares, scores = [line["numbers"]["followed"] for line in own], [line["score"] for line in own]
        dots.append(Series(f"{kind} data", shares, scores, color=at, dots=True))
    return [
        Figure("evidence-correlations", "Rank correlation with the score",
               "Spearman's correlation", "", rows, kind="intervals", categories=[NUMBERS[name][0] for name in shown],
               marks=[Mark("x", 0.0, "none")], x_range=(-1, 1)),
        Figure("evidence-followed", "Score by share of the weight in logs that go where TS goes", "share of the weight",
               "score", dots),
    ]  # fmt: skip


def page(everything: Sequence[Line], checks: Sequence[Line]) -> tuple[str, list[Figure]]:
    """The page as far as the grid goes, and its pictures.

    Args:
        everything: runs of the grid.
        checks: what was said before training.
    """
    found = [line for line in everything if line["knob"] != CHECKPOINTS]
    numbers = predictive(found)
    envs = ", ".join(ENVS)
    planned = sum(1 for _ in grid())
    made = f"{planned} small runs" if len(everything) == planned else f"{len(everything)} of {planned} small runs"
    kinds = Counter("right" if line["data"] in RIGHT else "wrong" for line in everything)
    head = [
        "# What numbers without a simulator are worth",
        "",
        f"What follows comes from {made} of a grid over five environments ({envs}), {kinds['right']} on right data and"
        f" {kinds['wrong']} on wrong data: TAILO with other values of alpha, gamma and beta_1, with other heads, and"
        f" BC. Each was played for {everything[0]['episodes']} episodes, which nothing else here has seen. Budgets are"
        " small (discriminators of 600 steps, policies of 800, of 5,000 on halfcheetah), so scores are lower than those"
        " of [full runs](numbers.md).",
        "",
        "```sh",
        "python -m tools.evidence --runs runs/evidence   # makes the runs that results/evidence.jsonl lacks",
        "python -m tools.evidence.page                   # writes this page from it and from results/cells",
        "```",
        "",
    ]
    parts = [
        correlations_part(numbers),
        verdicts_part(found),
        regret_part(found),
        checkpoints_part(everything),
        checks_part(checks),
    ]
    body = [line for part in parts if part for line in (*part, "")]
    return "\n".join([*head, *body]), figures(found, numbers)


def write() -> None:
    """Write the page and its pictures."""
    text, drawn = page(lines(RESULTS / "evidence.jsonl"), lines(RESULTS / "evidence_checks.jsonl"))
    ledger = ledger_part(ledger_lines(read_records(RESULTS / "cells").values()))
    (DOCS / "evidence.md").write_text("\n".join([text, *ledger, ""]))
    with tempfile.TemporaryDirectory() as folder:
        for path in draw_figures(drawn, Path(folder)):
            if path.suffix == ".svg":
                (DOCS / "pictures" / path.name).write_text(path.read_text())


if __name__ == "__main__":
    write()
