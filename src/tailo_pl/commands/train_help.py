"""What `tailo train --help` says: the groups and their choices, each in the words its own file begins with."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tailo_pl.config.choices import choice_file, choices, folders, groups

WIDTH = 80
_NAMES = 17  # columns for the names of choices, where none is longer
_INTRODUCTION = """\
Usage: tailo train [KEY=VALUE]...

  Run an experiment, composed of one choice from each group below.

  tailo train env=hopper                       three stages, then a score
  tailo train env=hopper method=bc seed=1      other choices, any value
  tailo train source=files source.ts=expert.csv source.ta='logs/*.csv'
  tailo train -m env=hopper,ant seed=0,1,2     a sweep: every combination
  tailo train resume=RUN                       go on with an interrupted run

Options:
  -m, --multirun         Run every combination of values separated by commas.
  --strict               End with status 3 where the verdict on the run is bad.
  -c, --cfg job          Show the composed configuration, run nothing.
      --resolve          With --cfg: follow every reference.
  -p, --package GROUP    With --cfg: only this part of it.
  --config-dir DIR       Find configurations of your own here.
  --allow PACKAGE        Let configurations name classes of this package.
  --allow-folder FOLDER  Let a saved configuration write to this folder.
  -h, --help             This.
"""
_GROUPS = {
    "method": "how the policy is learnt",
    "env": "where it is scored; none: nowhere",
    "source": "where the data comes from",
    "setting": "how TS (the expert's states) and TA (your logs) are cut from it;\n"
    "  where none is named, env or source names one",
    "preset": "how much is spent on it",
    "head": "what the policy predicts",
    "trainer": "which device",
    "logger": "where curves go",
    "callbacks": "what watches the training",
    "experiment": "settings of the paper with its budget",
}


def train_help() -> str:
    """All of it."""
    chosen = _defaults()
    parts = [_INTRODUCTION]
    for group in [*(name for name in _GROUPS if name in groups()), *(set(groups()) - set(_GROUPS))]:
        about = f": {_GROUPS[group]}" if group in _GROUPS else ""
        column = max(_NAMES, *(len(name) + 1 for name in choices(group)))
        parts.append(f"{group}={about}\n" + "".join(_choice(group, name, chosen, column) for name in choices(group)))
    parts.append(f"Values:\n{_values()}\n  and every key that `tailo train --cfg job` shows, e.g. method.alpha=2\n")
    return "\n".join(parts)


def _choice(group: str, name: str, chosen: dict[str, str], column: int) -> str:
    said = _first_sentence(choice_file(group, name))
    if chosen.get(group) == name:
        said = f"(default) {said}"
    lines = textwrap.wrap(said, WIDTH - column - 3) or [""]
    return "".join(f"  {name if at == 0 else '':{column}} {line}".rstrip() + "\n" for at, line in enumerate(lines))


def _first_sentence(path: Path) -> str:
    """The first sentence of the comment a configuration begins with."""
    words: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("# @package"):
            continue
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    return re.split(r"(?<!et al)\.\s", " ".join(words), maxsplit=1)[0].rstrip(".")


def _defaults() -> dict[str, str]:
    found = dict(re.findall(r"^  - (\w+): (\w+)", _train_file(), re.MULTILINE))
    del found["setting"]  # env and source choose another
    return found


def _values() -> str:
    """The values that belong to no group, with what the file says of them."""
    found = re.findall(r"^(\w+): (\S+) +# (.*)$", _train_file(), re.MULTILINE)
    lines = []
    for name, value, about in found:
        shown = "" if value.startswith("$") else f" ({value})"
        wrapped = textwrap.wrap(f"{about}{shown}", WIDTH - 23)
        lines += [f"  {name if at == 0 else '':20} {line}".rstrip() for at, line in enumerate(wrapped)]
    return "\n".join(lines)


def _train_file() -> str:
    return (folders()[0] / "train.yaml").read_text()
