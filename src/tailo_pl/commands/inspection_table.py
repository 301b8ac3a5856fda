"""An inspection as rich tables."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tailo_pl.data.inspection import Distribution, Inspection
from tailo_pl.data.moments import Dimensions

MOST_DIMENSIONS = 128
"""How many dimensions of an array are listed."""


def tables(inspection: Inspection) -> list[Table]:
    """The whole, the origins where there are several, and the dimensions of states and actions."""
    result = [_whole(inspection)]
    if len(inspection.origins) > 1:
        result.append(_origins(inspection))
    result.append(_dimensions("states", inspection.observations, inspection.state_names, same=inspection.same_states))
    if inspection.actions is not None and inspection.at_bounds is not None:
        which = "the given bounds" if inspection.at_bounds.bounds == "given" else "the smallest or largest recorded"
        shares = f"at {which}", inspection.at_bounds.share
        result.append(_dimensions("actions", inspection.actions, inspection.action_names, shares))
    for title, lines in (
        ("what is odd", inspection.remarks),
        ("what tailo train would make of it", inspection.training),
    ):
        if lines:
            table = Table(title=title, show_header=False)
            table.add_column(overflow="fold")
            for line in lines:
                table.add_row(Text(line))
            result.append(table)
    return result


def _whole(inspection: Inspection) -> Table:
    table = Table(title="recording", show_header=False)
    table.add_column()
    table.add_column()
    table.add_row("steps", f"{inspection.steps:,}")
    table.add_row("trajectories", f"{inspection.trajectories:,}")
    if len(inspection.origins) == 1:
        table.add_row("origin", Text(next(iter(inspection.origins))))
    table.add_row("lengths", _spread(inspection.lengths))
    table.add_row("returns", "not recorded" if inspection.returns is None else _spread(inspection.returns))
    ends = inspection.ends
    marked = ends and f"{ends.terminal:,} terminal, {ends.timeout:,} by time limit, {ends.neither:,} unmarked"
    table.add_row("ends", marked or "not recorded")
    duplicated = inspection.duplicated_states
    table.add_row("duplicated states", f"{duplicated:,} ({duplicated / inspection.steps:.1%})")
    return table


def _origins(inspection: Inspection) -> Table:
    table = Table(title="origins")
    table.add_column("origin")
    table.add_column("trajectories", justify="right")
    table.add_column("steps", justify="right")
    for label, origin in inspection.origins.items():
        table.add_row(Text(label), f"{origin.trajectories:,}", f"{origin.steps:,}")
    return table


def _dimensions(
    title: str,
    dimensions: Dimensions,
    names: tuple[str, ...],
    shares: tuple[str, tuple[float, ...]] | None = None,
    same: tuple[tuple[int, int], ...] = (),
) -> Table:
    count = len(dimensions.min)
    listed = f", the first {MOST_DIMENSIONS} of {count:,} dimensions" if count > MOST_DIMENSIONS else ""
    table = Table(title=title + listed)
    for column in ("dimension", "min", "max", "mean", "std"):
        table.add_column(column, justify="right")
    if shares is not None:
        table.add_column(shares[0], justify="right")
    shown = range(min(count, MOST_DIMENSIONS))
    called = [names[number] if names else str(number) for number in range(count)]
    twins = {two: f"the same as {called[one]}" for one, two in same}
    remarks = [_remark(dimensions, number) or twins.get(number, "") for number in shown]
    if any(remarks):
        table.add_column("remark")
    for number in shown:
        numbers = (values[number] for values in (dimensions.min, dimensions.max, dimensions.mean, dimensions.std))
        share = [] if shares is None else [f"{shares[1][number]:.1%}"]
        table.add_row(
            Text(called[number]), *map(_number, numbers), *share, *([remarks[number]] if any(remarks) else [])
        )
    return table


def _remark(dimensions: Dimensions, number: int) -> str:
    if number in dimensions.constant:
        return "constant"
    found = {"NaN": dimensions.nan[number], "infinite": dimensions.infinite[number]}
    counts = ", ".join(f"{count:,} {what}" for what, count in found.items() if count)
    return f"{counts}, first in row {dimensions.first_not_finite[number]} (counted from 0)" if counts else ""


def _spread(values: Distribution) -> str:
    quartiles = (values.min, values.lower_quartile, values.median, values.upper_quartile, values.max)
    return f"{' · '.join(map(_number, quartiles))} (least, quartiles, most), mean {_number(values.mean)}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.4g}"
