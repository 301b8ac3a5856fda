"""Tables that are made from the ledger's cells alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tailo_pl.paper.cells import Cell
from tailo_pl.paper.records import Record, cell_of
from tailo_pl.runs.grouping import group_key, outcome, seeds
from tailo_pl.runs.measured import Measured

Cells = Sequence[Record]
REPLICATES = 2000
METHODS_OF_A_COMPARISON = 3  # a task for which fewer are named is none
ENOUGH = 4 / 3  # CPU seconds beside TAILO's that still count as equal: they are good to about a third


def markdown_table(cells: Cells) -> str:
    """Mean ± standard deviation over seeds, one row for each group of cells that differ in their seed alone.

    Cells measured on other data are another group, whatever their overrides; data that another machine made by the same
    recipe is no other.
    """
    lines = [["env", "setting", "method", "preset", "score", "seeds", "CPU s per run", "command"], ["---"] * 8]
    for overrides, group in _groups(cells):
        first, env = group[0], " ".join([group[0]["env"], *_of(overrides, "env.")])
        setting = " ".join([first["setting"], *_of(overrides, "setting.")])
        names = [env, setting, first["method"], first["preset"]]
        lines.append([*names, *_outcome(group), f"`{_command(overrides, group)}`"])
    return _markdown(lines)


def readable_table(cells: Cells) -> str:
    """The same for people: scores before what a row has beyond its names, and the commands below."""
    lines = [["env", "setting", "method", "score", "seeds", "CPU s per run", "options"], ["---"] * 7]
    commands = []
    for overrides, group in _groups(cells):
        plain = ("env", "setting", "method")
        options = [one for one in overrides if one.split("=")[0] not in plain and one != "preset=fast"]
        names = [group[0]["env"], group[0]["setting"], group[0]["method"]]
        lines.append([*names, *_outcome(group), " ".join(f"`{one}`" for one in options)])
        commands.append(_command(overrides, group))
    listed = "\n".join(commands)
    return f"{_markdown(lines)}\n## Commands\n\nIn the order of the rows:\n\n```text\n{listed}\n```\n"


def _outcome(group: Cells) -> list[str]:
    """Mean score with its deviation over seeds, how many there are, and the CPU seconds of a run."""
    spread = f" ± {np.std([cell['score'] for cell in group]):.1f}" if len(group) > 1 else ""
    return [f"{_mean(group):.1f}{spread}", str(len(group)), f"{_seconds(group):.0f}{_mark(group)}"]


def _command(overrides: Sequence[str], group: Cells) -> str:
    shown = ",".join(str(seed) for seed in sorted(cell["seed"] for cell in group))
    return f"tailo train -m {' '.join(overrides)} seed={shown}"


Compared = Mapping[str, Mapping[str, Mapping[str, Cells]]]
"""Cells by setting, environment and method, with the options of each."""


def comparison_tables(cells: Cells, listed: Iterable[Cell]) -> str:
    """For each setting methods down and tasks across: mean score, its 95 % interval, seeds, CPU seconds.

    Bold where it reaches the best.

    Args:
        cells: what was measured.
        listed: the project's own cells.
    """
    by_setting = compared(cells, listed)
    return (
        "\n".join(f"`setting={setting}`\n\n{_table(tasks)}" for setting, tasks in by_setting.items()) or "None yet.\n"
    )


def compared(cells: Cells, listed: Iterable[Cell], *, best_budget: bool = False) -> Compared:
    """What was measured with preset fast, whatever the options of the method, on the tasks of comparisons.

    Args:
        cells: what was measured.
        listed: the project's own cells; tasks for which they name several methods are compared.
        best_budget: of each method the budget with the highest score, instead of the preset's.
    """
    named: dict[str, set[str]] = defaultdict(set)
    for cell in listed:
        named[_task(cell.overrides)].add(cell.values["method"])
    by_setting: dict[str, dict[str, dict[str, list[Record]]]] = defaultdict(lambda: defaultdict(dict))
    for overrides, group in _groups(cells):
        method, task = _method(overrides), _task(overrides)
        wanted = best_budget or not _budget(overrides)
        if method is not None and wanted and len(named[task]) >= METHODS_OF_A_COMPARISON:
            setting = " ".join([group[0]["setting"], *_of(overrides, "setting.")])
            other = by_setting[setting][group[0]["env"]].get(method)
            if other is None or _mean(group) > _mean(other):
                by_setting[setting][group[0]["env"]][method] = group
    return by_setting


def budget_table(cells: Cells) -> str:
    """What a method scores with other numbers of steps than the preset's, in the order of the CPU seconds they took."""
    spent: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for overrides, group in _groups(cells):
        method = _method(overrides)
        if method is not None:
            steps = ", ".join(_shown(key, value) for key, value in _budget(overrides).items()) or "the preset's"
            seconds, score = _seconds(group), _mean(group)
            spent[_task(overrides), method].append((seconds, f"{score:.1f} ({steps}; {seconds:,.0f} s{_mark(group)})"))
    rows = {key: sorted(budgets) for key, budgets in spent.items() if len(budgets) > 1}
    widest = max(map(len, rows.values()), default=0)
    lines = [["task", "method", *["score (steps; CPU s)"] * widest], ["---"] * (2 + widest)]
    for (task, method), budgets in sorted(rows.items()):
        shown = [text for _, text in budgets]
        lines.append([task, method, *shown, *[""] * (widest - len(shown))])
    return _markdown(lines) if rows else "None yet.\n"


def equal_time_table(cells: Cells) -> str:
    """What each method scores with about the CPU seconds that TAILO takes: of its budgets the largest that fits."""
    fitting: dict[str, dict[str, list[Record]]] = defaultdict(dict)
    groups = [(overrides, group) for overrides, group in _groups(cells) if _method(overrides) is not None]
    limits = {
        _task(overrides): ENOUGH * _seconds(group) for overrides, group in groups if _method(overrides) == "tailo"
    }
    with_budgets = {_task(overrides) for overrides, _ in groups if _budget(overrides)}
    for overrides, group in sorted(groups, key=lambda one: _seconds(one[1])):
        task, method = _task(overrides), _method(overrides)
        if method and task in with_budgets and _seconds(group) <= limits.get(task, 0.0) and not _mark(group):
            fitting[task][method] = group  # a larger budget comes later
    return _table(fitting) if fitting else "None yet.\n"


def _table(tasks: Mapping[str, Mapping[str, Cells]]) -> str:
    methods = sorted({method for groups in tasks.values() for method in groups}, key=_tailo_first)
    shown = {task: _column(groups) for task, groups in tasks.items()}
    lines = [["method", *tasks], ["---"] * (1 + len(tasks))]
    lines += [[method, *(shown[task].get(method, "") for task in tasks)] for method in methods]
    return _markdown(lines)


def _markdown(lines: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def measured_rows(cells: Cells) -> list[Measured]:
    """The score of every method on every task with preset fast, over seeds."""
    rows = []
    for overrides, group in _groups(cells):
        if _method(overrides) is None or _budget(overrides):
            continue
        first = group[0]
        choice = [one for one in overrides if one.startswith(("method=", "method."))]
        scores = (_mean(group), *score_interval(group))
        rows.append(
            Measured(
                first["env"],
                first["setting"],
                " ".join(_of(overrides, "setting.")),
                first["data"]["recipe"],
                " ".join(choice),
                *(round(score, 1) + 0.0 for score in scores),  # + 0.0: no minus zero
                seeds=len(group),
            )
        )
    return rows


def score_interval(cells: Cells, replicates: int = REPLICATES, seed: int = 0) -> tuple[float, float]:
    """95 % of the mean score: draws seeds again, and for each its mean over as many episodes, which is about normal."""
    generator = np.random.default_rng(seed)
    means = np.array([cell["score"] for cell in cells])
    errors = np.array([cell["score_std"] / max(cell["episodes"], 1) ** 0.5 for cell in cells])
    chosen = generator.integers(0, len(cells), (replicates, len(cells)))
    drawn = generator.normal(means[chosen], errors[chosen]).mean(1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def _column(groups: Mapping[str, Cells]) -> dict[str, str]:
    means = {method: float(np.mean([cell["score"] for cell in group])) for method, group in groups.items()}
    intervals = {method: score_interval(group) for method, group in groups.items()}
    bar = intervals[max(means, key=lambda method: means[method])][0]
    column = {}
    for method, (low, high) in intervals.items():
        leads = high >= bar
        mean, low, high = (round(number, 1) + 0.0 for number in (means[method], low, high))  # + 0.0: no minus zero
        shown = f"**{mean}**" if leads else f"{mean}"
        group = groups[method]
        column[method] = f"{shown} [{low}, {high}] ({len(group)}; {_seconds(group):,.0f} s{_mark(group)})"
    return column


def _groups(cells: Cells) -> list[tuple[tuple[str, ...], list[Record]]]:
    """Cells that are the same but for the seed, a cell measured twice once, with the first one's overrides."""
    groups: dict[str, dict[str, Record]] = defaultdict(dict)
    for cell in cells:
        given = {**_given(_overrides(cell)), "seed": cell["seed"]}
        groups[group_key(given, cell["data"]["recipe"])][seeds(given)] = cell
    found = [list(group.values()) for group in groups.values()]
    found.sort(key=lambda group: (_overrides(group[0]), group[0]["data"]["recipe"]))
    return [(_overrides(group[0]), group) for group in found]


def _given(overrides: Iterable[str]) -> dict[str, str]:
    return dict(override.split("=", 1) for override in overrides)  # type: ignore[arg-type]


def _overrides(cell: Record) -> tuple[str, ...]:
    return cell_of(cell).overrides


def _method(overrides: Iterable[str]) -> str | None:
    """A method with its options; None for cells that differ from preset fast in more than the baselines' steps, and for
    TAILO with other knobs than its own, which figures of the paper show."""
    name, options = "", []
    for key, value in outcome(_given(overrides)).items():
        if key == "method":
            name = value
        elif key.startswith("method."):
            options.append(value if key == "method.divergence" else f"{key.removeprefix('method.')}={value}")
        elif key in ("env", "setting") or key.startswith("setting.") or _is_budget(key):
            continue
        elif (key, value) != ("preset", "fast"):
            return None
    if name.startswith("tailo") and (name, options) != ("tailo", []):
        return None
    return " ".join([name, *options])


def _budget(overrides: Iterable[str]) -> dict[str, str]:
    """The steps that a baseline was given instead of the preset's, those of a reward's discriminator or of models of
    the dynamics behind, the rows of a batch, and whose actor clones."""
    found = [(key, value) for key, value in _given(overrides).items() if _is_budget(key)]
    return dict(sorted(found, key=lambda one: (*map(one[0].endswith, (".actor", "batch")), bool(_of_what(one[0])))))


def _is_budget(key: str) -> bool:
    if key.startswith("preset.model_based."):
        return key.endswith((".dynamics_steps", ".mopo_steps", ".iterations"))
    return key.startswith("preset.baselines.") and key.endswith(("steps", "batch", ".actor"))


def _shown(key: str, value: str) -> str:
    if key.endswith(".actor"):
        return f"{value} actor"
    return f"{'batch ' if key.endswith('batch') else _of_what(key)}{int(value):,}"


def _of_what(key: str) -> str:
    """What takes these steps, if it is not the policy or its value."""
    return "discriminator " if "discriminator" in key else "models " if "dynamics" in key else ""


def _task(overrides: Sequence[str]) -> str:
    given = _given(overrides)
    return " ".join([given["env"], *([given["setting"]] if "setting" in given else []), *_of(overrides, "setting.")])


def _mean(cells: Cells) -> float:
    return float(np.mean([cell["score"] for cell in cells]))


def _seconds(cells: Cells) -> float:
    """CPU seconds of a run. Those with a library loaded before others count where there are no others."""
    plain = [cell["cpu_seconds"] for cell in cells if not cell.get("preload")]
    return float(np.mean(plain or [cell["cpu_seconds"] for cell in cells]))


def _mark(cells: Cells) -> str:
    """What stands behind CPU seconds that are not to be compared with others."""
    return "*" if all(cell.get("preload") for cell in cells) else ""


def _of(overrides: Iterable[str], prefix: str) -> list[str]:
    return [override.removeprefix(prefix) for override in overrides if override.startswith(prefix)]


def _tailo_first(method: str) -> tuple[bool, bool, str]:
    name = method.split()[0]
    return name != "tailo", name != "bc", method
