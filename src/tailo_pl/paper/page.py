"""The page "The paper, figure by figure": our figures, the paper's claims, and whether they hold here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tailo_pl.paper.cells import Cell
from tailo_pl.paper.claims import CLEARLY, LEVEL, Verdict, judge
from tailo_pl.paper.drawing import draw
from tailo_pl.paper.figures import PaperFigure
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import Record
from tailo_pl.paper.scores import Scores, scores_of

_HEAD = f"""# The paper, figure by figure

Every figure of the paper with scores, and its table, on this project's own data (`source=bundled`) with preset
`fast`. The experts in this data are this project's, so scores are not the paper's; what can be compared is who is ahead
of whom. Each score is the mean over seeds of the trained policy over fresh episodes, of which the line below a figure
says how many. A verdict follows from the scores by a rule, never by hand: scores within {LEVEL:g} points are level,
"clearly" means {CLEARLY:g} points, and what holds only in what was measured holds so far. What has not been measured is
a gap (–), and `tailo reproduce FIGURE` fills it; the lines it reads and writes are in
`results/cells/`. In figures, points are seeds; dashed marks are scores that the paper prints, on D4RL's data.
"""


def page(asked: Asked, records: Mapping[Cell, Record], pictures: Path) -> str:
    """The page as Markdown.

    Args:
        asked: all figures, with preset and source.
        records: results, by cell.
        pictures: where figures are drawn; the page names them by this folder's name.
    """
    parts, rows = [], []
    for figure in asked.figures:
        scores = scores_of(figure, asked, records)
        verdicts = [judge(claim, figure, scores) for claim in figure.claims]
        drawn = draw(figure, asked, records, pictures)
        parts.append(_part(figure, asked, records, scores, verdicts, drawn))
        rows += [
            f"| [{_unbroken(figure.place)}](#{figure.name}) | {claim.says} | {_unbroken(verdict.level)} |"
            for claim, verdict in zip(figure.claims, verdicts, strict=True)
        ]
    missing = asked.missing(records)
    state = f"{len(asked.cells()) - len(missing):,} of {len(asked.cells()):,} cells are measured.\n"
    claims = "\n".join(["| where | claim | here |", "|---|---|---|", *rows])
    return "\n".join([_HEAD, state, "## The claims\n", claims, "", *parts])


def _unbroken(text: str) -> str:
    """Words that a narrow column leaves together."""
    return text.replace(" ", "&nbsp;")


def _part(
    figure: PaperFigure,
    asked: Asked,
    records: Mapping[Cell, Record],
    scores: Scores,
    verdicts: Iterable[Verdict],
    drawn: Path | None,
) -> str:
    lines = [f"## {figure.title} {{ #{figure.name} }}", "", f"{figure.place} · `tailo reproduce {figure.name}`", ""]
    lines += [f"![{figure.title}]({drawn.parent.name}/{drawn.name})" if drawn else "Not measured yet.", ""]
    for claim, verdict in zip(figure.claims, verdicts, strict=True):
        lines.append(f"- {claim.says}: **{verdict.level}**{verdict.detail}")
    if drawn is not None:
        lines += ["", *_table(figure, scores), "", _budget(figure, asked, records, scores)]
    return "\n".join([*lines, ""])


def _table(figure: PaperFigure, scores: Scores) -> list[str]:
    heads = [""]
    for line in figure.lines:
        heads += [line.name, *(["paper, D4RL"] if line.name in figure.printed else [])]
    rows = [heads, ["---"] * len(heads), *map(scores.row, figure.panels)]
    return [f"| {' | '.join(row)} |" for row in rows]


def _budget(figure: PaperFigure, asked: Asked, records: Mapping[Cell, Record], scores: Scores) -> str:
    """What the numbers are made of."""
    alone = replace(asked, figures=[figure])
    cells, missing = alone.cells(), alone.missing(records)
    seeds = sorted({record["seed"] for record in scores.records})
    episodes = sorted({record["episodes"] for record in scores.records if record["episodes"]})
    spent = np.mean([record["cpu_seconds"] for record in scores.records])
    return (
        f"Data: bundled. Preset fast, seeds {', '.join(map(str, seeds))}, {' or '.join(map(str, episodes))} episodes; "
        f"{len(cells) - len(missing)} of {len(cells)} cells, {spent:.0f} CPU seconds each on average."
    )
