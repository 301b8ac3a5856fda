"""The pages of the documentation that are made from the project itself, so that they cannot go stale.

python tools/docs_pages.py      # writes configuration.md, results.md and paper.md in docs/; `make docs` calls it
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ledger.tables import readable_table

from tailo_pl.paper.figures import chosen
from tailo_pl.paper.page import page
from tailo_pl.paper.plan import Asked
from tailo_pl.paper.records import read_records

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results/cells"
SYMBOLS = {
    "alpha": "α",
    "beta_1": "β₁",
    "beta_2": "β₂",
    "eta_p": "η_p",
    "gamma": "γ",
    "lipschitz": "λ",
    "score": "R",
    "dimensions": "—",
}
GROUPS = {
    "method": "what is trained, stage by stage, and the method's knobs",
    "preset": "budget and arithmetic",
    "head": "what a policy makes of its network's numbers",
    "env": "where the policy is played",
    "setting": "how TS and TA are cut from the source",
    "source": "where the recordings come from",
    "trainer": "Lightning's Trainer: devices and precision",
    "logger": "where metrics go",
    "callbacks": "what happens beside training: rollouts, checkpoints, choices, bars",
    "experiment": "the settings of the paper, with its preset",
}
_LINE = re.compile(r"^(?P<indent> *)(?P<key>[\w-]+):(?: +(?P<value>[^#]*?))?(?: *# *(?P<comment>.*))?$")


def settings(text: str) -> list[tuple[str, str, str]]:
    """(key, value, comment) of every value in a config file, nested keys joined by dots; stages are left out."""
    found: list[tuple[str, str, str]] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:  # comments, items of lists
            continue
        indent, key, value = len(match["indent"]), match["key"], (match["value"] or "").strip()
        path = [(depth, name) for depth, name in path if depth < indent] + [(indent, key)]
        names = [name for _, name in path]
        if names[0] in ("defaults", "stages", "hydra") or names[-1] == "class_path":
            continue
        if value:
            found.append((".".join(names), value, match["comment"] or ""))
    return found


def description(text: str) -> str:
    """The comment a file begins with."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("#") and "@package" not in line]
    return " ".join(line for line in lines if not line.startswith("tailo "))


def configuration() -> str:
    """Every group, choice and value there is."""
    page = [
        "# Configuration",
        "",
        "Any value is overridden by its name: `tailo train env=hopper method.alpha=2 preset.policy_steps=20000`. Where "
        "two groups set the same value, the later one of method, preset, env, setting and command line holds. "
        "`tailo train --cfg job` shows what is composed.",
        "",
        "## Knobs of the method",
        "",
        "| setting | paper | default | meaning |",
        "|---|---|---|---|",
    ]
    configs = ROOT / "configs"
    for key, value, comment in settings((configs / "method/tailo.yaml").read_text()):
        if key == "name":
            continue
        page.append(f"| `method.{key}` | {SYMBOLS[key]} | {_value(value)} | {_cell(comment)} |")
    page += ["", "## Of every run", "", "| setting | default | meaning |", "|---|---|---|"]
    for key, value, comment in settings((configs / "train.yaml").read_text()):
        page.append(f"| `{key}` | {_value(value)} | {_cell(comment)} |")
    for group, meaning in GROUPS.items():
        page += ["", f"## `{group}`: {meaning}"]
        for path in sorted((configs / group).glob("[!_]*.yaml")):
            text = path.read_text()
            page += ["", f"### `{group}={path.stem}`", "", _cell(description(text)) or meaning.capitalize() + "."]
            rows = [] if path.stem == "tailo" else [row for row in settings(text) if row[0].split(".")[-1] != "name"]
            if rows:
                page += ["", "| setting | value | meaning |", "|---|---|---|"]
            for key, value, comment in rows:
                name = key if key.startswith(f"{group}.") else f"{group}.{key}"
                page.append(f"| `{name}` | {_value(value)} | {_cell(comment)} |")
    return "\n".join(page) + "\n"


NARROW = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"  # or a narrow column puts a score on two lines


def results() -> str:
    """Every cell of results/."""
    table = readable_table(list(read_records(RESULTS).values()))
    return (
        "# Results\n\nMean ± standard deviation over seeds of the trained policy over 100 fresh episodes. Every number "
        "is in `results/`, one line per cell and seed; `make results` measures what is missing. The data "
        "is made by the project's own policies (`source=bundled`): not comparable with published D4RL numbers. "
        "Preset `fast` where no other is named.\n\n"
        f"{table.replace(' ± ', NARROW)}"
    )


def paper() -> str:
    """The paper, figure by figure, with its pictures beside it."""
    shutil.rmtree(ROOT / "docs/paper", ignore_errors=True)  # figures of what is no longer measured
    return page(Asked(chosen([]), ("preset=fast",)), read_records(RESULTS), ROOT / "docs/paper")


def _value(text: str) -> str:
    """A value as it stands in its file; of one that others may set, the value where nobody does, and who may."""
    shown = text.replace("|", "\\|")
    if found := re.fullmatch(r"\$\{oc\.select:([\w.]+), ?(.*)\}", shown):
        return f"`{found[2]}`, unless `{found[1]}` says"
    return f"`{shown}`"


def _cell(text: str) -> str:
    return re.sub(r"[|*]", r"\\\g<0>", text)  # or Markdown takes two asterisks for emphasis and swallows them


if __name__ == "__main__":
    (ROOT / "docs/configuration.md").write_text(configuration())
    (ROOT / "docs/results.md").write_text(results())
    (ROOT / "docs/paper.md").write_text(paper())
