"""Which runs are the same but for the seed: what of a configuration decides the outcome, and what tells two apart.

Without torch: what only shows runs starts without it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tailo_pl.data.cache import fingerprint

TRAINER_WITHOUT_EFFECT = ("accelerator", "devices", "strategy", "log_every_n_steps")
CALLBACKS_WITHOUT_EFFECT = ("StageCheckpoint", "StageProgress", "Threads")
"""Those of `tailo_pl.callbacks` that say so themselves; here by name, because importing them takes seconds."""

_WITHOUT_EFFECT = frozenset(
    {
        *("schema", "name", "runs", "logger", "checkpoint_every", "threads", "preset.threads", "source.trust"),
        *(f"trainer.{option}" for option in TRAINER_WITHOUT_EFFECT),
    }
)
_CLASS = ".class_path"
_SEEDS = ("seed", "discriminator_seed")
# Values that follow from others: from the knobs of method and preset, and the data from its source and setting.
_REPEATED = ("method.stages.", "callbacks.", "trainer.val_check_interval", "data.fingerprint")


def outcome(config: Mapping[str, Any]) -> dict[str, Any]:
    """The values that decide what comes of a run, apart from the seeds of training, by dotted name.

    Args:
        config: a run's configuration, or overrides of one by their names.
    """
    return {name: value for name, value in _flat(_with_effect(config)) if not _is_seed(name)}


def seeds(config: Mapping[str, Any]) -> str:
    """All seeds of training as one text: equal for a run that is done twice."""
    return fingerprint(sorted((name, str(value)) for name, value in _flat(config) if _is_seed(name)))


def group_key(config: Mapping[str, Any], data: str | None) -> str:
    """Equal for runs that are the same but for the seed.

    Args:
        config: a run's configuration, or overrides of one by their names.
        data: fingerprint of what it learnt from, which may have changed under the same configuration.
    """
    return fingerprint([sorted((name, repr(value)) for name, value in outcome(config).items()), data])


def telling_names(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the values in which outcomes differ.

    A knob shows again in the stages and callbacks that use it, and its own name says enough: of their values only
    those are named in which members differ that are alike in everything else.
    """
    names = dict.fromkeys(name for member in members for name in member)
    differing = [name for name in names if _differ(members, name)]
    chosen = [name for name in differing if not name.startswith(_REPEATED) and not _of_class(members, name)]
    alike: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for member in members:
        alike[repr([member.get(name) for name in chosen])].append(member)
    repeated = (name for name in differing if name.startswith(_REPEATED))
    return [*chosen, *(name for name in repeated if any(_differ(group, name) for group in alike.values()))]


def in_short(names: Sequence[str]) -> dict[str, str]:
    """Names of values as people say them where the whole ones need not be typed: `alpha`, and `head` for the class of
    the head. Two that would then be the same stay whole."""
    short = {name: name.removesuffix(_CLASS) for name in names}
    short = {name: one.split(".", 1)[-1] for name, one in short.items()}
    counts = Counter(short.values())
    return {name: one if counts[one] == 1 else name for name, one in short.items()}


def told(name: str, value: Any, short: Mapping[str, str]) -> str:
    """A value with its short name: `alpha=2`, `head=Gaussian`."""
    shown = str(value).rpartition(".")[2] if name.endswith(_CLASS) else value
    return f"{short[name]}={'none' if shown is None else shown}"


def _with_effect(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A configuration without what changes nothing of what a run learns or reports."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if name in _WITHOUT_EFFECT or (prefix == "callbacks." and _changes_nothing(value)):
            continue
        kept[key] = _with_effect(value, f"{name}.") if isinstance(value, Mapping) else value
    return kept


def _changes_nothing(callback: Any) -> bool:
    """Whether this callback has no effect; null is one that was taken away."""
    if not isinstance(callback, Mapping):
        return callback is None
    package, _, name = str(callback.get("class_path")).rpartition(".")
    return package.startswith("tailo_pl.callbacks") and name in CALLBACKS_WITHOUT_EFFECT


def _is_seed(name: str) -> bool:
    """Whether this is a seed of training; that of a source or a setting decides the data."""
    return name in _SEEDS or (name.startswith("method.stages.") and name.endswith(".seed"))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _of_class(members: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a value only follows from a class above it: each class has its own arguments."""
    parts = name.split(".")
    above = [".".join(parts[:depth]) + _CLASS for depth in range(1, len(parts))]
    return any(of != name and _follows(members, name, of) for of in above)


def _follows(members: Sequence[Mapping[str, Any]], name: str, of: str) -> bool:
    """Whether `of` has several values, each of which brings one value of `name`."""
    classes: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for member in members:
        classes[repr(member.get(of))].append(member)
    return len(classes) > 1 and not any(_differ(group, name) for group in classes.values())


def _differ(members: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({repr(member.get(name)) for member in members}) > 1
